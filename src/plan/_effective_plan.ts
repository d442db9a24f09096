import { freezeRuns } from "./_known.ts";
import { layersToRuns } from "./layers_to_runs.ts";
import { planAdvisories } from "./plan_advisories.ts";
import { planSeams } from "./plan_seams.ts";
import type { EffectivePlan, LayerRun, Plan } from "./types.ts";

const made = new WeakSet<object>();

/** Whether `value` is a plan that was resolved here; it is frozen, and needs no second check. */
export function isResolved(value: unknown): value is EffectivePlan {
  return typeof value === "object" && value !== null && made.has(value);
}

/** A plan that was checked, in full. */
export function effectivePlan(plan: Plan, nLayer: number): EffectivePlan {
  let layers: number[];
  if (plan.kind === "path") {
    layers = [...plan.layers];
  } else {
    layers = Array.from({ length: nLayer }, (_, il) => il);
    if (plan.kind === "spec") { for (const block of plan.blocks) insertBlock(layers, block); }
  }
  const effective: EffectivePlan = Object.freeze({
    nLayer,
    nLayerEff: layers.length,
    spec: plan.spec,
    layers: Object.freeze(layers),
    runs: freezeRuns(layersToRuns(layers)),
    seams: Object.freeze(planSeams(layers)),
    advisories: Object.freeze(planAdvisories(layers, nLayer)),
  });
  made.add(effective);
  return effective;
}

function insertBlock(layers: number[], { repeatStart, repeatEnd, repeatCount }: LayerRun): void {
  const block = Array.from({ length: repeatEnd - repeatStart }, (_, i) => repeatStart + i);
  const after = layers.lastIndexOf(repeatEnd - 1) + 1;
  for (let n = 1; n < repeatCount; n++) layers.splice(after, 0, ...block);
}
