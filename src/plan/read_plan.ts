import { layerNumber, show } from "./_text.ts";
import { isObject } from "../json.ts";
import { checkedPlan } from "./_checked_plan.ts";
import { effectivePlan } from "./_effective_plan.ts";
import { oneLayer, pathOf } from "./_path.ts";
import { isGrammar, structured } from "./_structured.ts";
import { formatPlan } from "./format_plan.ts";
import { fromMergekit, isMergekit } from "./mergekit.ts";
import { parsePlan } from "./parse_plan.ts";
import { fromRelayer } from "./relayer.ts";
import {
  type LayerRun,
  MAX_LAYERS,
  type ParsePlanOptions,
  type PathPlan,
  type Plan,
  type PlanInput,
} from "./types.ts";

/**
 * Reads a plan in any of the forms it is found in:
 *
 * - text in the grammar of {@linkcode parsePlan};
 * - a list of layers in the order they run, or of pairs `[[0, 14], [10, 40]]`: ranges in that order, each ending before
 *   its second number;
 * - a mergekit passthrough recipe, also with `modules`;
 * - a Hugging Face config with `rys_relayer`, or that object;
 * - an object with RYS's `layers`, `blocks`, `spec` or `key`, ExLlamaV3's `layer_map` or PEFT's `layer_replication`;
 * - any of these objects and lists as JSON or YAML text;
 * - a plan that was read or resolved before.
 *
 * @param value What was found.
 * @param options What is known of the model.
 * @returns The plan.
 * @throws {SyntaxError} If text cannot be parsed.
 * @throws {TypeError} If it is none of these forms, or says two different plans.
 * @throws {RangeError} If a layer is out of range.
 *
 * @example
 * ```ts
 * import { readPlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(readPlan([0, 1, 1, 2]), { kind: "path", spec: "layers:0..1,1..2", layers: [0, 1, 1, 2] });
 * assertEquals(readPlan([[0, 3], [1, 4]]).spec, "layers:0..2,1..3");
 * assertEquals(readPlan({ blocks: "1,2" }).kind, "spec");
 * assertEquals(readPlan("blocks: [[26, 34], [10, 12]]").spec, "26,34;10,12");
 * ```
 */
export function readPlan(value: unknown, options: ParsePlanOptions = {}): Plan {
  if (typeof value === "string") {
    return isGrammar(value) ? parsePlan(value, options) : readPlan(structured(value), options);
  }
  if (Array.isArray(value)) return fromList(value, options, "layers");
  if (!isObject(value)) throw unreadable(value);
  if (isPlan(value)) return checkedPlan(value, options);
  refuseOtherModel(value, options);
  if (typeof value.nLayer === "number" && Array.isArray(value.layers)) {
    return fromEffective(value.layers, value.spec, { ...options, nLayer: value.nLayer });
  }
  if (isMergekit(value)) return fromMergekit(value, options);
  if ("rys_relayer" in value || "layer_indices" in value) return fromRelayer(value, options);
  const plans = Object.entries(KEYS).flatMap(([name, read]) => {
    const given = value[name];
    const plan = given === undefined || given === null ? undefined : read(given, options);
    return plan === undefined ? [] : [{ name, plan }];
  });
  const first = plans[0];
  if (first === undefined) throw unreadable(value);
  const { nLayer } = options;
  if (nLayer === undefined) return first.plan;
  const layers = effectivePlan(first.plan, nLayer).layers.join();
  const other = plans.find(({ plan }) => effectivePlan(plan, nLayer).layers.join() !== layers);
  if (other !== undefined) {
    throw new TypeError(
      `"${first.name}" and "${other.name}" are different plans: ` +
        `${formatPlan(first.plan)} and ${formatPlan(other.plan)}`,
    );
  }
  // What was written, rather than the list that it led to.
  const written = plans.find(({ name }) => name === "spec")?.plan ?? first.plan;
  return written;
}

/** Keys that hold a plan, the most exact first; undefined for what is none. */
const KEYS: Record<string, (value: unknown, options: ParsePlanOptions) => Plan | undefined> = {
  layers: (value, options) => textOrList("layers", value, options),
  blocks(value, options) {
    if (!Array.isArray(value)) return textOrList("blocks", value, options);
    const text = value.map((block, i) => pair(block, `blocks[${i}]`).join(","));
    return parsePlan(text.join(";"), options);
  },
  layer_map(value, options) {
    if (typeof value !== "string") return textOrList("layer_map", value, options);
    return parsePlan(prefixed("layers:", oneLine(value)), options);
  },
  layer_replication: (value, options) => textOrList("layer_replication", value, options),
  spec(value, options) {
    if (typeof value !== "string") return undefined;
    const text = oneLine(value);
    try {
      parsePlan(text);
    } catch (error) {
      // Other tools may put prose there; what has the look of a plan is one.
      if (error instanceof SyntaxError && !/^(?:\(?\d|layers:|blocks:|none)/.test(text)) {
        return undefined;
      }
      throw error;
    }
    return parsePlan(text, options);
  },
  key(value, options) {
    if (typeof value === "string") return parsePlan(oneLine(value), options);
    if (!Array.isArray(value)) return undefined;
    // RYS's results stand under the block's two ends, or under the whole path.
    return value.length === 2
      ? parsePlan(pair(value, "key").join(","), options)
      : fromList(value, options, "key");
  },
};

function unreadable(value: unknown): TypeError {
  const hint = isObject(value) && "models" in value
    ? '; a recipe with "models" merges weights, which a plan cannot do'
    : "";
  return new TypeError(
    `Cannot read a plan from ${
      show(value)
    }: expected text, a list of layers, or an object with slices, modules, rys_relayer, layers, blocks, ` +
      `layer_map, layer_replication, spec or key${hint}`,
  );
}

function isPlan(value: Record<string, unknown>): value is Record<string, unknown> & Plan {
  return typeof value.kind === "string" && "spec" in value;
}

/** An {@linkcode EffectivePlan} that was copied or changed: its layers are what runs, and its text is kept if it is theirs. */
function fromEffective(list: unknown[], spec: unknown, options: ParsePlanOptions): Plan {
  const plan = fromList(list, options, "layers");
  try {
    const said = parsePlan(String(spec), options);
    if (effectivePlan(said, options.nLayer!).layers.join() === plan.layers.join()) return said;
  } catch {
    // Not in the grammar, or not for this model.
  }
  return plan;
}

/** A plan in full knows the size of its model. */
function refuseOtherModel(value: Record<string, unknown>, { nLayer }: ParsePlanOptions): void {
  const its = value.nLayer ?? value.n_layer;
  if (typeof its !== "number" || nLayer === undefined || its === nLayer) return;
  throw new RangeError(`The plan is for a model of ${its} layers, and this one has ${nLayer}`);
}

/** Text of a recipe, which may stand on several lines. */
function oneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, " ");
}

function prefixed(prefix: string, text: string): string {
  return text.startsWith(prefix) ? text : prefix + text;
}

function textOrList(name: string, value: unknown, options: ParsePlanOptions): Plan {
  if (typeof value === "string") {
    return name === "layers" || name === "blocks"
      ? parsePlan(prefixed(`${name}:`, oneLine(value)), options)
      : parsePlan(oneLine(value), options);
  }
  if (Array.isArray(value)) return fromList(value, options, name);
  throw new TypeError(`"${name}" must be text or a list, not ${show(value)}`);
}

/** Layers in the order they run, or pairs that stand for ranges of them. */
function fromList(list: readonly unknown[], options: ParsePlanOptions, name: string): PathPlan {
  if (list.length === 0 || list.length > MAX_LAYERS) {
    throw new RangeError(`A path has 1 to ${MAX_LAYERS} layers, not ${list.length}`);
  }
  if (list.every(isObject)) {
    throw new TypeError(
      `This is a list of ${list.length} objects, and a plan is one; take the one that is to run`,
    );
  }
  const isPairs = Array.isArray(list[0]);
  const entries = list.map((one, i): LayerRun => {
    const where = `${name}[${i}]`;
    if (isPairs) {
      const [repeatStart, repeatEnd] = pair(one, where);
      if (repeatStart < 0 || repeatEnd <= repeatStart) {
        throw new RangeError(
          `${where} [${repeatStart}, ${repeatEnd}] is empty or reversed: a range ends before its second number`,
        );
      }
      return { repeatStart, repeatEnd, repeatCount: 1 };
    }
    const il = layerNumber(one, where);
    if (il < 0) throw new RangeError(`${where} is ${il}, below 0`);
    return oneLayer(il);
  });
  const begin = entries[0]!.repeatStart;
  if (begin !== 0) {
    const [a, b] = entries;
    const block = isPairs ? `${begin},${a!.repeatEnd}` : `${begin},${b?.repeatStart ?? begin + 1}`;
    const what = isPairs ? "ranges of layers" : "layers";
    throw new RangeError(
      `${name} begins with layer ${begin}, and a model's layers begin with 0. A list holds the ${what} in the order ` +
        `they run; a block to repeat is written "${block}"`,
    );
  }
  return pathOf(entries, options);
}

function pair(value: unknown, where: string): [number, number] {
  if (!Array.isArray(value) || value.length !== 2) {
    throw new TypeError(
      `${where} must be two numbers, the first layer and the one after the last, not ${
        show(value)
      }`,
    );
  }
  return [layerNumber(value[0], `${where}[0]`), layerNumber(value[1], `${where}[1]`)];
}

/**
 * Reads the text of a plan as far as that is possible without a model, so that it is read once: what comes of it is for
 * {@linkcode resolvePlan}.
 *
 * @param text The grammar of {@linkcode parsePlan}, or JSON or YAML.
 * @returns The plan, or the object or list that the text holds.
 * @throws {SyntaxError | TypeError | RangeError} If it is none, or no model could run it.
 *
 * @example
 * ```ts
 * import { readPlanText, resolvePlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const input = readPlanText("blocks: [[1, 3]]");
 * assertEquals(input, { blocks: [[1, 3]] });
 * assertEquals(resolvePlan(input, { nLayer: 4 }).nLayerEff, 6);
 * ```
 */
export function readPlanText(text: string): PlanInput {
  if (isGrammar(text)) return parsePlan(text);
  const value = structured(text);
  readPlan(value);
  return value as PlanInput;
}
