import type { EffectivePlan } from "./types.ts";

/** Number formats that llama.cpp's caches can have. */
export type CacheType =
  | "f32"
  | "f16"
  | "bf16"
  | "q8_0"
  | "q4_0"
  | "q4_1"
  | "q5_0"
  | "q5_1"
  | "iq4_nl";

/** Values in a block and bytes that the block takes, by cache type. */
export const CACHE_TYPES: Readonly<
  Record<CacheType, { readonly blockSize: number; readonly bytes: number }>
> = {
  f32: { blockSize: 1, bytes: 4 },
  f16: { blockSize: 1, bytes: 2 },
  bf16: { blockSize: 1, bytes: 2 },
  q8_0: { blockSize: 32, bytes: 34 },
  q4_0: { blockSize: 32, bytes: 18 },
  q4_1: { blockSize: 32, bytes: 20 },
  q5_0: { blockSize: 32, bytes: 22 },
  q5_1: { blockSize: 32, bytes: 24 },
  iq4_nl: { blockSize: 32, bytes: 18 },
};

/** What one layer keeps and weighs. */
export interface LayerFacts {
  /** Width of a cached key over all its heads. */
  nEmbdKGqa: number;
  /** Width of a cached value over all its heads. */
  nEmbdVGqa: number;
  /** Width of one head's key, which the blocks of a quantised cache must divide. Default: not checked. */
  nEmbdHeadK?: number;
  /** Width of one head's value. Default: not checked. */
  nEmbdHeadV?: number;
  /** Width of a key in the cache of the layer's indexer, if it has one. */
  nEmbdIndexerK?: number;
  /** Width of a value there. */
  nEmbdIndexerV?: number;
  /** The layer owns a place in the attention cache. */
  hasKv: boolean;
  /** The layer owns a recurrent state. A layer may have both, as in falcon-h1, or neither. */
  isRecr: boolean;
  /** The layer attends to a window only. */
  isSwa: boolean;
  /** Bytes of the layer's weights. */
  weightBytes?: number;
  /** Bytes of the weights that one token is multiplied with: with experts, those that are chosen. */
  activeBytes?: number;
}

/** The facts about a model that decide how much memory it takes. */
export interface ModelFacts {
  /** Architecture, as the file names it. */
  architecture: string;
  /** Layers, without next-token layers. */
  nLayer: number;
  /** Next-token (MTP) layers, which come after those. */
  nextn: number;
  /** Context the model was trained on. */
  nCtxTrain: number;
  /** Facts of each layer, next-token layers last. */
  layers: LayerFacts[];
  /** Some layers attend to a window and have a cache of their own, of its size. */
  hasSwaCache: boolean;
  /** The window. */
  nSwa: number;
  /** Width of a layer's convolution or token-shift state. */
  nEmbdR: number;
  /** Width of a layer's recurrent state. */
  nEmbdS: number;
  /** Keys hold the values too (multi-head latent attention). */
  isMla: boolean;
  /** The context limits the batch; false for models whose attention goes both ways. */
  isCausal: boolean;
  /** States may be kept for a rollback of some tokens. */
  hasRsRollback: boolean;
  /** Why the estimate is not exact; empty if it is. */
  inexact: string[];
}

/**
 * The options of a context that decide how much memory it takes. The names are those of `ContextOptions`; the defaults are
 * llama-server's for one slot, so give the options that the context is really created with.
 */
export interface CostOptions {
  /** Tokens in the context, over all sequences; 0 or absent is what the model was trained on. */
  nCtx?: number | undefined;
  /** Sequences, which are the context's slots. Default 1. */
  nParallel?: number | undefined;
  /** Tokens in a batch. Default 2048; contexts of this library have 512. */
  nBatch?: number | undefined;
  /** Tokens in a micro-batch. Default 512. */
  nUbatch?: number | undefined;
  /** All sequences share one cache, as contexts of this library with more than one slot do. Default false. */
  kvUnified?: boolean | undefined;
  /** The window's cache is as large as the other. Default false. */
  swaFull?: boolean | undefined;
  /** Flash attention; "off" pads values to the widest layer's. "auto", the default, counts as "on". */
  flashAttention?: "on" | "off" | "auto" | undefined;
  /** Tokens that can be rolled back in a recurrent state. Default 0. */
  nRsSeq?: number | undefined;
  /** Format of keys. Default "f16". */
  cacheTypeK?: CacheType | undefined;
  /** Format of values. Default "f16". */
  cacheTypeV?: CacheType | undefined;
}

/** Memory of one context. */
export interface MemoryCost {
  /** Layers that run. */
  nLayerEff: number;
  /** Bytes of keys. */
  kBytes: number;
  /** Bytes of values. */
  vBytes: number;
  /** Bytes of keys and values. */
  kvBytes: number;
  /** Of those, bytes of layers that attend to a window, where these have a cache of their own. */
  windowKvBytes: number;
  /** Bytes of the largest tensor of keys or values. */
  largestKvBytes: number;
  /** Bytes of recurrent states. */
  recurrentBytes: number;
  /** Layers with keys and values. */
  nKvLayers: number;
  /** Of those, layers that attend to a window, where these have a cache of their own. */
  nWindowKvLayers: number;
  /** Layers with a recurrent state. */
  nRecurrentLayers: number;
}

/** Memory with a plan and without, and what the plan costs in time. */
export interface PlanCost {
  /** Tokens in the context, as the context will have them. */
  nCtx: number;
  /** Cells of the attention cache for each sequence, or for all if they share it. */
  nCtxSeq: number;
  /** Cells of the window's cache; 0 if there is none. */
  nCtxSwa: number;
  /** Without the plan. */
  base: MemoryCost;
  /** With the plan. */
  plan: MemoryCost;
  /** Time for a token with the plan over time without, from the layers' weights if they are known, else their number. */
  computeRatio: number;
  /** Why the bytes are not exact; empty if they are. */
  inexact: string[];
}

const pad = (x: number, n: number): number => Math.ceil(x / n) * n;

/**
 * Computes the memory that llama.cpp will allocate for a context, with a plan and without.
 *
 * The sums are of tensor sizes, as llama.cpp logs them; where a backend rounds each tensor up (to 32 to 256 bytes), the
 * recurrent part of its buffer may be that much larger, and the keys and values are multiples of it already.
 *
 * Exact: every model whose memory is llama.cpp's plain, sliding-window, recurrent or hybrid cache, that is all but the
 * few that {@linkcode ModelFacts.inexact} names. An upper bound: models in which late layers reuse the keys and values of
 * earlier ones (gemma3n, gemma4 E2B and E4B), if a plan puts a layer that owns them after one that does not.
 *
 * @param facts The model's facts, as its header gives them.
 * @param plan The plan; without it, both sides are the model as it is.
 * @param options The context.
 * @returns Bytes on both sides, and the ratio of compute.
 * @throws {RangeError} If the plan is not for this model, or the context cannot be created: a size that is not a whole
 * number, or a cache type whose blocks do not fit the model's heads.
 * @throws {TypeError} If an option is unknown.
 *
 * @example
 * ```ts
 * import { estimateCost, expandPlan, type ModelFacts } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const layer = { nEmbdKGqa: 1024, nEmbdVGqa: 1024, hasKv: true, isRecr: false, isSwa: false };
 * const facts: ModelFacts = {
 *   architecture: "llama",
 *   nLayer: 32,
 *   nextn: 0,
 *   nCtxTrain: 8192,
 *   layers: Array(32).fill(layer),
 *   hasSwaCache: false,
 *   nSwa: 0,
 *   nEmbdR: 0,
 *   nEmbdS: 0,
 *   isMla: false,
 *   isCausal: true,
 *   hasRsRollback: false,
 *   inexact: [],
 * };
 * const cost = estimateCost(facts, expandPlan("14,18", 32), { nCtx: 4096 });
 * assertEquals(cost.base.kvBytes, 512 * 1024 * 1024);
 * assertEquals(cost.plan.kvBytes, 576 * 1024 * 1024);
 * assertEquals(cost.computeRatio, 1.125);
 * ```
 */
export function estimateCost(
  facts: ModelFacts,
  plan?: Pick<EffectivePlan, "nLayer" | "layers">,
  options: CostOptions = {},
): PlanCost {
  const { nLayer, nextn } = facts;
  if (facts.layers.length !== nLayer + nextn) {
    throw new RangeError(
      `The model has ${nLayer} + ${nextn} layers, but facts of ${facts.layers.length}`,
    );
  }
  if (plan && (plan.nLayer !== nLayer || plan.layers.some((il) => !(il >= 0 && il < nLayer)))) {
    throw new RangeError(`The plan is for ${plan.nLayer} layers, but the model has ${nLayer}`);
  }
  const context = contextOf(facts, options);
  checkTypes(facts, context);
  const own = Array.from({ length: nLayer }, (_, il) => il);
  const layers = plan?.layers ?? own;
  return {
    nCtx: context.nCtx,
    nCtxSeq: context.nCtxSeq,
    nCtxSwa: facts.hasSwaCache ? context.nCtxSwa : 0,
    base: memoryOf(facts, own, context),
    plan: memoryOf(facts, layers, context),
    computeRatio: workOf(facts, layers) / workOf(facts, own),
    inexact: [...facts.inexact],
  };
}

interface Context {
  nCtx: number;
  nCtxSeq: number;
  nCtxSwa: number;
  nStream: number;
  nStates: number;
  flashAttn: boolean;
  typeK: CacheType;
  typeV: CacheType;
}

const OPTIONS: Readonly<Record<keyof CostOptions, true>> = {
  nCtx: true,
  nParallel: true,
  nBatch: true,
  nUbatch: true,
  kvUnified: true,
  swaFull: true,
  flashAttention: true,
  nRsSeq: true,
  cacheTypeK: true,
  cacheTypeV: true,
};

/** The sizes a context gets from what is asked for. */
function contextOf(facts: ModelFacts, options: CostOptions): Context {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(OPTIONS, name));
  if (unknown !== undefined) {
    throw new TypeError(
      `There is no option ${unknown}; the options are ${Object.keys(OPTIONS).join(", ")}`,
    );
  }
  const { flashAttention = "auto" } = options;
  if (!["on", "off", "auto"].includes(flashAttention)) {
    throw new RangeError(
      `flashAttention must be one of on, off, auto, not ${JSON.stringify(flashAttention)}`,
    );
  }
  const whole = (name: keyof CostOptions, value: number, least: number): number => {
    if (!Number.isInteger(value) || value < least || value > 0xffff_ffff) {
      throw new RangeError(`${name} must be a whole number from ${least}, not ${value}`);
    }
    return value;
  };
  const nSeqMax = Math.max(1, whole("nParallel", options.nParallel ?? 1, 0));
  if (!options.nCtx && facts.nCtxTrain === 0) {
    throw new RangeError(
      "nCtx must be given: the model does not say what context it was trained on",
    );
  }
  const asked = whole("nCtx", options.nCtx || facts.nCtxTrain, 1);
  const nBatch = whole("nBatch", options.nBatch ?? 2048, 0);
  const nUbatch = whole("nUbatch", options.nUbatch ?? 512, 0);
  const nRsSeq = facts.hasRsRollback ? whole("nRsSeq", options.nRsSeq ?? 0, 0) : 0;
  const unified = options.kvUnified ?? false;

  // A batch is limited by the context as it was asked for, before it is padded.
  const batch = facts.isCausal ? Math.min(asked, nBatch) : nBatch;
  const ubatch = Math.min(batch, nUbatch === 0 ? nBatch : nUbatch);
  const padded = pad(asked, 256);
  const nCtxSeq = unified ? padded : pad(Math.floor(padded / nSeqMax), 256);
  const window = pad(Math.min(nCtxSeq, facts.nSwa * (unified ? nSeqMax : 1) + ubatch), 256);
  return {
    nCtx: unified ? padded : nCtxSeq * nSeqMax,
    nCtxSeq,
    nCtxSwa: options.swaFull ? nCtxSeq : window,
    nStream: unified ? 1 : nSeqMax,
    nStates: nSeqMax * (1 + nRsSeq),
    // Its scores are capped in a way that the fused kernel does not have.
    flashAttn: flashAttention !== "off" && facts.architecture !== "grok",
    typeK: options.cacheTypeK ?? "f16",
    typeV: options.cacheTypeV ?? "f16",
  };
}

function rowBytes(type: CacheType, width: number, what: string): number {
  const format = CACHE_TYPES[type];
  if (format === undefined) {
    throw new RangeError(
      `${what} cannot have type ${String(type)}; there are ${Object.keys(CACHE_TYPES).join(", ")}`,
    );
  }
  if (width % format.blockSize !== 0) {
    throw new RangeError(
      `${what} cannot have type ${type}: its blocks of ${format.blockSize} do not divide ${width}`,
    );
  }
  return width / format.blockSize * format.bytes;
}

/** Refuses the cache types that llama.cpp makes no context with. */
function checkTypes(facts: ModelFacts, { typeK, typeV, flashAttn }: Context): void {
  const isQuantised = (type: CacheType) => (CACHE_TYPES[type]?.blockSize ?? 1) > 1;
  if ((facts.isMla || facts.architecture === "deepseek4") && typeK !== typeV) {
    throw new RangeError(
      `${facts.architecture} has keys and values in one cache, of one type, not ${typeK} and ${typeV}`,
    );
  }
  if (isQuantised(typeV) && !flashAttn) {
    const why = facts.architecture === "grok" ? ", which grok does not have" : ", which is off";
    throw new RangeError(`The V cache cannot have type ${typeV} without flash attention${why}`);
  }
  if (!flashAttn) return;
  for (const { nEmbdHeadK = 0, nEmbdHeadV = 0 } of facts.layers.slice(0, facts.nLayer)) {
    if (isQuantised(typeK)) rowBytes(typeK, nEmbdHeadK, "The K cache");
    if (isQuantised(typeV)) rowBytes(typeV, nEmbdHeadV, "The V cache");
  }
}

function memoryOf(facts: ModelFacts, layers: readonly number[], context: Context): MemoryCost {
  const all = [...layers.map((il) => facts.layers[il]!), ...facts.layers.slice(facts.nLayer)];
  // Without flash attention values are stored transposed, which wants one width for all layers.
  const widest = Math.max(0, ...all.map((layer) => layer.nEmbdVGqa));
  const cost: MemoryCost = {
    nLayerEff: layers.length,
    kBytes: 0,
    vBytes: 0,
    kvBytes: 0,
    windowKvBytes: 0,
    largestKvBytes: 0,
    recurrentBytes: 0,
    nKvLayers: 0,
    nWindowKvLayers: 0,
    nRecurrentLayers: 0,
  };
  for (const layer of all) {
    if (layer.hasKv) {
      const isWindow = facts.hasSwaCache && layer.isSwa;
      const cells = (isWindow ? context.nCtxSwa : context.nCtxSeq) * context.nStream;
      const k = cells * rowBytes(context.typeK, layer.nEmbdKGqa, "The K cache");
      const v = facts.isMla ? 0 : cells *
        rowBytes(context.typeV, context.flashAttn ? layer.nEmbdVGqa : widest, "The V cache");
      cost.nKvLayers++;
      cost.kBytes += k;
      cost.vBytes += v;
      cost.largestKvBytes = Math.max(cost.largestKvBytes, k, v);
      if (isWindow) {
        cost.nWindowKvLayers++;
        cost.windowKvBytes += k + v;
      }
    }
    if (layer.nEmbdIndexerK !== undefined) {
      const cells = context.nCtxSeq * context.nStream;
      cost.kBytes += cells * rowBytes(context.typeK, layer.nEmbdIndexerK, "The indexer's cache");
      cost.vBytes += cells *
        rowBytes(context.typeV, layer.nEmbdIndexerV ?? 0, "The indexer's cache");
    }
    if (layer.isRecr) {
      cost.nRecurrentLayers++;
      // States are 32-bit floats, whatever the cache types are.
      cost.recurrentBytes += context.nStates * (facts.nEmbdR + facts.nEmbdS) * 4;
    }
  }
  cost.kvBytes = cost.kBytes + cost.vBytes;
  return cost;
}

function workOf(facts: ModelFacts, layers: readonly number[]): number {
  const known = facts.layers.slice(0, facts.nLayer).every((layer) =>
    (layer.activeBytes ?? layer.weightBytes ?? 0) > 0
  );
  let work = 0;
  for (const il of layers) {
    const layer = facts.layers[il]!;
    work += known ? layer.activeBytes ?? layer.weightBytes! : 1;
  }
  return work;
}
