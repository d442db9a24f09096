import { type EffectivePlan, planHashHex } from "../../plan/mod.ts";

/**
 * A plan in few characters: as it was written, or its hash where that is long.
 *
 * @param plan The plan.
 */
export function shortSpec(plan: EffectivePlan): string {
  return plan.spec.length <= 64 ? plan.spec : planHashHex(plan.layers);
}
