// Takes a GGUF file apart and writes it anew: other keys, another alignment, in shards.

const WIDTH = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const STRING = 8;
const ARRAY = 9;

/** A key, its type and its value as bytes. */
export interface RawKey {
  key: string;
  type: number;
  value: Uint8Array;
}

/** A tensor with its data. */
export interface RawTensor {
  name: string;
  shape: bigint[];
  type: number;
  data: Uint8Array;
}

/** A file's parts. */
export interface RawGguf {
  keys: RawKey[];
  tensors: RawTensor[];
}

/** Takes a sound file apart. */
export function readGguf(bytes: Uint8Array<ArrayBuffer>): RawGguf {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let at = 8;
  const u32 = () => view.getUint32((at += 4) - 4, true);
  const u64 = () => view.getBigUint64((at += 8) - 8, true);
  const text = () => {
    const n = Number(u64());
    return new TextDecoder().decode(bytes.subarray(at, at += n));
  };
  const skip = (type: number) => {
    if (type === STRING) text();
    else if (type === ARRAY) {
      const of = u32();
      for (let n = Number(u64()); n > 0; n--) skip(of);
    } else at += WIDTH[type]!;
  };
  const nTensors = Number(u64());
  const nKeys = Number(u64());
  let alignment = 32;
  const keys: RawKey[] = [];
  for (let i = 0; i < nKeys; i++) {
    const key = text();
    const type = u32();
    const from = at;
    skip(type);
    if (key === "general.alignment") alignment = view.getUint32(from, true);
    keys.push({ key, type, value: bytes.subarray(from, at) });
  }
  const infos: { name: string; shape: bigint[]; type: number; offset: number }[] = [];
  for (let i = 0; i < nTensors; i++) {
    const name = text();
    const shape = Array.from({ length: u32() }, u64);
    infos.push({ name, shape, type: u32(), offset: Number(u64()) });
  }
  const start = Math.ceil(at / alignment) * alignment;
  const ends = [...infos.map(({ offset }) => offset), bytes.length - start].sort((a, b) => a - b);
  return {
    keys,
    tensors: infos.map(({ offset, ...info }) => ({
      ...info,
      data: bytes.subarray(start + offset, start + ends.find((end) => end > offset)!),
    })),
  };
}

/** A key with a text. */
export function textKey(key: string, value: string): RawKey {
  const bytes = new TextEncoder().encode(value);
  const out = new Uint8Array(8 + bytes.length);
  new DataView(out.buffer).setBigUint64(0, BigInt(bytes.length), true);
  out.set(bytes, 8);
  return { key, type: STRING, value: out };
}

/** A key with a number of 16 bits. */
export const u16Key = (key: string, value: number): RawKey => ({
  key,
  type: 2,
  value: new Uint8Array(Uint16Array.of(value).buffer),
});

/** A key with a number of 32 bits: unsigned, signed, or floating. */
export const wideKey = (key: string, type: 4 | 5 | 6, value: number): RawKey => ({
  key,
  type,
  value: new Uint8Array((type === 6 ? Float32Array : Uint32Array).of(value).buffer),
});

/**
 * Writes a file; what lies between tensors is left out, so a large alignment makes a sparse file.
 *
 * @returns Its size in bytes.
 */
export function writeRaw(path: string, file: RawGguf, alignment = 32): number {
  const parts: Uint8Array[] = [];
  const u32 = (n: number) => parts.push(new Uint8Array(Uint32Array.of(n).buffer));
  const u64 = (n: bigint | number) =>
    parts.push(new Uint8Array(BigUint64Array.of(BigInt(n)).buffer));
  const text = (s: string) => {
    const bytes = new TextEncoder().encode(s);
    u64(bytes.length);
    parts.push(bytes);
  };
  const pad = (n: number) => Math.ceil(n / alignment) * alignment;
  const keys = file.keys.filter(({ key }) => key !== "general.alignment");
  if (alignment !== 32) keys.push(wideKey("general.alignment", 4, alignment));
  parts.push(new TextEncoder().encode("GGUF"));
  u32(3);
  u64(file.tensors.length);
  u64(keys.length);
  for (const { key, type, value } of keys) {
    text(key);
    u32(type);
    parts.push(value);
  }
  let offset = 0;
  const offsets: number[] = [];
  for (const { name, shape, type, data } of file.tensors) {
    text(name);
    u32(shape.length);
    shape.forEach(u64);
    u32(type);
    u64(offset);
    offsets.push(offset);
    offset = pad(offset + data.length);
  }
  const start = pad(parts.reduce((n, part) => n + part.length, 0));
  using out = Deno.openSync(path, { write: true, create: true, truncate: true });
  for (const part of parts) writeAll(out, part);
  file.tensors.forEach(({ data }, i) => {
    out.seekSync(start + offsets[i]!, Deno.SeekMode.Start);
    writeAll(out, data);
  });
  out.truncateSync(start + offset);
  return start + offset;
}

function writeAll(out: Deno.FsFile, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += out.writeSync(bytes.subarray(at));
}

/**
 * Writes a model in shards, as llama.cpp's own splitter names them.
 *
 * @returns Their paths, in order.
 */
export function writeShards(prefix: string, file: RawGguf, count: number): string[] {
  const per = Math.ceil(file.tensors.length / count);
  return Array.from({ length: count }, (_, i) => {
    const number = (n: number) => String(n).padStart(5, "0");
    const path = `${prefix}-${number(i + 1)}-of-${number(count)}.gguf`;
    writeRaw(path, {
      keys: [
        ...i === 0 ? file.keys : [],
        u16Key("split.no", i),
        u16Key("split.count", count),
        wideKey("split.tensors.count", 5, file.tensors.length),
      ],
      tensors: file.tensors.slice(i * per, (i + 1) * per),
    });
    return path;
  });
}
