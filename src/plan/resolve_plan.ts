import { checkModel } from "./_check_plan.ts";
import { effectivePlan, isResolved } from "./_effective_plan.ts";
import { readPlan } from "./read_plan.ts";
import { type EffectivePlan, MAX_LAYERS, type PlanInput, type PlanModel } from "./types.ts";

/**
 * Turns what a plan was given as into the plan that runs on a model: the one way from a user's input to the engine. The
 * result is frozen and may be handed on wherever a plan is taken; it is then not looked at again.
 *
 * @param input The plan. Default: the model file's own, else none.
 * @param model What is known of the model.
 * @returns The plan in full.
 * @throws {SyntaxError} If text cannot be parsed.
 * @throws {TypeError} If it is none of the forms of {@linkcode readPlan}.
 * @throws {RangeError} If a layer is not one of the model's, there would be too many, or the plan is another model's.
 *
 * @example
 * ```ts
 * import { resolvePlan } from "@rys/edge/plan";
 * import { assertEquals, assertStrictEquals } from "@std/assert";
 *
 * const plan = resolvePlan({ blocks: [[1, 3]] }, { nLayer: 4 });
 * assertEquals(plan.layers, [0, 1, 2, 1, 2, 3]);
 * assertEquals(plan.spec, "1,3");
 * assertStrictEquals(resolvePlan(plan, { nLayer: 4 }), plan);
 * assertEquals(resolvePlan(undefined, { nLayer: 4, layerPlan: "2,3" }).layers, [0, 1, 2, 2, 3]);
 * ```
 */
export function resolvePlan(input: PlanInput | undefined, model: PlanModel): EffectivePlan {
  const { nLayer, nextn = 0, layerPlan } = model;
  checkModel(nLayer, nextn);
  const fits = isResolved(input) && input.nLayer === nLayer &&
    input.nLayerEff + nextn <= MAX_LAYERS;
  if (fits) return input;
  const given = input === undefined ? layerPlan || "none" : input;
  return effectivePlan(readPlan(given, { nLayer, nextn }), nLayer);
}
