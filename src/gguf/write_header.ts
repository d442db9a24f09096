import { GGML_TYPES, type GgmlType } from "./ggml_types.ts";
import type { GgufValueTypeName } from "./types.ts";

/** The number that stands for a type of value in a file. */
export const VALUE_TYPES: Readonly<Record<GgufValueTypeName, number>> = {
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
};

const TYPE_NUMBERS: ReadonlyMap<string, number> = new Map(
  [...GGML_TYPES].map(([id, { name }]) => [name, id]),
);

/** A key's value, of the few types that are written here. */
export type NewValue =
  | { type: "uint16" | "uint32" | "int32" | "float32"; value: number }
  | { type: "string"; value: string }
  | { type: "array"; elementType: "bool" | "uint32"; value: readonly number[] };

/** A tensor's entry in a header. */
export interface TensorEntry {
  /** Its name. */
  name: string;
  /** Its number format. */
  type: GgmlType;
  /** Its dimensions, the fastest first. */
  shape: readonly number[];
  /** Where its data begin, from the beginning of the data. */
  offset: number;
}

/** Bytes that become longer. */
class Bytes {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  #room(length: number): number {
    const at = this.#length;
    this.#length += length;
    if (this.#length > this.#bytes.length) {
      const bytes = new Uint8Array(Math.max(this.#length, 2 * this.#bytes.length));
      bytes.set(this.#bytes);
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer);
    }
    return at;
  }

  raw(bytes: Uint8Array): this {
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
    return this;
  }

  u8(value: number): this {
    const at = this.#room(1);
    this.#view.setUint8(at, value);
    return this;
  }

  u16(value: number): this {
    const at = this.#room(2);
    this.#view.setUint16(at, value, true);
    return this;
  }

  u32(value: number): this {
    const at = this.#room(4);
    this.#view.setUint32(at, value, true);
    return this;
  }

  f32(value: number): this {
    const at = this.#room(4);
    this.#view.setFloat32(at, value, true);
    return this;
  }

  u64(value: number): this {
    const at = this.#room(8);
    this.#view.setBigUint64(at, BigInt(value), true);
    return this;
  }

  text(value: string): this {
    const bytes = new TextEncoder().encode(value);
    return this.u64(bytes.length).raw(bytes);
  }

  done(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }
}

/**
 * The bytes of a key and its value.
 *
 * @param key The key.
 * @param value Its value.
 */
export function keyBytes(key: string, value: NewValue): Uint8Array<ArrayBuffer> {
  const out = new Bytes().text(key).u32(VALUE_TYPES[value.type]);
  switch (value.type) {
    case "uint16":
      return out.u16(value.value).done();
    case "uint32":
    case "int32":
      return out.u32(value.value).done();
    case "float32":
      return out.f32(value.value).done();
    case "string":
      return out.text(value.value).done();
    case "array":
      out.u32(VALUE_TYPES[value.elementType]).u64(value.value.length);
      for (const item of value.value) value.elementType === "bool" ? out.u8(item) : out.u32(item);
      return out.done();
  }
}

/**
 * The bytes of a key whose value is a list, with other elements of that list.
 *
 * @param key The key.
 * @param value The list as a file has it, from the value's type on; its elements are of one size.
 * @param places Which elements, in their new order.
 */
export function pickedListBytes(
  key: string,
  value: Uint8Array,
  places: readonly number[],
): Uint8Array<ArrayBuffer> {
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  const [elementType, length] = [view.getUint32(4, true), Number(view.getBigUint64(8, true))];
  const size = (value.length - 16) / length;
  const out = new Bytes().text(key).u32(VALUE_TYPES.array).u32(elementType).u64(places.length);
  for (const place of places) out.raw(value.subarray(16 + place * size, 16 + (place + 1) * size));
  return out.done();
}

/**
 * A file's header, padded to where its data begin.
 *
 * @param keys Each key with its value.
 * @param tensors The tensors.
 * @param alignment What data are aligned to.
 */
export function headerBytes(
  keys: readonly Uint8Array[],
  tensors: readonly TensorEntry[],
  alignment: number,
): Uint8Array<ArrayBuffer> {
  const out = new Bytes().raw(new TextEncoder().encode("GGUF")).u32(3);
  out.u64(tensors.length).u64(keys.length);
  for (const key of keys) out.raw(key);
  for (const { name, type, shape, offset } of tensors) {
    out.text(name).u32(shape.length);
    for (const size of shape) out.u64(size);
    out.u32(TYPE_NUMBERS.get(type.name)!).u64(offset);
  }
  const bytes = out.done();
  if (tensors.length === 0) return bytes;
  const padded = new Uint8Array(Math.ceil(bytes.length / alignment) * alignment);
  padded.set(bytes);
  return padded;
}
