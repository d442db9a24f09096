const OFFSET_BASIS = 0xcbf29ce484222325n;
const PRIME = 0x100000001b3n;
const MASK = 0xffffffffffffffffn;

/**
 * Hashes a path, to tell whose saved state is whose.
 *
 * 64-bit FNV-1a over the layer numbers, each as four bytes, least significant first: begin with
 * 0xcbf29ce484222325; for every byte, exclusive-or it into the hash, then multiply by 0x100000001b3 modulo 2^64.
 * The C++ half computes the same.
 *
 * @param layers Source layers, in the order they run.
 * @returns The hash.
 * @throws {RangeError} If a layer is not an unsigned 32-bit number.
 *
 * @example
 * ```ts
 * import { planHash } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(planHash([]), 0xcbf29ce484222325n);
 * assertEquals(planHash([0, 1, 1, 2]) === planHash([0, 1, 2]), false);
 * ```
 */
export function planHash(layers: readonly number[]): bigint {
  let hash = OFFSET_BASIS;
  for (const il of layers) {
    if (!Number.isInteger(il) || il < 0 || il > 0xffff_ffff) {
      throw new RangeError(`Cannot hash layer ${il}: not an unsigned 32-bit number`);
    }
    for (let shift = 0; shift < 32; shift += 8) {
      hash = ((hash ^ BigInt((il >>> shift) & 0xff)) * PRIME) & MASK;
    }
  }
  return hash;
}

/**
 * Writes a path's hash as text.
 *
 * @param layers Source layers, in the order they run.
 * @returns {@linkcode planHash} as 16 hexadecimal digits.
 * @throws {RangeError} If a layer is not an unsigned 32-bit number.
 *
 * @example
 * ```ts
 * import { planHashHex } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(planHashHex([]), "cbf29ce484222325");
 * ```
 */
export function planHashHex(layers: readonly number[]): string {
  return planHash(layers).toString(16).padStart(16, "0");
}
