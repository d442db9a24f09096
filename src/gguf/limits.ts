/** Longest key: the format's own limit. */
export const MAX_KEY_BYTES = 65_535;
/** Longest tensor name: llama.cpp keeps 64 bytes, the last of them zero. */
export const MAX_TENSOR_NAME_BYTES = 63;
/** Longest text value: the parser's limit. The largest seen are chat templates of some 100 KB. */
export const MAX_STRING_BYTES = 10_000_000;
/** Longest array: the parser's limit. The largest seen are merges of about 500,000 entries. */
export const MAX_ARRAY_COUNT = 1_000_000;
/** Longest array that is kept in memory: one number for each layer or class, and no vocabulary. */
export const MAX_KEPT_ARRAY = 8192;
/** Most keys: the parser's limit. Real files have less than 100. */
export const MAX_KEYS = 100_000;
/** Most tensors. The largest models have some thousands. */
export const MAX_TENSORS = 100_000;
/** Most dimensions of a tensor: llama.cpp's. */
export const MAX_DIMENSIONS = 4;
/** Largest dimension: the parser's limit. */
export const MAX_DIMENSION = 2 ** 32;
/** Largest alignment of tensor data. Real files have 32, some 4096 or 16384. */
export const MAX_ALIGNMENT = 2 ** 20;
/** Largest header: the parser holds 50 MB. The largest vocabularies take about 20. */
export const MAX_HEADER_BYTES = 48_000_000;
