/** WASM memory: what an instance may grow to. */
export const HEAP_BYTES = 16 * 2 ** 30;
/** What of it the engine needs beside weights and caches: its code's data, stacks, and the buffers of a computation. */
export const ENGINE_BYTES = 512 * 2 ** 20;
