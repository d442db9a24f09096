import { GgufWriter, type TensorType } from "./_gguf_writer.ts";

/** Kinds of the random model. */
export type Quantisation = "Q4_0" | "Q8_0" | "Q4_K_M";

const N_LAYER = 12, N_EMBD = 1024, N_FF = 3072, N_HEAD = 16, N_HEAD_KV = 8, HEAD = 128;
const N_VOCAB = 32000;

/** Standard deviation of the weights: what keeps activations of this width near 1. */
const SCALE = 1 / Math.sqrt(N_EMBD);

/**
 * Writes a random model with the shape of Qwen3: 12 layers, width 1024, 221 million parameters. The same bytes each
 * time.
 *
 * @param path Where to.
 * @param kind How its matrices are held.
 */
export function writeRandomModel(path: string, kind: Quantisation): void {
  const random = xorshift(0x2545f491);
  const w = new GgufWriter();
  const arch = "qwen3";
  w.set("general.architecture", { string: arch });
  w.set("general.name", { string: `random ${kind}` });
  w.set("general.file_type", { uint32: { Q4_0: 2, Q8_0: 7, Q4_K_M: 15 }[kind] });
  w.set("general.quantization_version", { uint32: 2 });
  w.set(`${arch}.block_count`, { uint32: N_LAYER });
  w.set(`${arch}.context_length`, { uint32: 4096 });
  w.set(`${arch}.embedding_length`, { uint32: N_EMBD });
  w.set(`${arch}.feed_forward_length`, { uint32: N_FF });
  w.set(`${arch}.attention.head_count`, { uint32: N_HEAD });
  w.set(`${arch}.attention.head_count_kv`, { uint32: N_HEAD_KV });
  w.set(`${arch}.attention.key_length`, { uint32: HEAD });
  w.set(`${arch}.attention.value_length`, { uint32: HEAD });
  w.set(`${arch}.attention.layer_norm_rms_epsilon`, { float32: 1e-6 });
  w.set(`${arch}.rope.freq_base`, { float32: 1e6 });
  setTokenizer(w);

  const matrix = (name: string, row: number, rows: number, type: TensorType) =>
    w.tensor(`${name}.weight`, [row, rows], type, (bytes) => fillBlocks(bytes, type, random));
  const ones = (name: string, n: number) =>
    w.tensor(`${name}.weight`, [n], "F32", (bytes) => new Float32Array(bytes.buffer, 0, n).fill(1));
  // Q4_K_M holds the head and half of two kinds of matrices in six bits, as llama-quantize does.
  const main: TensorType = kind === "Q4_K_M" ? "Q4_K" : kind;
  const finer = (layer: number): TensorType =>
    kind === "Q4_K_M" && hasMoreBits(layer) ? "Q6_K" : main;

  matrix("token_embd", N_EMBD, N_VOCAB, kind === "Q4_K_M" ? "Q6_K" : main);
  ones("output_norm", N_EMBD);
  for (let i = 0; i < N_LAYER; i++) {
    const blk = `blk.${i}`;
    ones(`${blk}.attn_norm`, N_EMBD);
    matrix(`${blk}.attn_q`, N_EMBD, N_HEAD * HEAD, main);
    matrix(`${blk}.attn_k`, N_EMBD, N_HEAD_KV * HEAD, main);
    matrix(`${blk}.attn_v`, N_EMBD, N_HEAD_KV * HEAD, finer(i));
    ones(`${blk}.attn_q_norm`, HEAD);
    ones(`${blk}.attn_k_norm`, HEAD);
    matrix(`${blk}.attn_output`, N_HEAD * HEAD, N_EMBD, main);
    ones(`${blk}.ffn_norm`, N_EMBD);
    matrix(`${blk}.ffn_gate`, N_EMBD, N_FF, main);
    matrix(`${blk}.ffn_up`, N_EMBD, N_FF, main);
    matrix(`${blk}.ffn_down`, N_FF, N_EMBD, finer(i));
  }
  w.write(path);
}

const hasMoreBits = (i: number) =>
  i < N_LAYER / 8 || i >= Math.floor(7 * N_LAYER / 8) || (i - Math.floor(N_LAYER / 8)) % 3 === 2;

/** A vocabulary of bytes and made-up words: enough to turn any token into text. */
function setTokenizer(w: GgufWriter): void {
  const byte = (i: number) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`;
  const tokens = ["<unk>", "<s>", "</s>", ...Array.from({ length: 256 }, (_, i) => byte(i))];
  while (tokens.length < N_VOCAB) tokens.push(`\u2581w${tokens.length}`);
  const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6;
  w.set("tokenizer.ggml.model", { string: "llama" });
  w.set("tokenizer.ggml.tokens", { strings: tokens });
  w.set("tokenizer.ggml.scores", { float32s: tokens.map((_, i) => -i) });
  w.set("tokenizer.ggml.token_type", {
    int32s: tokens.map((_, i) => i === 0 ? UNKNOWN : i < 3 ? CONTROL : i < 259 ? BYTE : NORMAL),
  });
  w.set("tokenizer.ggml.bos_token_id", { uint32: 1 });
  w.set("tokenizer.ggml.eos_token_id", { uint32: 2 });
}

/** Fills blocks with random bits and with scales that make the values' deviation {@linkcode SCALE}. */
function fillBlocks(bytes: Uint8Array<ArrayBuffer>, type: TensorType, random: () => number): void {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  for (let i = 0; i < words.length; i++) words[i] = random();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const scale = (at: number, x: number) => view.setFloat16(at, x, true);
  switch (type) {
    case "Q4_0": // d * (q - 8), q even over 1..15 and once more 8, which makes the mean 0: deviation 4.2
      for (let i = 0; i < words.length; i++) {
        const w = words[i]!;
        const some = w | w >>> 1 | w >>> 2 | w >>> 3; // the lowest bit of each four tells whether any was set
        words[i] = w | (~some & 0x11111111) << 3;
      }
      for (let at = 0; at < bytes.length; at += 18) scale(at, SCALE / 4.2);
      return;
    case "Q8_0": // d * q, q even over -127..127: deviation 73
      for (let at = 0; at < bytes.length; at += 34) {
        scale(at, SCALE / 73);
        for (let i = at + 2; i < at + 34; i++) if (bytes[i] === 0x80) bytes[i] = 0x81;
      }
      return;
    case "Q4_K": // d * sc * q - dmin * m with six-bit sc and m: the means cancel at dmin = 7.5 d
      for (let at = 0; at < bytes.length; at += 144) {
        scale(at, SCALE / 290);
        scale(at + 2, 7.5 * SCALE / 290);
      }
      return;
    case "Q6_K": // d * sc * (q - 32), sc even over -128..127, q over 0..63
      for (let at = 0; at < bytes.length; at += 210) scale(at + 208, SCALE / (74 * 18.5));
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
