import { editDistance } from "../../options/edit_distance.ts";

/**
 * The name that was most likely meant by a mistyped one.
 *
 * @param wrong What was typed.
 * @param names The names that exist.
 * @returns The nearest of `names`, or undefined if none is near.
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
  // Every other name is near one of one or two letters; only the same letters count there.
  let least = length < 3 ? 0.6 : Math.max(1, Math.floor(length / 3)) + 0.5;
  for (const name of names) {
    if (Math.abs(plain(name).length - length) > least) continue;
    // The number of dashes matters less than any letter.
    const d = editDistance(plain(wrong), plain(name)) + (wrong === name ? 0 : 0.01);
    if (d < least) [best, least] = [name, d];
  }
  if (best !== undefined) return best;
  // A name that was cut short, such as --repeat for --repeat-layers.
  const stem = wrong.toLowerCase();
  if (stem.replace(/^-+/, "").length < 3) return undefined;
  for (const name of names) if (name.startsWith(stem)) return name;
  return undefined;
}
