import { GGML_TYPES } from "../src/gguf/ggml_types.ts";
import { plainKey, type TestKey, type TestTensor, writeGgufFile } from "../src/gguf/_testing.ts";

/** Formats that the random models are written in. */
type TensorType = "f32" | "q4_0" | "q8_0" | "q4_K" | "q6_K";

const formatId = (type: TensorType) => [...GGML_TYPES].find(([, { name }]) => name === type)![0];

/** Kinds of the random model. */
export type Quantisation = "Q4_0" | "Q8_0" | "Q4_K_M" | "Q6_K";

/** Sizes of the random model. */
export interface Shape {
  nLayer: number;
  nEmbd: number;
  nFf: number;
  nHead: number;
  nHeadKv: number;
  /** Width of a head. */
  head: number;
  nVocab: number;
}

const SHAPE: Shape = {
  nLayer: 12,
  nEmbd: 1024,
  nFf: 3072,
  nHead: 16,
  nHeadKv: 8,
  head: 128,
  nVocab: 32000,
};

/**
 * Writes a random model of the architecture qwen3. The same bytes each time.
 *
 * @param path Where to.
 * @param kind How its matrices are held.
 * @param shape Its sizes; 12 layers, width 1024, 221 million parameters if not given.
 */
export function writeRandomModel(path: string, kind: Quantisation, shape: Shape = SHAPE): void {
  const { nLayer, nEmbd, nFf, nHead, nHeadKv, head, nVocab } = shape;
  const scale = 1 / Math.sqrt(nEmbd); // of the weights: what keeps activations near 1
  const random = xorshift(0x2545f491);
  const arch = "qwen3";
  const keys: TestKey[] = [
    ...Object.entries({
      "general.architecture": arch,
      "general.name": `random ${kind}`,
      "general.file_type": { Q4_0: 2, Q8_0: 7, Q4_K_M: 15, Q6_K: 18 }[kind],
      "general.quantization_version": 2,
      [`${arch}.block_count`]: nLayer,
      [`${arch}.context_length`]: 4096,
      [`${arch}.embedding_length`]: nEmbd,
      [`${arch}.feed_forward_length`]: nFf,
      [`${arch}.attention.head_count`]: nHead,
      [`${arch}.attention.head_count_kv`]: nHeadKv,
      [`${arch}.attention.key_length`]: head,
      [`${arch}.attention.value_length`]: head,
    }).map(([key, value]) => plainKey(key, value)),
    { key: `${arch}.attention.layer_norm_rms_epsilon`, type: "float32", value: 1e-6 },
    { key: `${arch}.rope.freq_base`, type: "float32", value: 1e6 },
    ...tokenizerKeys(nVocab),
  ];
  const tensors: TestTensor[] = [];
  const matrix = (name: string, row: number, rows: number, type: TensorType) =>
    tensors.push({
      name: `${name}.weight`,
      shape: [row, rows],
      type: formatId(type),
      data: (bytes) => fillBlocks(bytes, type, scale, random),
    });
  const ones = (name: string, n: number) =>
    tensors.push({
      name: `${name}.weight`,
      shape: [n],
      data: new Uint8Array(new Float32Array(n).fill(1).buffer),
    });
  // Q4_K_M holds the head and half of two kinds of matrices in six bits, as llama-quantize does.
  const main: TensorType = FORMATS[kind];
  const finer = (layer: number): TensorType =>
    kind === "Q4_K_M" && hasMoreBits(layer, nLayer) ? "q6_K" : main;

  matrix("token_embd", nEmbd, nVocab, kind === "Q4_K_M" ? "q6_K" : main);
  ones("output_norm", nEmbd);
  for (let i = 0; i < nLayer; i++) {
    const blk = `blk.${i}`;
    ones(`${blk}.attn_norm`, nEmbd);
    matrix(`${blk}.attn_q`, nEmbd, nHead * head, main);
    matrix(`${blk}.attn_k`, nEmbd, nHeadKv * head, main);
    matrix(`${blk}.attn_v`, nEmbd, nHeadKv * head, finer(i));
    ones(`${blk}.attn_q_norm`, head);
    ones(`${blk}.attn_k_norm`, head);
    matrix(`${blk}.attn_output`, nHead * head, nEmbd, main);
    ones(`${blk}.ffn_norm`, nEmbd);
    matrix(`${blk}.ffn_gate`, nEmbd, nFf, main);
    matrix(`${blk}.ffn_up`, nEmbd, nFf, main);
    matrix(`${blk}.ffn_down`, nFf, nEmbd, finer(i));
  }
  writeGgufFile(path, { keys, tensors });
}

const FORMATS = { Q4_0: "q4_0", Q8_0: "q8_0", Q4_K_M: "q4_K", Q6_K: "q6_K" } as const;

const hasMoreBits = (i: number, nLayer: number) =>
  i < nLayer / 8 || i >= Math.floor(7 * nLayer / 8) || (i - Math.floor(nLayer / 8)) % 3 === 2;

/** A vocabulary of bytes and made-up words: enough to turn any token into text. */
export function tokenizerKeys(nVocab: number): TestKey[] {
  const byte = (i: number) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`;
  const tokens = ["<unk>", "<s>", "</s>", ...Array.from({ length: 256 }, (_, i) => byte(i))];
  while (tokens.length < nVocab) tokens.push(`\u2581w${tokens.length}`);
  const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6;
  const types = tokens.map((_, i) => i === 0 ? UNKNOWN : i < 3 ? CONTROL : i < 259 ? BYTE : NORMAL);
  return [
    plainKey("tokenizer.ggml.model", "llama"),
    plainKey("tokenizer.ggml.tokens", tokens),
    {
      key: "tokenizer.ggml.scores",
      type: "array",
      elementType: "float32",
      value: tokens.map((_, i) => -i),
    },
    { key: "tokenizer.ggml.token_type", type: "array", elementType: "int32", value: types },
    plainKey("tokenizer.ggml.bos_token_id", 1),
    plainKey("tokenizer.ggml.eos_token_id", 2),
  ];
}

/** Fills blocks with random bits and with scales that make the values have the given deviation. */
function fillBlocks(
  bytes: Uint8Array<ArrayBuffer>,
  type: TensorType,
  deviation: number,
  random: () => number,
): void {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  for (let i = 0; i < words.length; i++) words[i] = random();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const scale = (at: number, x: number) => view.setFloat16(at, x, true);
  switch (type) {
    case "q4_0": // d * (q - 8), q even over 1..15 and once more 8, which makes the mean 0: deviation 4.2
      for (let i = 0; i < words.length; i++) {
        const w = words[i]!;
        const some = w | w >>> 1 | w >>> 2 | w >>> 3; // the lowest bit of each four tells whether any was set
        words[i] = w | (~some & 0x11111111) << 3;
      }
      for (let at = 0; at < bytes.length; at += 18) scale(at, deviation / 4.2);
      return;
    case "q8_0": // d * q, q even over -127..127: deviation 73
      for (let at = 0; at < bytes.length; at += 34) {
        scale(at, deviation / 73);
        for (let i = at + 2; i < at + 34; i++) if (bytes[i] === 0x80) bytes[i] = 0x81;
      }
      return;
    case "q4_K": // d * sc * q - dmin * m with six-bit sc and m: the means cancel at dmin = 7.5 d
      for (let at = 0; at < bytes.length; at += 144) {
        scale(at, deviation / 290);
        scale(at + 2, 7.5 * deviation / 290);
      }
      return;
    case "q6_K": // d * sc * (q - 32), sc even over -128..127, q over 0..63
      for (let at = 0; at < bytes.length; at += 210) scale(at + 208, deviation / (74 * 18.5));
      return;
    default:
      throw new RangeError(`no random ${type}`);
  }
}

/** 32 random bits at a time. */
function xorshift(seed: number): () => number {
  let x = seed;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return x >>> 0;
  };
}
