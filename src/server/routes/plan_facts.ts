import type { EffectivePlan } from "../../engine/mod.ts";
import { estimateCost, planHashHex, planToJson } from "../../plan/mod.ts";
import type { LoadedModel } from "../life/loaded_model.ts";

/**
 * What a plan is and costs on a model, for people who choose one.
 *
 * @param loaded The model.
 * @param plan The plan.
 */
export function estimateFacts(loaded: LoadedModel, plan: EffectivePlan): Record<string, unknown> {
  const facts: Record<string, unknown> = {
    ...planToJson(plan),
    plan_hash: planHashHex(plan.layers),
  };
  if (!loaded.facts) return facts;
  const cost = estimateCost(loaded.facts, plan, loaded.costOptions);
  return {
    ...facts,
    n_ctx: cost.nCtx,
    kv_bytes: cost.plan.kvBytes,
    kv_bytes_base: cost.base.kvBytes,
    recurrent_bytes: cost.plan.recurrentBytes,
    recurrent_bytes_base: cost.base.recurrentBytes,
    compute_ratio: cost.computeRatio,
    inexact: cost.inexact,
  };
}
