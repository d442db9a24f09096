/**
 * Finds the places where a path does not go on with the next layer.
 *
 * @param layers Source layers, in the order they run.
 * @returns Positions `p` where `layers[p]` is not `layers[p - 1] + 1`.
 *
 * @example
 * ```ts
 * import { planSeams } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(planSeams([0, 1, 2, 1, 2, 3]), [3]);
 * ```
 */
export function planSeams(layers: readonly number[]): number[] {
  const seams: number[] = [];
  for (let p = 1; p < layers.length; p++) if (layers[p] !== layers[p - 1]! + 1) seams.push(p);
  return seams;
}
