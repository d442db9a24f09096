import { checkPlan } from "./_check_plan.ts";
import { checkKnown, known } from "./_known.ts";
import { formatPlan } from "./format_plan.ts";
import { parsePlan } from "./parse_plan.ts";
import { show } from "./_text.ts";
import { isObject } from "../json.ts";
import { type LayerRun, MAX_LAYERS, type ParsePlanOptions, type Plan } from "./types.ts";

/**
 * Checks a plan object. Its blocks or layers decide what runs: if its `spec` says something else, the text is
 * replaced, so that no message names a plan that does not run.
 */
export function checkedPlan(plan: Plan, options: ParsePlanOptions): Plan {
  if (checkKnown(plan, options)) return plan;
  const { kind, spec } = plan;
  if (typeof spec !== "string") {
    throw new TypeError(`A plan's spec must be text, not ${show(spec)}`);
  }
  if (kind === "none") return known({ kind, spec: agreed({ kind, spec }, spec) }, []);
  if (kind !== "spec" && kind !== "path") {
    throw new TypeError(`A plan's kind must be "none", "spec" or "path", not ${show(kind)}`);
  }
  const list: unknown = kind === "spec" ? plan.blocks : plan.layers;
  const name = kind === "spec" ? "blocks" : "layers";
  if (!Array.isArray(list)) {
    throw new TypeError(`A plan of kind "${kind}" needs ${name}, a list, not ${show(list)}`);
  }
  if (list.length === 0) {
    throw new RangeError(
      'A plan must have at least one block or layer; "none" is the model\'s own layers',
    );
  }
  if (list.length > MAX_LAYERS) {
    throw new RangeError(`A plan has at most ${MAX_LAYERS} ${name}, not ${list.length}`);
  }
  const entries = list.map((one: unknown, i): LayerRun => {
    const run = kind === "spec"
      ? one
      : { repeatStart: one, repeatEnd: Number(one) + 1, repeatCount: 1 };
    if (!isObject(run)) throw new TypeError(`blocks[${i}] must be an object, not ${show(run)}`);
    return {
      repeatStart: whole(run.repeatStart),
      repeatEnd: whole(run.repeatEnd),
      repeatCount: whole(run.repeatCount),
    };
  });
  const copy: Plan = kind === "spec"
    ? { kind, spec, blocks: entries }
    : { kind, spec, layers: entries.map((run) => run.repeatStart) };
  const text = agreed(copy, spec);
  // With the places in the text, if there is one.
  if (text === spec) parsePlan(spec, options);
  checkPlan({ kind, spec: text, entries }, options);
  return known({ ...copy, spec: text }, entries);
}

function whole(value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  throw new TypeError(`Layer numbers must be whole numbers from 0, not ${show(value)}`);
}

/** `spec` if it says what the plan does, else the plan's own text. */
function agreed(plan: Plan, spec: string): string {
  try {
    const said = parsePlan(spec);
    if (formatPlan(said) === formatPlan(plan)) return spec;
  } catch {
    // Not in the grammar.
  }
  return formatPlan(plan);
}
