import { isRecord, layerNumber, show } from "./_text.ts";
import { checkPlan } from "./_check_plan.ts";
import { formatPlan } from "./format_plan.ts";
import { fromMergekit } from "./mergekit.ts";
import { parseYaml } from "./_yaml.ts";
import { parsePlan, type ParsePlanOptions } from "./parse_plan.ts";
import { fromRelayer } from "./relayer.ts";
import { MAX_LAYERS, type PathPlan, type Plan } from "./types.ts";

/**
 * Reads a plan in any of the forms it is found in: text in the grammar of {@linkcode parsePlan}, a mergekit recipe, a
 * config with `rys_relayer`, an object with RYS's `layers` or `blocks` key, or a plain list of layers; the objects also as
 * YAML text.
 *
 * @param value What was found.
 * @param options What is known of the model.
 * @returns The plan.
 * @throws {SyntaxError} If text cannot be parsed.
 * @throws {TypeError} If it is none of these forms.
 * @throws {RangeError} If a layer is out of range.
 *
 * @example
 * ```ts
 * import { readPlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(readPlan([0, 1, 1, 2]), { kind: "path", spec: "layers:0..1,1..2", layers: [0, 1, 1, 2] });
 * assertEquals(readPlan({ blocks: "1,2" }).kind, "spec");
 * assertEquals(readPlan("blocks: [[26, 34], [10, 12]]").spec, "26,34;10,12");
 * ```
 */
export function readPlan(value: unknown, options: ParsePlanOptions = {}): Plan {
  if (typeof value === "string") {
    return isYaml(value) ? readPlan(yamlObject(value), options) : parsePlan(value, options);
  }
  if (Array.isArray(value)) return fromLayers(value, options);
  if (isRecord(value)) {
    if ("slices" in value) return fromMergekit(value, options);
    if ("rys_relayer" in value || "layer_indices" in value) return fromRelayer(value, options);
    if ("layers" in value) {
      const { layers } = value;
      if (typeof layers === "string") return parsePlan(prefixed("layers:", layers), options);
      if (Array.isArray(layers)) return fromLayers(layers, options);
    }
    if ("blocks" in value) {
      const { blocks } = value;
      if (typeof blocks === "string") return parsePlan(prefixed("blocks:", blocks), options);
      if (Array.isArray(blocks)) {
        const text = blocks.map((block: unknown, i: number) => {
          if (!Array.isArray(block) || block.length !== 2) {
            throw new TypeError(`blocks[${i}] must be two numbers, not ${show(block)}`);
          }
          return block.map((il: unknown, k) => layerNumber(il, `blocks[${i}][${k}]`)).join(",");
        });
        return parsePlan(text.join(";"), options);
      }
    }
  }
  throw new TypeError(
    `Cannot read a plan from ${
      show(value)
    }: expected text, a list of layers, or an object with slices, ` +
      `rys_relayer, layers or blocks`,
  );
}

/** Whether text is YAML with a key of a recipe, and no plan in the grammar, which begins `layers:` and `blocks:` as well. */
function isYaml(text: string): boolean {
  if (/^[ \t]*(?:slices|rys_relayer|layer_indices)[ \t]*:/m.test(text)) return true;
  if (/^[ \t]*(?:layers|blocks)[ \t]*:(?:[ \t]+[[{"']|[ \t]*\r?\n[ \t]*-)/m.test(text)) return true;
  return /\n/.test(text.trim()) && /^(?:layers|blocks)[ \t]*:[ \t]/m.test(text);
}

function yamlObject(text: string): object {
  const value = parseYaml(text);
  if (isRecord(value)) return value;
  throw new TypeError(`A recipe is a mapping, not ${show(value)}`);
}

function prefixed(prefix: string, text: string): string {
  return text.trimStart().startsWith(prefix) ? text : prefix + text;
}

function fromLayers(list: readonly unknown[], options: ParsePlanOptions): PathPlan {
  if (list.length === 0 || list.length > MAX_LAYERS) {
    throw new RangeError(`A path has 1 to ${MAX_LAYERS} layers, not ${list.length}`);
  }
  const layers = list.map((il, i) => layerNumber(il, `layers[${i}]`));
  const below = layers.findIndex((il) => il < 0);
  if (below >= 0) throw new RangeError(`layers[${below}] is ${layers[below]}, below 0`);
  const plan: PathPlan = { kind: "path", spec: "", layers };
  plan.spec = formatPlan(plan);
  const entries = layers.map((il) => ({ repeatStart: il, repeatEnd: il + 1, repeatCount: 1 }));
  checkPlan({ ...plan, entries }, [], options);
  return plan;
}
