/** Element types that {@linkcode GgufWriter} writes. */
export type TensorType = "F32" | "F16" | "Q4_0" | "Q8_0" | "Q4_K" | "Q6_K";

/** GGML's number of a type, and how many values how many bytes hold. */
const TYPES: Record<TensorType, { id: number; values: number; bytes: number }> = {
  F32: { id: 0, values: 1, bytes: 4 },
  F16: { id: 1, values: 1, bytes: 2 },
  Q4_0: { id: 2, values: 32, bytes: 18 },
  Q8_0: { id: 8, values: 32, bytes: 34 },
  Q4_K: { id: 12, values: 256, bytes: 144 },
  Q6_K: { id: 14, values: 256, bytes: 210 },
};

/** GGUF's numbers of the value types used here. */
const UINT32 = 4, INT32 = 5, FLOAT32 = 6, STRING = 8, ARRAY = 9;

const ALIGNMENT = 32;

/** A value of the header. */
export type Value =
  | { uint32: number }
  | { float32: number }
  | { string: string }
  | { strings: string[] }
  | { float32s: number[] }
  | { int32s: number[] };

interface Tensor {
  name: string;
  dims: number[];
  type: TensorType;
  bytes: number;
  fill: ((bytes: Uint8Array<ArrayBuffer>) => void) | Pieces;
}

/** Bytes at offsets; what lies between them is zero and takes no room on the disk. */
export type Pieces = [at: number, bytes: Uint8Array][];

/** Writes a GGUF file, version 3. */
export class GgufWriter {
  readonly #values: [string, Value][] = [];
  readonly #tensors: Tensor[] = [];

  /** Adds a header value. */
  set(key: string, value: Value): void {
    this.#values.push([key, value]);
  }

  /**
   * Adds a tensor.
   *
   * @param name Its name.
   * @param dims Its sizes, that of a row first.
   * @param type How its values are held.
   * @param fill Writes its bytes, or is the few that are not zero.
   * @returns Its size in bytes.
   */
  tensor(
    name: string,
    dims: number[],
    type: TensorType,
    fill: ((bytes: Uint8Array<ArrayBuffer>) => void) | Pieces,
  ): number {
    const { values, bytes } = TYPES[type];
    if (dims[0]! % values !== 0) throw new RangeError(`${name}: rows of ${dims[0]} in ${type}`);
    const n = dims.reduce((a, b) => a * b, 1);
    const size = n / values * bytes;
    this.#tensors.push({ name, dims, type, bytes: size, fill });
    return size;
  }

  /** Writes the file, whole or not at all. */
  write(path: string): void {
    const header = new Bytes();
    header.raw(new TextEncoder().encode("GGUF"));
    header.u32(3);
    header.u64(this.#tensors.length);
    header.u64(this.#values.length);
    for (const [key, value] of this.#values) {
      header.string(key);
      header.value(value);
    }
    let offset = 0;
    for (const { name, dims, type, bytes } of this.#tensors) {
      header.string(name);
      header.u32(dims.length);
      for (const n of dims) header.u64(n);
      header.u32(TYPES[type].id);
      header.u64(offset);
      offset += padded(bytes);
    }
    const partial = `${path}.part`;
    try {
      using file = Deno.openSync(partial, { create: true, write: true, truncate: true });
      const head = header.padded();
      writeAll(file, head);
      let at = head.length;
      for (const { bytes, fill } of this.#tensors) {
        const start = at;
        at += padded(bytes);
        if (typeof fill !== "function") {
          for (const [offset, piece] of fill) {
            file.seekSync(start + offset, Deno.SeekMode.Start);
            writeAll(file, piece);
          }
          file.seekSync(at, Deno.SeekMode.Start);
          continue;
        }
        const data = new Uint8Array(padded(bytes));
        fill(data.subarray(0, bytes));
        writeAll(file, data);
      }
      file.truncateSync(at);
      Deno.renameSync(partial, path);
    } catch (error) {
      try {
        Deno.removeSync(partial);
      } catch {
        // It was not made.
      }
      throw error;
    }
  }
}

const padded = (n: number) => Math.ceil(n / ALIGNMENT) * ALIGNMENT;

function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
}

/** Bytes that grow; little-endian. */
class Bytes {
  #bytes = new Uint8Array(1 << 16);
  #n = 0;

  #take(n: number): DataView {
    while (this.#n + n > this.#bytes.length) {
      const more = new Uint8Array(2 * this.#bytes.length);
      more.set(this.#bytes);
      this.#bytes = more;
    }
    this.#n += n;
    return new DataView(this.#bytes.buffer, this.#n - n, n);
  }

  raw(bytes: Uint8Array): void {
    const { byteOffset } = this.#take(bytes.length);
    this.#bytes.set(bytes, byteOffset);
  }

  u32(x: number): void {
    this.#take(4).setUint32(0, x, true);
  }

  u64(x: number): void {
    this.#take(8).setBigUint64(0, BigInt(x), true);
  }

  f32(x: number): void {
    this.#take(4).setFloat32(0, x, true);
  }

  string(text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.u64(bytes.length);
    this.raw(bytes);
  }

  value(value: Value): void {
    const array = (type: number, n: number) => {
      this.u32(ARRAY);
      this.u32(type);
      this.u64(n);
    };
    if ("uint32" in value) {
      this.u32(UINT32);
      this.u32(value.uint32);
    } else if ("float32" in value) {
      this.u32(FLOAT32);
      this.f32(value.float32);
    } else if ("string" in value) {
      this.u32(STRING);
      this.string(value.string);
    } else if ("strings" in value) {
      array(STRING, value.strings.length);
      for (const s of value.strings) this.string(s);
    } else if ("float32s" in value) {
      array(FLOAT32, value.float32s.length);
      for (const x of value.float32s) this.f32(x);
    } else {
      array(INT32, value.int32s.length);
      for (const x of value.int32s) this.u32(x >>> 0);
    }
  }

  padded(): Uint8Array {
    return this.#bytes.slice(0, padded(this.#n));
  }
}
