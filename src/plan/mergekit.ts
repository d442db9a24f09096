import { isRecord, layerNumber, show } from "./_text.ts";
import { parseYaml } from "./_yaml.ts";
import { checkPlan } from "./_check_plan.ts";
import { formatPlan } from "./format_plan.ts";
import { stretches } from "./_stretches.ts";
import type { ParsePlanOptions } from "./parse_plan.ts";
import type { PathPlan } from "./types.ts";

/** Options for {@linkcode toMergekit}. */
export interface ToMergekitOptions {
  /** The model's path or repository, as mergekit is to find it. */
  model: string;
  /** Number format of the merged weights. Default "bfloat16". */
  dtype?: string;
}

/**
 * Reads a mergekit passthrough recipe.
 *
 * @param recipe The recipe as YAML text, or already parsed.
 * @param options What is known of the model.
 * @returns The path that its slices make.
 * @throws {SyntaxError} If the text is not YAML, or uses parts of it that recipes have no need of.
 * @throws {TypeError} If it is no passthrough of one model, or scales layers, which a plan cannot do.
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
  if (!isRecord(root)) throw new TypeError(`A mergekit recipe is a mapping, not ${show(root)}`);
  const method = root.merge_method ?? "passthrough";
  if (method !== "passthrough") {
    throw new TypeError(
      `A plan can come from a passthrough merge only, not merge_method ${show(method)}`,
    );
  }
  const { slices } = root;
  if (!Array.isArray(slices) || slices.length === 0) {
    throw new TypeError(
      `A mergekit recipe needs slices, a list of at least one, not ${show(slices)}`,
    );
  }
  let model: unknown;
  const entries = slices.map((slice: unknown, i: number) => {
    const where = `slices[${i}]`;
    if (!isRecord(slice)) {
      throw new TypeError(`${where} must be a mapping with sources, not ${show(slice)}`);
    }
    const { sources } = slice;
    if (!Array.isArray(sources) || sources.length !== 1) {
      throw new TypeError(
        `${where}.sources must be a list of one source: a passthrough takes layers from one model`,
      );
    }
    const source: unknown = sources[0];
    if (!isRecord(source)) {
      throw new TypeError(`${where}.sources[0] must be a mapping, not ${show(source)}`);
    }
    model ??= source.model;
    if (source.model !== model) {
      throw new TypeError(
        `${where} takes layers from ${show(source.model)}, slices before it from ${show(model)}`,
      );
    }
    refuseScale(slice.parameters, `${where}.parameters`);
    refuseScale(source.parameters, `${where}.sources[0].parameters`);
    const range: unknown = source.layer_range;
    if (!Array.isArray(range) || range.length !== 2) {
      throw new TypeError(
        `${where}.sources[0].layer_range must be two numbers, not ${show(range)}`,
      );
    }
    const repeatStart = layerNumber(range[0], `${where}.sources[0].layer_range[0]`);
    const repeatEnd = layerNumber(range[1], `${where}.sources[0].layer_range[1]`);
    if (repeatStart < 0 || repeatEnd <= repeatStart) {
      throw new RangeError(
        `${where}.sources[0].layer_range [${repeatStart}, ${repeatEnd}] is empty or reversed`,
      );
    }
    return { repeatStart, repeatEnd, repeatCount: 1 };
  });
  refuseScale(root.parameters, "parameters");
  const written = entries.map((e) => `${e.repeatStart}..${e.repeatEnd - 1}`).join(",");
  checkPlan({ kind: "path", spec: `layers:${written}`, entries }, [], options);
  const plan: PathPlan = { kind: "path", spec: "", layers: [] };
  for (const { repeatStart, repeatEnd } of entries) {
    for (let il = repeatStart; il < repeatEnd; il++) plan.layers.push(il);
  }
  plan.spec = formatPlan(plan);
  return plan;
}

/** A recipe that damps repeated layers means another model than the plan would run. */
function refuseScale(parameters: unknown, where: string): void {
  if (parameters === undefined || parameters === null) return;
  if (!isRecord(parameters)) {
    throw new TypeError(`${where} must be a mapping, not ${show(parameters)}`);
  }
  if (parameters.scale !== undefined && parameters.scale !== 1) {
    throw new TypeError(
      `${where}.scale is not 1: a plan runs layers as they are and cannot scale them`,
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
export function toMergekit(layers: readonly number[], options: ToMergekitOptions): string {
  const model = JSON.stringify(options.model);
  const slices = stretches(layers).map(([start, end]) =>
    `  - sources:\n      - model: ${model}\n        layer_range: [${start}, ${end}]\n`
  );
  return `merge_method: passthrough\ndtype: ${options.dtype ?? "bfloat16"}\nslices:\n${
    slices.join("")
  }`;
}
