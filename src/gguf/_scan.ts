// Walks over a header and checks each length before anything of that length is read or made. What gets through can be
// handed to the parser.

import type { OpenSource } from "./byte_source.ts";
import { GGML_TYPES, type GgmlType } from "./ggml_types.ts";
import { GgufError } from "./gguf_error.ts";
import * as limits from "./limits.ts";

/** A header that was found to be sound. */
export interface Scan {
  /** The bytes of the header, to its end. */
  bytes: Uint8Array<ArrayBuffer>;
  version: number;
  /** Where tensor data begin. */
  dataOffset: number;
  alignment: number;
  keys: ScannedKey[];
  tensors: ScannedTensor[];
  /** Where the tensors' descriptions begin; they end with the header. */
  tensorsAt: number;
}

/** Where a key and its value are. */
export interface ScannedKey {
  key: string;
  start: number;
  end: number;
  /** Where the value's type is. */
  valueAt: number;
  /** The type of an array's elements, and their number. */
  array: { elementType: number; length: number } | undefined;
}

/** A tensor's place and size. */
export interface ScannedTensor {
  name: string;
  type: GgmlType;
  shape: number[];
  /** From the beginning of the file. */
  offset: number;
  bytes: number;
  /** Where the header describes it. */
  describedAt: number;
}

/** Bytes of a value by type; text and arrays have no one size. */
const VALUE_BYTES: readonly (number | undefined)[] = [
  1,
  1,
  2,
  2,
  4,
  4,
  4,
  1,
  undefined,
  undefined,
  8,
  8,
  8,
];
/** What is read at first; each further read doubles it. On a network every read is a request. */
const FIRST_READ = 1 << 20;
const UINT32 = 4;
const STRING = 8;
const ARRAY = 9;

/** Thrown and caught here: the walk needs the file up to `end`. */
class NeedMore {
  constructor(readonly end: number, readonly field: string, readonly at: number) {}
}

/** The beginning of the file, as far as it has been read. */
class HeaderBytes {
  bytes = new Uint8Array(0);
  view = new DataView(this.bytes.buffer);

  constructor(readonly source: OpenSource) {}

  async grow({ end, field, at }: NeedMore): Promise<void> {
    const { source } = this;
    const details = { file: source.name, offset: at, field };
    if (end > source.size) {
      throw new GgufError(`the file ends inside its header, at byte ${source.size}`, {
        ...details,
        limit: source.size,
      });
    }
    if (end > limits.MAX_HEADER_BYTES) {
      throw new GgufError("the header is too long", { ...details, limit: limits.MAX_HEADER_BYTES });
    }
    const had = this.bytes.length;
    const length = Math.min(
      source.size,
      limits.MAX_HEADER_BYTES,
      Math.max(end, 2 * had, FIRST_READ),
    );
    const more = await source.read(had, length - had);
    if (more.length !== length - had) {
      throw new GgufError(`reading ${length - had} bytes at byte ${had} gave ${more.length}`, {
        ...details,
        limit: source.size,
      });
    }
    const bytes = new Uint8Array(length);
    bytes.set(this.bytes);
    bytes.set(more, had);
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer);
  }
}

/** One pass over the header from `at`: refuses what exceeds a limit, and asks for more bytes where those read end. */
class Cursor {
  constructor(readonly header: HeaderBytes, public at: number) {}

  refuse(problem: string, field: string, limit?: number | string, at = this.at): never {
    const bound = typeof limit === "string" ? { expected: limit } : { limit };
    throw new GgufError(problem, { file: this.header.source.name, offset: at, field, ...bound });
  }

  /** Asks for `length` bytes from here. */
  need(length: number, field: string): void {
    if (this.at + length > this.header.bytes.length) {
      throw new NeedMore(this.at + length, field, this.at);
    }
  }

  /** Refuses a length that the file cannot have. */
  fits(length: number, field: string, what: string, at: number): void {
    const left = this.header.source.size - this.at;
    if (length > left) {
      this.refuse(`${what} goes beyond the end of the file, ${left} bytes on`, field, left, at);
    }
  }

  u32(field: string): number {
    this.need(4, field);
    const value = this.header.view.getUint32(this.at, true);
    this.at += 4;
    return value;
  }

  /** A 64-bit count that must not be above `limit`. */
  count(field: string, limit: number): number {
    const value = this.u64(field);
    if (value > BigInt(limit)) this.refuse(`${field} is ${value}`, field, limit, this.at - 8);
    return Number(value);
  }

  u64(field: string): bigint {
    this.need(8, field);
    const value = this.header.view.getBigUint64(this.at, true);
    this.at += 8;
    return value;
  }

  text(field: string, limit: number): string {
    const at = this.at;
    const length = this.count(`length of ${field}`, limit);
    this.fits(length, field, `its length of ${length}`, at);
    this.need(length, field);
    const text = new TextDecoder().decode(this.header.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }

  skipText(field: string): void {
    const at = this.at;
    this.need(8, field);
    // Far the most frequent call: no 64-bit number where a 32-bit one does.
    const low = this.header.view.getUint32(this.at, true);
    const high = this.header.view.getUint32(this.at + 4, true);
    if (high !== 0 || low > limits.MAX_STRING_BYTES) {
      this.count(`length of ${field}`, limits.MAX_STRING_BYTES);
    }
    this.at += 8;
    this.fits(low, field, `its length of ${low}`, at);
    this.need(low, field);
    this.at += low;
  }
}

/** `text` for a message. */
function shown(text: string): string {
  const points = [...text];
  return JSON.stringify(points.length > 64 ? points.slice(0, 64).join("") + "…" : text);
}

function checkMagic(header: HeaderBytes): void {
  const { bytes, source } = header;
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 256));
  if (head.startsWith("GGUF")) return;
  const is = /^\s*(?:\u00ef\u00bb\u00bf)?\s*<(?:!doctype|html|\?xml|head|body)/i.test(head)
    ? "it is an HTML page, not a model"
    : head.startsWith("version https://git-lfs")
    ? "it is a Git LFS pointer, not the model itself"
    : /^(?:lmgg|fmgg|tjgg|algg|ggla)/.test(head)
    ? "it is in a format older than GGUF"
    : head.startsWith("FUGG")
    ? "it is a big-endian GGUF file, which cannot be loaded"
    : /^\0+$/.test(head)
    ? "it begins with zeros, like an unfinished download"
    : `it begins with ${JSON.stringify(head.slice(0, 4))}, not like a GGUF file`;
  throw new GgufError(`${is}`, {
    file: source.name,
    offset: 0,
    field: "magic",
    expected: '"GGUF"',
  });
}

interface Counts {
  version: number;
  tensors: number;
  keys: number;
}

function scanCounts(cursor: Cursor): Counts {
  cursor.need(8, "version");
  cursor.at = 4;
  const version = cursor.u32("version");
  if ((version & 0xffff) === 0 && version !== 0) {
    cursor.refuse("it is a big-endian GGUF file, which cannot be loaded", "version", undefined, 4);
  }
  if (version !== 2 && version !== 3) {
    cursor.refuse(`version is ${version}`, "version", "2 or 3", 4);
  }
  const tensors = cursor.count("tensor count", limits.MAX_TENSORS);
  const keys = cursor.count("key count", limits.MAX_KEYS);
  return { version, tensors, keys };
}

function scanKey(
  cursor: Cursor,
  index: number,
  seen: Set<string>,
  found: { alignment: number },
): ScannedKey {
  const at = cursor.at;
  const key = cursor.text(`key ${index}`, limits.MAX_KEY_BYTES);
  if (key === "") cursor.refuse("a key is empty", `key ${index}`, undefined, at);
  const field = `key ${shown(key)}`;
  if (seen.has(key)) cursor.refuse("a key occurs twice", field, undefined, at);
  // JavaScript objects use this name for something else, and no writer of GGUF files uses it.
  if (key === "__proto__") cursor.refuse("no such key exists", field, undefined, at);

  const valueAt = cursor.at;
  let array: ScannedKey["array"];
  const type = cursor.u32(field);
  if (type > 12) cursor.refuse(`the value's type is ${type}`, field, "0 to 12", valueAt);
  if (key === "general.alignment") {
    if (type !== UINT32) cursor.refuse(`the value's type is ${type}`, field, `${UINT32}`, valueAt);
    const alignment = cursor.u32(field);
    if (
      alignment === 0 || alignment > limits.MAX_ALIGNMENT || (alignment & (alignment - 1)) !== 0
    ) {
      cursor.refuse(
        `the alignment ${alignment} is not a power of two`,
        field,
        limits.MAX_ALIGNMENT,
        valueAt + 4,
      );
    }
    found.alignment = alignment;
  } else if (type === STRING) {
    cursor.skipText(field);
  } else if (type !== ARRAY) {
    cursor.need(VALUE_BYTES[type]!, field);
    cursor.at += VALUE_BYTES[type]!;
  } else {
    const elementType = cursor.u32(field);
    if (elementType > 12 || elementType === ARRAY) {
      cursor.refuse(
        `the array's elements are of type ${elementType}`,
        field,
        "0 to 12, no arrays",
        cursor.at - 4,
      );
    }
    const countAt = cursor.at;
    const count = cursor.count(`array count of ${field}`, limits.MAX_ARRAY_COUNT);
    // Text takes its length at least.
    const bytes = count * (VALUE_BYTES[elementType] ?? 8);
    cursor.fits(bytes, field, `an array of ${count}`, countAt);
    if (elementType === STRING) {
      for (let i = 0; i < count; i++) cursor.skipText(field);
    } else {
      cursor.need(bytes, field);
      cursor.at += bytes;
    }
    array = { elementType, length: count };
  }
  seen.add(key);
  return { key, start: at, end: cursor.at, valueAt, array };
}

/** A tensor as the header has it: `offset` counts from where tensor data begin. */
function scanTensor(
  cursor: Cursor,
  index: number,
  seen: Set<string>,
): ScannedTensor & { offsetAt: number } {
  const at = cursor.at;
  const name = cursor.text(`name of tensor ${index}`, limits.MAX_TENSOR_NAME_BYTES);
  const field = `tensor ${shown(name)}`;
  if (seen.has(name)) cursor.refuse("a tensor occurs twice", field, undefined, at);
  const dimensions = cursor.u32(field);
  if (dimensions > limits.MAX_DIMENSIONS) {
    cursor.refuse(`it has ${dimensions} dimensions`, field, limits.MAX_DIMENSIONS, cursor.at - 4);
  }
  const shape: number[] = [];
  let values = 1;
  for (let d = 0; d < dimensions; d++) {
    const size = cursor.count(`dimension ${d} of ${field}`, limits.MAX_DIMENSION);
    if (size === 0) cursor.refuse(`dimension ${d} is 0`, field, "at least 1", cursor.at - 8);
    shape.push(size);
    values *= size;
  }
  const typeId = cursor.u32(field);
  const type = GGML_TYPES.get(typeId);
  if (type === undefined) {
    return cursor.refuse(`its type ${typeId} is unknown`, field, "0 to 42", cursor.at - 4);
  }
  if ((shape[0] ?? 1) % type.blockSize !== 0) {
    cursor.refuse(
      `its rows of ${shape[0] ?? 1} values do not fill blocks of type ${type.name}`,
      field,
      `a multiple of ${type.blockSize}`,
    );
  }
  const bytes = values / type.blockSize * type.bytes;
  if (values > Number.MAX_SAFE_INTEGER || bytes > Number.MAX_SAFE_INTEGER) {
    cursor.refuse(
      `its shape ${shape.join(" x ")} is too large`,
      field,
      Number.MAX_SAFE_INTEGER,
      at,
    );
  }
  const offset = cursor.count(`data offset of ${field}`, Number.MAX_SAFE_INTEGER);
  seen.add(name);
  return { name, type, shape, offset, bytes, describedAt: at, offsetAt: cursor.at - 8 };
}

/** Scans the header of `source`. */
export async function scanHeader(source: OpenSource): Promise<Scan> {
  const header = new HeaderBytes(source);
  if (source.size === 0) {
    throw new GgufError("the file is empty", { file: source.name, offset: 0, field: "magic" });
  }
  const first = Math.min(source.size, FIRST_READ);
  await header.grow(new NeedMore(first, "magic", 0));
  checkMagic(header);

  let at = 0;
  // A step that runs out of bytes starts over once more are read: it has no effect before it ends.
  const step = async <T>(scan: (cursor: Cursor) => T): Promise<T> => {
    for (;;) {
      const cursor = new Cursor(header, at);
      try {
        const result = scan(cursor);
        at = cursor.at;
        return result;
      } catch (error) {
        if (!(error instanceof NeedMore)) throw error;
        await header.grow(error);
      }
    }
  };

  const counts = await step(scanCounts);
  const found = { alignment: 32 };
  const seen = new Set<string>();
  const keys: ScannedKey[] = [];
  for (let i = 0; i < counts.keys; i++) {
    keys.push(await step((cursor) => scanKey(cursor, i, seen, found)));
  }
  const tensorsAt = at;
  const names = new Set<string>();
  const tensors: (ScannedTensor & { offsetAt: number })[] = [];
  for (let i = 0; i < counts.tensors; i++) {
    tensors.push(await step((cursor) => scanTensor(cursor, i, names)));
  }

  const { alignment } = found;
  const pad = (n: number) => Math.ceil(n / alignment) * alignment;
  const dataOffset = pad(at);
  let expected = 0;
  for (const tensor of tensors) {
    const field = `tensor ${shown(tensor.name)}`;
    const details = { file: source.name, offset: tensor.offsetAt, field };
    if (tensor.offset !== expected) {
      throw new GgufError(
        `its data offset is ${tensor.offset}, where ${expected} follows from those before it`,
        details,
      );
    }
    const end = dataOffset + tensor.offset + tensor.bytes;
    if (end > source.size) {
      throw new GgufError(
        `the file is cut: the tensor's data end at byte ${end}, the file at byte ${source.size}`,
        { ...details, limit: source.size },
      );
    }
    expected = pad(tensor.offset + tensor.bytes);
    if (expected > Number.MAX_SAFE_INTEGER) throw new GgufError("its data are too large", details);
  }
  return {
    bytes: header.bytes.subarray(0, at),
    version: counts.version,
    keys,
    tensorsAt,
    dataOffset,
    alignment,
    tensors: tensors.map(({ offsetAt: _, ...tensor }) => ({
      ...tensor,
      offset: dataOffset + tensor.offset,
    })),
  };
}
