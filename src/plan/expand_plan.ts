import { checkModel, checkPlan } from "./_check_plan.ts";
import { planAdvisories } from "./plan_advisories.ts";
import { layersToRuns } from "./layers_to_runs.ts";
import { locatePlan, type Position } from "./parse_plan.ts";
import type { EffectivePlan, LayerRun, Plan } from "./types.ts";

/** Options for {@linkcode expandPlan}. */
export interface ExpandPlanOptions {
  /** Next-token (MTP) layers of the model, which no plan touches. Default 0. */
  nextn?: number;
}

/** Where the parts of `plan` stand in its own text, if that is still what it says. */
function positionsOf(plan: Plan): Position[] {
  try {
    const located = locatePlan(plan.spec);
    const same = JSON.stringify(located.plan) === JSON.stringify(plan);
    return same ? located.positions : [];
  } catch {
    return [];
  }
}

function insertBlock(layers: number[], { repeatStart, repeatEnd, repeatCount }: LayerRun): void {
  const block = Array.from({ length: repeatEnd - repeatStart }, (_, i) => repeatStart + i);
  const after = layers.lastIndexOf(repeatEnd - 1) + 1;
  for (let n = 1; n < repeatCount; n++) layers.splice(after, 0, ...block);
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
  if (typeof plan === "string") plan = locatePlan(plan, model).plan;
  else checkAgainst(plan, model);

  let layers: number[];
  if (plan.kind === "path") {
    layers = [...plan.layers];
  } else {
    layers = Array.from({ length: nLayer }, (_, il) => il);
    if (plan.kind === "spec") { for (const block of plan.blocks) insertBlock(layers, block); }
  }
  return {
    nLayer,
    nLayerEff: layers.length,
    spec: plan.spec,
    layers,
    runs: layersToRuns(layers),
    seams: planSeams(layers),
    advisories: planAdvisories(layers, nLayer),
  };
}

function checkAgainst(plan: Plan, model: { nLayer: number; nextn: number }): void {
  if (plan.kind === "none") return;
  const entries = plan.kind === "spec" ? plan.blocks : plan.layers.map((il) => ({
    repeatStart: il,
    repeatEnd: il + 1,
    repeatCount: 1,
  }));
  for (const { repeatStart, repeatEnd, repeatCount } of entries) {
    if (![repeatStart, repeatEnd, repeatCount].every((n) => Number.isInteger(n) && n >= 0)) {
      throw new TypeError(
        `Layer numbers must be whole numbers from 0, not ${repeatStart},${repeatEnd} x${repeatCount}`,
      );
    }
  }
  if (entries.length === 0) {
    throw new RangeError(
      'A plan must have at least one block or layer; "none" is the model\'s own layers',
    );
  }
  const checked = { kind: plan.kind, spec: plan.spec, entries };
  try {
    checkPlan(checked, [], model);
  } catch (error) {
    // Said again with the positions, which are worth computing only now.
    if (plan.kind === "spec") checkPlan(checked, positionsOf(plan), model);
    else if (positionsOf(plan).length > 0) locatePlan(plan.spec, model);
    throw error;
  }
}

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
