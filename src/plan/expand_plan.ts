import { checkModel } from "./_check_plan.ts";
import { checkedPlan } from "./_checked_plan.ts";
import { effectivePlan } from "./_effective_plan.ts";
import { parsePlan } from "./parse_plan.ts";
import type { EffectivePlan, Plan } from "./types.ts";

/** Options for {@linkcode expandPlan}. */
export interface ExpandPlanOptions {
  /** Next-token (MTP) layers of the model, which no plan touches. Default 0. */
  nextn?: number | undefined;
}

/**
 * Applies a plan to a model of `nLayer` layers.
 *
 * Blocks are applied one after another; each inserts its layers after the last place where its last layer stands, so
 * overlapping and repeated blocks are legal and their order matters.
 *
 * @param plan The plan, or its text.
 * @param nLayer Layers the model has, without next-token layers.
 * @param options What else is known of the model.
 * @returns The plan in full.
 * @throws {SyntaxError} If the text cannot be parsed.
 * @throws {RangeError} If a layer is not one of the model's, or there would be too many.
 *
 * @example
 * ```ts
 * import { expandPlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const plan = expandPlan("3,6;4,6", 8);
 * assertEquals(plan.layers, [0, 1, 2, 3, 4, 5, 3, 4, 5, 4, 5, 6, 7]);
 * assertEquals(plan.seams, [6, 9]);
 * ```
 */
export function expandPlan(
  plan: Plan | string,
  nLayer: number,
  options: ExpandPlanOptions = {},
): EffectivePlan {
  const model = { nLayer, nextn: options.nextn ?? 0 };
  checkModel(model.nLayer, model.nextn);
  const checked = typeof plan === "string" ? parsePlan(plan, model) : checkedPlan(plan, model);
  return effectivePlan(checked, nLayer);
}
