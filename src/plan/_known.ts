import { type Checked, checkPlan, type Position } from "./_check_plan.ts";
import type { LayerRun, ParsePlanOptions, Plan } from "./types.ts";

/** What to check the plans of our own readers by. They are frozen, so that their `spec` stays true. */
const read = new WeakMap<Plan, Checked | undefined>();

/** Freezes a plan and keeps what it is to be checked by once its model is known. */
export function known<P extends Plan>(
  plan: P,
  entries: readonly LayerRun[],
  positions: readonly Position[] = [],
): P {
  const { kind, spec } = plan;
  read.set(plan, kind === "none" ? undefined : { kind, spec, entries, positions });
  if (plan.kind === "spec") freezeRuns(plan.blocks);
  if (plan.kind === "path") Object.freeze(plan.layers);
  return Object.freeze(plan);
}

/** Freezes runs. */
export function freezeRuns(runs: readonly LayerRun[]): readonly LayerRun[] {
  for (const run of runs) Object.freeze(run);
  return Object.freeze(runs);
}

/** Checks a plan that one of our readers made; false if none did. */
export function checkKnown(plan: Plan, options: ParsePlanOptions): boolean {
  const checked = read.get(plan);
  if (checked) checkPlan(checked, options);
  return read.has(plan);
}
