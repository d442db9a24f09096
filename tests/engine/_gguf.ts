// Takes a GGUF file apart, so that it can be written again: with other keys, another alignment, in shards.

import {
  type TestFile,
  type TestKey,
  type TestTensor,
  type TestType,
  VALUE_TYPES,
  writeGgufFile,
} from "../../src/gguf/_testing.ts";

const WIDTH = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const STRING = VALUE_TYPES.string;
const ARRAY = VALUE_TYPES.array;
const TYPE_NAMES = Object.keys(VALUE_TYPES) as TestType[];

/** A tensor with its data. */
export interface RawTensor extends TestTensor {
  type: number;
  data: Uint8Array;
}

/** A file's parts. */
export interface SoundFile extends TestFile {
  keys: TestKey[];
  tensors: RawTensor[];
}

/** Takes a sound file apart. */
export function readGguf(bytes: Uint8Array<ArrayBuffer>): SoundFile {
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
  const keys: TestKey[] = [];
  for (let i = 0; i < nKeys; i++) {
    const key = text();
    const type = u32();
    const from = at;
    skip(type);
    if (key === "general.alignment") {
      alignment = view.getUint32(from, true);
      continue; // the writer says its own
    }
    const name = TYPE_NAMES[type]!;
    keys.push({ key, type: name, raw: bytes.subarray(from, at) });
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
export const textKey = (key: string, value: string): TestKey => ({ key, type: "string", value });

/** A key with a number of 32 bits. */
export const wideKey = (
  key: string,
  type: "uint32" | "int32" | "float32",
  value: number,
): TestKey => ({ key, type, value });

/**
 * Writes a model in shards, as llama.cpp's own splitter names them.
 *
 * @returns Their paths, in order.
 */
export function writeShards(prefix: string, file: SoundFile, count: number): string[] {
  const per = Math.ceil(file.tensors.length / count);
  return Array.from({ length: count }, (_, i) => {
    const number = (n: number) => String(n).padStart(5, "0");
    const path = `${prefix}-${number(i + 1)}-of-${number(count)}.gguf`;
    writeGgufFile(path, {
      keys: [
        ...i === 0 ? file.keys : [],
        { key: "split.no", type: "uint16", value: i },
        { key: "split.count", type: "uint16", value: count },
        wideKey("split.tensors.count", "int32", file.tensors.length),
      ],
      tensors: file.tensors.slice(i * per, (i + 1) * per),
    });
    return path;
  });
}
