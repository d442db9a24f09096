/**
 * Layer plans: which of a model's layers run, in what order, and what that costs. Pure code with no input or output; it
 * runs wherever JavaScript does.
 *
 * @example
 * ```ts
 * import { expandPlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const plan = expandPlan("26,34", 64);
 * assertEquals(plan.nLayerEff, 72);
 * assertEquals(plan.layers.slice(32, 36), [32, 33, 26, 27]);
 * ```
 *
 * @module
 */

export * from "./types.ts";
export * from "./parse_plan.ts";
export * from "./read_plan.ts";
export * from "./format_plan.ts";
export * from "./resolve_plan.ts";
export * from "./expand_plan.ts";
export * from "./plan_seams.ts";
export * from "./plan_advisories.ts";
export * from "./layers_to_runs.ts";
export * from "./pack_plan.ts";
export * from "./plan_json.ts";
export * from "./plan_hash.ts";
export * from "./cost.ts";
export * from "./suggest_plans.ts";
export * from "./mergekit.ts";
export * from "./relayer.ts";
