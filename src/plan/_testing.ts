// Shared by tests; not published.

/** A seeded generator of numbers in [0, 1): mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from `low` to `high`, both included. */
export function between(random: () => number, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1));
}

/** The same, two times in three near the ends. */
export function pick<T>(random: () => number, items: readonly T[]): T {
  return items[between(random, 0, items.length - 1)]!;
}

/** What a block is in the tests' own terms: `times` insertions of `i..j-1`. */
export interface TestBlock {
  i: number;
  j: number;
  times: number;
}

/**
 * Expands blocks another way than the product does: as rewriting of a word. A layer is one letter; a block is the word of
 * its letters; inserting it after the last place of its last letter is one greedy regular-expression replacement.
 */
export function rewriteExpand(nLayer: number, blocks: readonly TestBlock[]): number[] {
  const letter = (il: number) => String.fromCodePoint(0x4e00 + il);
  let word = "";
  for (let il = 0; il < nLayer; il++) word += letter(il);
  for (const { i, j, times } of blocks) {
    let insert = "";
    for (let il = i; il < j; il++) insert += letter(il);
    word = word.replace(
      new RegExp(`^(.*${letter(j - 1)})`, "u"),
      (head) => head + insert.repeat(times),
    );
  }
  return [...word].map((c) => c.codePointAt(0)! - 0x4e00);
}
