import { layerNumber, show } from "./_text.ts";
import { isObject } from "../json.ts";
import { oneLayer, pathOf } from "./_path.ts";
import { expandPlan } from "./expand_plan.ts";
import { parsePlan } from "./parse_plan.ts";
import { type EffectivePlan, MAX_LAYERS, type ParsePlanOptions, type PathPlan } from "./types.ts";

/** The object that RYS writes into a Hugging Face config under `rys_relayer`. */
export interface RysRelayer {
  /** Where the layers come from; null if that is not known. */
  source_repo_id: string | null;
  /** Layers of the source model. */
  source_num_layers: number;
  /** Layers of the written model. */
  target_num_layers: number;
  /** The plan as text. */
  spec: string;
  /** Source layers, in the order they run. */
  layer_indices: number[];
  /** For each source layer that runs more than once, how often. */
  duplication_counts: Record<string, number>;
}

/** Options for {@linkcode toRelayer}. */
export interface ToRelayerOptions {
  /** Where the layers come from. Default null. */
  sourceRepoId?: string | null;
}

/**
 * Reads a `rys_relayer` object, or a config that has one.
 *
 * @param config The object.
 * @param options What is known of the model.
 * @returns The path it describes.
 * @throws {TypeError} If it is not such an object, or its parts contradict one another.
 * @throws {RangeError} If a layer is out of range, or the model has another number of layers.
 *
 * @example
 * ```ts
 * import { expandPlan, fromRelayer, toRelayer } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const plan = expandPlan("1,3", 4);
 * assertEquals(fromRelayer({ rys_relayer: toRelayer(plan) }).layers, [0, 1, 2, 1, 2, 3]);
 * ```
 */
export function fromRelayer(config: object, options: ParsePlanOptions = {}): PathPlan {
  const root: unknown = "rys_relayer" in config ? config.rys_relayer : config;
  if (!isObject(root)) throw new TypeError(`rys_relayer must be an object, not ${show(root)}`);
  const source = layerNumber(root.source_num_layers, "rys_relayer.source_num_layers");
  if (options.nLayer !== undefined && options.nLayer !== source) {
    throw new RangeError(
      `rys_relayer.source_num_layers is ${source}, but the model has ${options.nLayer} layers`,
    );
  }
  let layers: readonly number[];
  if (root.layer_indices === undefined || root.layer_indices === null) {
    // Older files have the text alone.
    if (typeof root.spec !== "string") {
      throw new TypeError("rys_relayer has neither layer_indices nor spec");
    }
    layers = expandPlan(root.spec, source, { nextn: options.nextn ?? 0 }).layers;
  } else {
    const indices: unknown = root.layer_indices;
    if (!Array.isArray(indices) || indices.length === 0 || indices.length > MAX_LAYERS) {
      throw new TypeError(`rys_relayer.layer_indices must be a list of 1 to ${MAX_LAYERS} layers`);
    }
    layers = indices.map((il: unknown, i: number) =>
      layerNumber(il, `rys_relayer.layer_indices[${i}]`)
    );
  }
  if (layers.some((il) => il < 0)) {
    throw new RangeError("rys_relayer.layer_indices has a layer below 0");
  }
  const plan = pathOf(layers.map(oneLayer), { nLayer: source, nextn: options.nextn ?? 0 });

  const target = layerNumber(
    root.target_num_layers ?? layers.length,
    "rys_relayer.target_num_layers",
  );
  if (target !== layers.length) {
    throw new TypeError(
      `rys_relayer.target_num_layers is ${target}, but there are ${layers.length} layers`,
    );
  }
  const counts: unknown = root.duplication_counts ?? duplicationCounts(layers);
  if (!isObject(counts)) {
    throw new TypeError(`rys_relayer.duplication_counts must be an object, not ${show(counts)}`);
  }
  if (JSON.stringify(sorted(counts)) !== JSON.stringify(sorted(duplicationCounts(layers)))) {
    throw new TypeError("rys_relayer.duplication_counts does not agree with layer_indices");
  }
  if (typeof root.spec === "string" && isOurGrammar(root.spec)) {
    const said = expandPlan(root.spec, source, { nextn: options.nextn ?? 0 }).layers;
    if (said.length !== layers.length || said.some((il, p) => il !== layers[p])) {
      throw new TypeError(`rys_relayer.spec ${show(root.spec)} does not agree with layer_indices`);
    }
  }
  return plan;
}

/** Other tools may put prose in `spec`; only a spec that parses can contradict the list. */
function isOurGrammar(spec: string): boolean {
  try {
    parsePlan(spec);
    return true;
  } catch {
    return false;
  }
}

function sorted(counts: Record<string, unknown>): [string, unknown][] {
  return Object.entries(counts).sort(([a], [b]) => Number(a) - Number(b));
}

function duplicationCounts(layers: readonly number[]): Record<string, number> {
  const counts = new Map<number, number>();
  for (const il of layers) counts.set(il, (counts.get(il) ?? 0) + 1);
  return Object.fromEntries([...counts].filter(([, n]) => n > 1).sort(([a], [b]) => a - b));
}

/**
 * Writes a plan as a `rys_relayer` object.
 *
 * @param plan The plan on its model.
 * @param options Where the layers come from.
 * @returns The object, for a config's key `rys_relayer`.
 *
 * @example
 * ```ts
 * import { expandPlan, toRelayer } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(toRelayer(expandPlan("1,3", 4), { sourceRepoId: "some/model" }), {
 *   source_repo_id: "some/model",
 *   source_num_layers: 4,
 *   target_num_layers: 6,
 *   spec: "1,3",
 *   layer_indices: [0, 1, 2, 1, 2, 3],
 *   duplication_counts: { "1": 2, "2": 2 },
 * });
 * ```
 */
export function toRelayer(plan: EffectivePlan, options: ToRelayerOptions = {}): RysRelayer {
  return {
    source_repo_id: options.sourceRepoId ?? null,
    source_num_layers: plan.nLayer,
    target_num_layers: plan.nLayerEff,
    spec: plan.spec,
    layer_indices: [...plan.layers],
    duplication_counts: duplicationCounts(plan.layers),
  };
}
