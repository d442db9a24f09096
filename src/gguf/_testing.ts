// Writes GGUF files for tests and benchmarks, sound ones and damaged ones; not published.

import { GGML_TYPES } from "./ggml_types.ts";
import type { GgufValueTypeName } from "./types.ts";
import { VALUE_TYPES } from "./write_header.ts";

export { VALUE_TYPES };

/** A type of value. */
export type TestType = GgufValueTypeName;

/** A key with its value; `raw`, if given, is written in place of the value. */
export interface TestKey {
  key: string;
  type: TestType;
  elementType?: TestType;
  value?: unknown;
  raw?: Uint8Array;
}

/** Bytes at offsets; what lies between them is zero and takes no room on the disk. */
export type Pieces = [at: number, bytes: Uint8Array][];

/** A tensor. */
export interface TestTensor {
  name: string;
  /** Its dimensions, the length of a row first. */
  shape: (number | bigint)[];
  /** Number of the format; 0, the default, is f32. */
  type?: number;
  /** Written in place of the offset that follows from the tensors before. */
  offset?: bigint;
  /** Bytes of data, where they do not follow from shape and format. */
  bytes?: number;
  /** Its data, the few that are not zero, or what writes them. Default: zeros. */
  data?: Uint8Array | Pieces | ((bytes: Uint8Array<ArrayBuffer>) => void);
  /** Written in place of the number of dimensions. */
  dimensions?: number;
}

/** A file, sound or not. */
export interface TestFile {
  version?: number;
  keys?: TestKey[];
  tensors?: TestTensor[];
  /** Written in place of the number of keys. */
  keyCount?: bigint;
  /** Written in place of the number of tensors. */
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

/** How many bytes a tensor's data take. */
export function tensorBytes({ shape, type = 0, bytes, data }: TestTensor): number {
  if (bytes !== undefined) return bytes;
  if (data instanceof Uint8Array) return data.length;
  // A shape that no test has the memory for is a fault, and needs no data.
  if (shape.some((size) => size > 2 ** 30)) return 0;
  const format = GGML_TYPES.get(type) ?? { blockSize: 1, bytes: 4 };
  const values = shape.reduce((product: number, size) => product * Number(size), 1);
  return Math.ceil(values / format.blockSize) * format.bytes;
}

/** Writes a small file into memory; tensors have no data but zeros. */
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

/**
 * Writes a file, whole or not at all. What is zero between tensors is left out, so a large alignment makes a sparse file.
 *
 * @param path Where to.
 * @param file The file.
 * @returns Its size in bytes.
 */
export function writeGgufFile(path: string, file: TestFile): number {
  const alignment = file.alignment ?? 32;
  const pad = (n: number) => Math.ceil(n / alignment) * alignment;
  const partial = `${path}.part`;
  try {
    using out = Deno.openSync(partial, { create: true, write: true, truncate: true });
    const put = (at: number, bytes: Uint8Array) => {
      out.seekSync(at, Deno.SeekMode.Start);
      for (let done = 0; done < bytes.length;) done += out.writeSync(bytes.subarray(done));
    };
    const header = writeHeader(file);
    put(0, header);
    let at = pad(header.length);
    for (const tensor of file.tensors ?? []) {
      const { data = [] } = tensor;
      const size = tensorBytes(tensor);
      if (data instanceof Uint8Array) put(at, data);
      else if (typeof data === "function") {
        const bytes = new Uint8Array(size);
        data(bytes);
        put(at, bytes);
      } else for (const [offset, piece] of data) put(at + offset, piece);
      at = pad(at + size);
    }
    out.truncateSync(at);
    Deno.renameSync(partial, path);
    return at;
  } catch (error) {
    try {
      Deno.removeSync(partial);
    } catch {
      // It was not made.
    }
    throw error;
  }
}

/** A key with a value of the plainest type: text, true or false, a whole number, or a list of texts or whole numbers. */
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
