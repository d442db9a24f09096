import { checkPlan } from "./_check_plan.ts";
import { known } from "./_known.ts";
import { formatPlan } from "./format_plan.ts";
import type { LayerRun, ParsePlanOptions, PathPlan } from "./types.ts";

/** The path that ranges of layers make, checked before it is expanded. */
export function pathOf(ranges: readonly LayerRun[], options: ParsePlanOptions): PathPlan {
  const written = ranges.map(({ repeatStart, repeatEnd }) =>
    repeatEnd - repeatStart === 1 ? `${repeatStart}` : `${repeatStart}..${repeatEnd - 1}`
  );
  checkPlan({ kind: "path", spec: `layers:${written.join(",")}`, entries: ranges }, options);
  const layers: number[] = [];
  for (const { repeatStart, repeatEnd } of ranges) {
    for (let il = repeatStart; il < repeatEnd; il++) layers.push(il);
  }
  const spec = formatPlan({ kind: "path", spec: "", layers });
  return known({ kind: "path", spec, layers }, ranges);
}

/** A layer as a range of one. */
export function oneLayer(il: number): LayerRun {
  return { repeatStart: il, repeatEnd: il + 1, repeatCount: 1 };
}
