import { editDistance } from "../../options/edit_distance.ts";

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
    const d = editDistance(plain(wrong), plain(name)) + (wrong === name ? 0 : 0.01);
    if (d < least) [best, least] = [name, d];
  }
  if (best !== undefined) return best;
  // A name cut short or gone on with, such as --repeat for --repeat-layers.
  const stem = wrong.toLowerCase();
  if (stem.replace(/^-+/, "").length < 3) return undefined;
  for (const name of names) if (name.startsWith(stem)) return name;
  return undefined;
}
