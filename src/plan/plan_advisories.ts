import { edgeLayers } from "./_edge.ts";

/**
 * Warns of plans that tend to damage a model: layers at its very start or end that are repeated, and layers that do not
 * run at all.
 *
 * @param layers Source layers, in the order they run.
 * @param nLayer Layers the model has.
 * @returns One sentence for each end that is touched, and one for all layers left out; warnings, never a reason to
 * refuse.
 *
 * @example
 * ```ts
 * import { planAdvisories } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(planAdvisories([0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 12).length, 1);
 * assertEquals(planAdvisories([0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11], 12), []);
 * assertEquals(planAdvisories([0, 1, 2, 3], 12), [
 *   "8 of 12 layers are skipped (4..11); leaving layers out usually makes a model worse",
 * ]);
 * ```
 */
export function planAdvisories(layers: readonly number[], nLayer: number): string[] {
  const edge = edgeLayers(nLayer);
  const seen = new Set<number>();
  const repeated = new Set<number>();
  for (const il of layers) {
    if (seen.has(il)) repeated.add(il);
    seen.add(il);
  }
  const advise = (hits: number[], where: string): string[] =>
    hits.length === 0 ? [] : [
      `${
        hits.length === 1 ? `layer ${hits[0]} is` : `layers ${ranges(hits)} are`
      } repeated, within the ${where} ` +
      `${edge} of ${nLayer} layers; repeating these usually makes a model worse`,
    ];
  const sorted = [...repeated].sort((a, b) => a - b);
  const skipped = Array.from({ length: nLayer }, (_, il) => il).filter((il) => !seen.has(il));
  return [
    ...advise(sorted.filter((il) => il < edge), "first"),
    ...advise(sorted.filter((il) => il >= nLayer - edge), "last"),
    ...skipped.length === 0 ? [] : [
      `${skipped.length} of ${nLayer} layers ${skipped.length === 1 ? "is" : "are"} skipped (${
        ranges(skipped)
      }); leaving layers out usually makes a model worse`,
    ],
  ];
}

/** `[1, 2, 3, 5]` as `1..3,5`. */
function ranges(sorted: readonly number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < sorted.length;) {
    let j = i + 1;
    while (j < sorted.length && sorted[j] === sorted[j - 1]! + 1) j++;
    parts.push(j - i > 1 ? `${sorted[i]}..${sorted[j - 1]}` : `${sorted[i]}`);
    i = j;
  }
  return parts.join(",");
}
