// Writes small GGUF files for tests; not published.

/** Numbers that stand for types of values. */
export const VALUE_TYPES = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  uint32: 4,
  int32: 5,
  float32: 6,
  bool: 7,
  string: 8,
  array: 9,
  uint64: 10,
  int64: 11,
  float64: 12,
} as const;

/** A type of values. */
export type TestType = keyof typeof VALUE_TYPES;

/** A key with its value; `raw` replaces what would be written for the value. */
export interface TestKey {
  key: string;
  type: TestType;
  elementType?: TestType;
  value: unknown;
  raw?: Uint8Array;
}

/** A tensor; its data are zeros. */
export interface TestTensor {
  name: string;
  shape: (number | bigint)[];
  /** Number of the format; 0 is f32. */
  type?: number;
  /** Instead of the offset that follows from the tensors before. */
  offset?: bigint;
  /** Bytes of data, where they are not f32. */
  bytes?: number;
  /** Instead of the number of dimensions. */
  dimensions?: number;
}

/** A file, sound or not. */
export interface TestFile {
  version?: number;
  keys?: TestKey[];
  tensors?: TestTensor[];
  /** Instead of the number of keys. */
  keyCount?: bigint;
  /** Instead of the number of tensors. */
  tensorCount?: bigint;
  alignment?: number;
}

/** Collects bytes. */
export class Bytes {
  #parts: Uint8Array[] = [];
  length = 0;

  add(bytes: Uint8Array): this {
    this.#parts.push(bytes);
    this.length += bytes.length;
    return this;
  }

  #number(size: number, set: (view: DataView) => void): this {
    const bytes = new Uint8Array(size);
    set(new DataView(bytes.buffer));
    return this.add(bytes);
  }

  u32(value: number): this {
    return this.#number(4, (view) => view.setUint32(0, value, true));
  }

  u64(value: bigint | number): this {
    return this.#number(8, (view) => view.setBigUint64(0, BigInt(value), true));
  }

  text(value: string): this {
    const bytes = new TextEncoder().encode(value);
    return this.u64(bytes.length).add(bytes);
  }

  value(type: TestType, value: unknown): this {
    switch (type) {
      case "uint8":
      case "int8":
      case "bool":
        return this.add(Uint8Array.of(Number(value)));
      case "uint16":
      case "int16":
        return this.#number(2, (view) => view.setInt16(0, Number(value), true));
      case "uint32":
      case "int32":
        return this.u32(Number(value));
      case "float32":
        return this.#number(4, (view) => view.setFloat32(0, Number(value), true));
      case "float64":
        return this.#number(8, (view) => view.setFloat64(0, Number(value), true));
      case "uint64":
      case "int64":
        return this.u64(BigInt.asUintN(64, BigInt(value as number)));
      case "string":
        return this.text(String(value));
      case "array":
        throw new TypeError("no arrays of arrays");
    }
  }

  done(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.length);
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}

/** Writes a file's header, without the padding and the data behind it. */
export function writeHeader(file: TestFile): Uint8Array<ArrayBuffer> {
  const keys = [...file.keys ?? []];
  if (file.alignment !== undefined) {
    keys.push({ key: "general.alignment", type: "uint32", value: file.alignment });
  }
  const tensors = file.tensors ?? [];
  const out = new Bytes().add(new TextEncoder().encode("GGUF")).u32(file.version ?? 3);
  out.u64(file.tensorCount ?? tensors.length).u64(file.keyCount ?? keys.length);
  for (const { key, type, elementType, value, raw } of keys) {
    out.text(key).u32(VALUE_TYPES[type]);
    if (raw) out.add(raw);
    else if (type === "array") {
      const items = value as unknown[];
      out.u32(VALUE_TYPES[elementType!]).u64(items.length);
      for (const item of items) out.value(elementType!, item);
    } else out.value(type, value);
  }
  const pad = (n: number) => Math.ceil(n / (file.alignment ?? 32)) * (file.alignment ?? 32);
  let offset = 0;
  for (const tensor of tensors) {
    out.text(tensor.name).u32(tensor.dimensions ?? tensor.shape.length);
    for (const size of tensor.shape) out.u64(size);
    out.u32(tensor.type ?? 0).u64(tensor.offset ?? offset);
    offset = pad(offset + tensorBytes(tensor));
  }
  return out.done();
}

function tensorBytes(tensor: TestTensor): number {
  // A shape that no test has the memory for is a fault, and needs no data.
  if (tensor.shape.some((size) => size > 2 ** 30)) return 0;
  return tensor.bytes ?? tensor.shape.reduce((product: number, size) => product * Number(size), 4);
}

/** Writes a whole file. */
export function writeGguf(file: TestFile): Uint8Array<ArrayBuffer> {
  const header = writeHeader(file);
  const alignment = file.alignment ?? 32;
  const pad = (n: number) => Math.ceil(n / alignment) * alignment;
  let size = pad(header.length);
  for (const tensor of file.tensors ?? []) size = pad(size + tensorBytes(tensor));
  const bytes = new Uint8Array((file.tensors ?? []).length > 0 ? size : header.length);
  bytes.set(header);
  return bytes;
}

/** A key for a value of the plainest type. */
export function plainKey(key: string, value: unknown): TestKey {
  if (Array.isArray(value)) {
    return {
      key,
      type: "array",
      elementType: typeof value[0] === "string" ? "string" : "uint32",
      value,
    };
  }
  const type = typeof value === "string"
    ? "string"
    : typeof value === "boolean"
    ? "bool"
    : "uint32";
  return { key, type, value };
}

/** A small model: `nLayer` layers of a llama. */
export function llamaFile(nLayer = 4): TestFile {
  const tensors: TestTensor[] = [{ name: "token_embd.weight", shape: [32, 8] }];
  for (let il = 0; il < nLayer; il++) {
    tensors.push({ name: `blk.${il}.attn_q.weight`, shape: [32, 32] });
    tensors.push({ name: `blk.${il}.ffn_up.weight`, shape: [32, 64], type: 8, bytes: 64 * 34 });
  }
  return {
    keys: [
      plainKey("general.architecture", "llama"),
      plainKey("general.name", "tiny"),
      plainKey("general.file_type", 7),
      plainKey("llama.block_count", nLayer),
      plainKey("llama.context_length", 512),
      plainKey("llama.embedding_length", 32),
      plainKey("llama.attention.head_count", 4),
      plainKey("llama.attention.head_count_kv", 2),
      plainKey("tokenizer.ggml.model", "gpt2"),
      plainKey("tokenizer.ggml.tokens", ["a", "b", "ü", ""]),
      plainKey("tokenizer.chat_template", "{{ messages }}"),
      plainKey("rys.layer_plan", "1,3"),
    ],
    tensors,
  };
}
