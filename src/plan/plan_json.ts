import type { EffectivePlan } from "./types.ts";

/** {@linkcode EffectivePlan} as it is printed, sent and stored. */
export interface PlanJson {
  /** Layers the model has. */
  n_layer: number;
  /** Layers that run. */
  n_layer_eff: number;
  /** The plan as the user wrote it. */
  spec: string;
  /** Source layers in the order they run. */
  layers: number[];
  /** The same, run-length coded. */
  runs: { repeat_start: number; repeat_end: number; repeat_count: number }[];
  /** Places whose layer does not follow the one before. */
  seams: number[];
  /** Warnings. */
  advisories: string[];
}

/**
 * Gives a plan the names it has outside of TypeScript.
 *
 * @param plan The plan.
 * @returns An object for `JSON.stringify`.
 *
 * @example
 * ```ts
 * import { expandPlan, planToJson } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(planToJson(expandPlan("26,34", 64)).runs, [
 *   { repeat_start: 0, repeat_end: 26, repeat_count: 1 },
 *   { repeat_start: 26, repeat_end: 34, repeat_count: 2 },
 *   { repeat_start: 34, repeat_end: 64, repeat_count: 1 },
 * ]);
 * ```
 */
export function planToJson(plan: EffectivePlan): PlanJson {
  return {
    n_layer: plan.nLayer,
    n_layer_eff: plan.nLayerEff,
    spec: plan.spec,
    layers: [...plan.layers],
    runs: plan.runs.map((run) => ({
      repeat_start: run.repeatStart,
      repeat_end: run.repeatEnd,
      repeat_count: run.repeatCount,
    })),
    seams: [...plan.seams],
    advisories: [...plan.advisories],
  };
}
