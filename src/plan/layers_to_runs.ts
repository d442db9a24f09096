import { type LayerRun, MAX_LAYERS } from "./types.ts";

/**
 * Run-length codes a path.
 *
 * The rule, which makes the result one of a kind: from the left, take the longest stretch in which each layer follows
 * the one before, `a..b`. If right after it the layers `s..b` come again, whole, for some `s` in the stretch, and so on
 * `k` times in a row, the stretch is cut at `s`: `a..s-1` once (if there is such a part) and `s..b` `k + 1` times.
 * Otherwise it is one run. Then on from there.
 *
 * @param layers Source layers, in the order they run.
 * @returns The runs; {@linkcode runsToLayers} gives `layers` back.
 *
 * @example
 * ```ts
 * import { layersToRuns } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(layersToRuns([0, 1, 2, 1, 2, 3]), [
 *   { repeatStart: 0, repeatEnd: 1, repeatCount: 1 },
 *   { repeatStart: 1, repeatEnd: 3, repeatCount: 2 },
 *   { repeatStart: 3, repeatEnd: 4, repeatCount: 1 },
 * ]);
 * ```
 */
export function layersToRuns(layers: readonly number[]): LayerRun[] {
  const runs: LayerRun[] = [];
  const followsOn = (from: number, start: number, end: number): boolean => {
    for (let il = start; il < end; il++) if (layers[from + il - start] !== il) return false;
    return true;
  };
  for (let p = 0; p < layers.length;) {
    const start = layers[p]!;
    let q = p + 1;
    while (q < layers.length && layers[q] === layers[q - 1]! + 1) q++;
    const end = start + (q - p);
    const again = layers[q] ?? -1;
    let passes = 1;
    if (again >= start && again < end) {
      while (followsOn(q, again, end)) {
        passes++;
        q += end - again;
      }
    }
    if (passes > 1) {
      if (again > start) runs.push({ repeatStart: start, repeatEnd: again, repeatCount: 1 });
      runs.push({ repeatStart: again, repeatEnd: end, repeatCount: passes });
    } else {
      runs.push({ repeatStart: start, repeatEnd: end, repeatCount: 1 });
    }
    p = q;
  }
  return runs;
}

/**
 * Writes runs out as a path.
 *
 * @param runs The runs.
 * @returns Source layers, in the order they run.
 * @throws {RangeError} If a run is empty, or all of them are longer than any context.
 *
 * @example
 * ```ts
 * import { runsToLayers } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(runsToLayers([{ repeatStart: 1, repeatEnd: 3, repeatCount: 2 }]), [1, 2, 1, 2]);
 * ```
 */
export function runsToLayers(runs: readonly LayerRun[]): number[] {
  const layers: number[] = [];
  for (const { repeatStart, repeatEnd, repeatCount } of runs) {
    const width = repeatEnd - repeatStart;
    if (
      !(repeatStart >= 0 && width > 0 && repeatCount >= 1) || !Number.isInteger(width * repeatCount)
    ) {
      throw new RangeError(`Run ${repeatStart},${repeatEnd} x${repeatCount} is empty`);
    }
    if (layers.length + width * repeatCount > MAX_LAYERS) {
      throw new RangeError(
        `Run ${repeatStart},${repeatEnd} x${repeatCount} makes more than ${MAX_LAYERS} layers`,
      );
    }
    for (let n = 0; n < repeatCount; n++) {
      for (let il = repeatStart; il < repeatEnd; il++) layers.push(il);
    }
  }
  return layers;
}
