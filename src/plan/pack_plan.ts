import type { EffectivePlan, LayerRun } from "./types.ts";

/** How the words of a packed plan are to be read. */
export const PlanKind = {
  /** No words: the model's own layers. */
  NONE: 0,
  /** Each triple is a block, inserted `repeat_count - 1` more times after the last place of layer `repeat_end - 1`. */
  SPEC: 1,
  /** Each triple is a run; the runs one after another are the path. */
  PATH: 2,
} as const;

/** A plan as it crosses to C++. */
export interface PackedPlan {
  /** One of {@linkcode PlanKind}. */
  kind: 0 | 1 | 2;
  /** Triples of repeat_start, repeat_end, repeat_count (passes in all). */
  words: Uint32Array;
}

/**
 * Packs a plan into words for the C ABI. A plan that runs every layer in order, blocks of them several times, crosses as
 * those blocks; any other as the runs of its path.
 *
 * @param plan The plan on its model.
 * @returns Its kind, and three words for each block (kind 1) or run (kind 2).
 *
 * @example
 * ```ts
 * import { expandPlan, packPlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const { kind, words } = packPlan(expandPlan("43,45;28,34", 64));
 * assertEquals(kind, 1);
 * assertEquals([...words], [28, 34, 2, 43, 45, 2]);
 * ```
 */
export function packPlan({ nLayer, runs }: EffectivePlan): PackedPlan {
  const next = (k: number) => runs[k]?.repeatStart ?? nLayer;
  const isInOrder = next(0) === 0 && runs.every((run, k) => run.repeatEnd === next(k + 1));
  if (!isInOrder) return { kind: PlanKind.PATH, words: wordsOf(runs) };
  const blocks = runs.filter((run) => run.repeatCount > 1);
  return { kind: blocks.length > 0 ? PlanKind.SPEC : PlanKind.NONE, words: wordsOf(blocks) };
}

function wordsOf(runs: readonly LayerRun[]): Uint32Array {
  return Uint32Array.from(
    runs.flatMap((run) => [run.repeatStart, run.repeatEnd, run.repeatCount]),
  );
}
