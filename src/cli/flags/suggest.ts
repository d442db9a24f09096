/**
 * The name that a mistyped one was most likely meant to be.
 *
 * @param wrong What was typed.
 * @param names What exists.
 * @returns The nearest of `names`, or undefined where none is near.
 *
 * @example
 * ```ts ignore
 * suggest("--repeat-layer", ["--repeat-layers", "--repeat-penalty"]); // "--repeat-layers"
 * ```
 */
export function suggest(wrong: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  const plain = (text: string) => text.replace(/^-+/, "");
  const { length } = plain(wrong);
  // Of one letter or two any other is near; only the same ones are meant.
  let least = length < 3 ? 0.6 : Math.max(1, Math.floor(length / 3)) + 0.5;
  for (const name of names) {
    if (Math.abs(plain(name).length - length) > least) continue;
    // How many dashes there are matters less than any letter.
    const d = distance(plain(wrong), plain(name)) + (wrong === name ? 0 : 0.01);
    if (d < least) [best, least] = [name, d];
  }
  if (best !== undefined) return best;
  // A name cut short or gone on with, such as --repeat for --repeat-layers.
  const stem = wrong.toLowerCase();
  if (stem.replace(/^-+/, "").length < 3) return undefined;
  for (const name of names) if (name.startsWith(stem)) return name;
  return undefined;
}

/** Letters to insert, delete, replace or swap with the next to get from `a` to `b`; a wrong case costs little. */
function distance(a: string, b: string): number {
  let two: number[] = [];
  let one = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const x = a[i - 1]!, y = b[j - 1]!;
      const change = x === y ? 0 : x.toLowerCase() === y.toLowerCase() ? 0.25 : 1;
      let d = Math.min(one[j]! + 1, row[j - 1]! + 1, one[j - 1]! + change);
      if (i > 1 && j > 1 && x === b[j - 2] && a[i - 2] === y) d = Math.min(d, two[j - 2]! + 1);
      row.push(d);
    }
    two = one;
    one = row;
  }
  return one[b.length]!;
}
