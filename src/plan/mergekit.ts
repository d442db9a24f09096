import { layerNumber, show } from "./_text.ts";
import { isObject } from "../json.ts";
import { parseYaml } from "./_yaml.ts";
import { pathOf } from "./_path.ts";
import { stretches } from "./_stretches.ts";
import type { LayerRun, ParsePlanOptions, PathPlan } from "./types.ts";

/** Options for {@linkcode toMergekit}. */
export interface ToMergekitOptions {
  /** The model's folder or repository, as mergekit is to find it. Default: null, with a comment that it is to be named. */
  model?: string | undefined;
  /** Number format of the merged weights. Default "bfloat16". */
  dtype?: string | undefined;
}

/**
 * Reads a mergekit passthrough recipe.
 *
 * @param recipe The recipe as YAML text, or already parsed.
 * @param options What is known of the model.
 * @returns The path that its slices make.
 * @throws {SyntaxError} If the text is not YAML.
 * @throws {TypeError} If it is not a passthrough of one model, or scales layers, which a plan cannot do.
 * @throws {RangeError} If a layer is out of range.
 *
 * @example
 * ```ts
 * import { fromMergekit } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const plan = fromMergekit(`
 * merge_method: passthrough
 * slices:
 *   - sources:
 *       - model: some/model
 *         layer_range: [0, 4]
 *   - sources:
 *       - model: some/model
 *         layer_range: [2, 6]
 * `);
 * assertEquals(plan.layers, [0, 1, 2, 3, 2, 3, 4, 5]);
 * ```
 */
export function fromMergekit(recipe: string | object, options: ParsePlanOptions = {}): PathPlan {
  const root = typeof recipe === "string" ? parseYaml(recipe) : recipe;
  if (!isObject(root)) throw new TypeError(`A mergekit recipe is a mapping, not ${show(root)}`);
  const method = root.merge_method ?? "passthrough";
  if (method !== "passthrough") {
    throw new TypeError(
      `A plan can come from a passthrough merge only, not merge_method ${
        show(method)
      }: other methods change weights`,
    );
  }
  refuseScale(root.parameters, "parameters");
  const { slices, where } = slicesOf(root);
  let model: string | undefined;
  const ranges = slices.map((slice, i) => {
    const source = sourceOf(slice, `${where}[${i}]`);
    model ??= source.model;
    if (source.model !== model) {
      throw new TypeError(
        `${where}[${i}] takes layers from ${source.model}, slices before it from ${model}; ` +
          "a plan runs the layers of one model",
      );
    }
    return source.range;
  });
  return pathOf(ranges, options);
}

/** Whether an object has the keys of a mergekit recipe. */
export function isMergekit(value: Record<string, unknown>): boolean {
  return "slices" in value || "modules" in value || "merge_method" in value;
}

/** The slices of the text layers: the recipe's own, or those of its module. */
function slicesOf(root: Record<string, unknown>): { slices: unknown[]; where: string } {
  let { slices } = root;
  let where = "slices";
  if (slices === undefined && root.modules !== undefined) {
    const { modules } = root;
    const names = isObject(modules) ? Object.keys(modules) : [];
    const name = names.length === 1 ? names[0]! : "text_decoder";
    const module: unknown = isObject(modules) ? modules[name] : undefined;
    if (!isObject(module)) {
      throw new TypeError(
        `modules must be a mapping with text_decoder, whose slices a plan can run, not ${
          names.length > 0 ? names.join(", ") : show(modules)
        }`,
      );
    }
    for (const other of names) {
      const its: unknown = (modules as Record<string, unknown>)[other];
      if (other !== name && isObject(its) && Array.isArray(its.slices) && its.slices.length > 1) {
        throw new TypeError(
          `modules.${other} has ${its.slices.length} slices; a plan repeats layers of ${name} only`,
        );
      }
    }
    refuseScale(module.parameters, `modules.${name}.parameters`);
    ({ slices } = module);
    where = `modules.${name}.slices`;
    if (slices === undefined && module.models !== undefined) root = module;
  }
  if (!Array.isArray(slices) || slices.length === 0) {
    const hint = root.models !== undefined
      ? '; "models" takes whole models, and a plan says which layers run'
      : "";
    throw new TypeError(
      `A mergekit recipe needs ${where}, a list of at least one, not ${
        Array.isArray(slices) ? "an empty one" : show(slices)
      }${hint}`,
    );
  }
  return { slices, where };
}

function sourceOf(slice: unknown, where: string): { model: string; range: LayerRun } {
  if (!isObject(slice)) {
    throw new TypeError(`${where} must be a mapping with sources, not ${show(slice)}`);
  }
  const { sources } = slice;
  if (!Array.isArray(sources) || sources.length !== 1) {
    const found = Array.isArray(sources) ? `a list of ${sources.length}` : show(sources);
    throw new TypeError(
      `${where}.sources must be a list of one source, not ${found}: mergekit takes one source per slice here ` +
        "(passthrough), and a slice for each range",
    );
  }
  const source: unknown = sources[0];
  const its = `${where}.sources[0]`;
  if (!isObject(source)) throw new TypeError(`${its} must be a mapping, not ${show(source)}`);
  refuseScale(slice.parameters, `${where}.parameters`);
  refuseScale(source.parameters, `${its}.parameters`);
  const range: unknown = source.layer_range;
  if (!Array.isArray(range) || range.length !== 2) {
    throw new TypeError(
      `${its}.layer_range must be two numbers, the first layer and the one after the last, not ${
        show(range)
      }`,
    );
  }
  const repeatStart = layerNumber(range[0], `${its}.layer_range[0]`);
  const repeatEnd = layerNumber(range[1], `${its}.layer_range[1]`);
  if (repeatStart < 0 || repeatEnd <= repeatStart) {
    throw new RangeError(
      `${its}.layer_range [${repeatStart}, ${repeatEnd}] is empty or reversed: ` +
        "ranges end before the second number",
    );
  }
  return {
    model: modelName(source.model, `${its}.model`),
    range: { repeatStart, repeatEnd, repeatCount: 1 },
  };
}

/** A model in one spelling: `a/b`, `{path: a/b}` and `{model: {path: a/b}}` are the same. */
function modelName(model: unknown, where: string): string {
  if (!isObject(model)) {
    if (typeof model === "string" || model === null || model === undefined) {
      return show(model ?? null);
    }
    throw new TypeError(`${where} must be a path or a mapping with one, not ${show(model)}`);
  }
  if (model.lora !== undefined && model.lora !== null) {
    throw new TypeError(
      `${where}.lora merges an adapter, which a plan does not; give it with --lora or the option lora`,
    );
  }
  if ("model" in model) return modelName(model.model, `${where}.model`);
  if (typeof model.path !== "string") {
    throw new TypeError(`${where}.path must be text, not ${show(model.path)}`);
  }
  return show(typeof model.revision === "string" ? `${model.path}@${model.revision}` : model.path);
}

/** A recipe that damps repeated layers means another model than the plan would run. */
function refuseScale(parameters: unknown, where: string): void {
  if (parameters === undefined || parameters === null) return;
  if (!isObject(parameters)) {
    throw new TypeError(`${where} must be a mapping, not ${show(parameters)}`);
  }
  const { scale } = parameters;
  if (scale === undefined || scale === null) return;
  // A number, a gradient over the layers, or a list of values for tensors by name.
  const wrong = [scale].flat().flatMap((one: unknown) => isObject(one) ? one.value : one)
    .filter((one: unknown) => one !== 1);
  if (wrong.length > 0) {
    throw new TypeError(
      `${where}.scale is not 1 but ${
        show(wrong[0])
      }: a plan runs layers as they are and cannot scale them`,
    );
  }
}

/**
 * Writes a path as a mergekit passthrough recipe.
 *
 * @param layers Source layers, in the order they run.
 * @param options The model's name, and the number format.
 * @returns The recipe as YAML text; {@linkcode fromMergekit} reads it back.
 *
 * @example
 * ```ts
 * import { expandPlan, fromMergekit, toMergekit } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const { layers } = expandPlan("26,34", 64);
 * assertEquals(fromMergekit(toMergekit(layers, { model: "some/model" })).layers, layers);
 * ```
 */
export function toMergekit(layers: readonly number[], options: ToMergekitOptions = {}): string {
  const { model, dtype = "bfloat16" } = options;
  const comment = model === undefined
    ? "# Write the model's folder or repository, as mergekit is to find it, in place of null.\n"
    : "";
  const slices = stretches(layers).map(([start, end]) =>
    `  - sources:\n      - model: ${
      JSON.stringify(model ?? null)
    }\n        layer_range: [${start}, ${end}]\n`
  );
  return `${comment}merge_method: passthrough\ndtype: ${dtype}\nslices:\n${slices.join("")}`;
}
