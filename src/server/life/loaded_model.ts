import {
  type Context,
  type EffectivePlan,
  EngineError,
  loadModel,
  type Model,
  type ModelInfo,
} from "../../engine/mod.ts";
import { contextCost, defaultContext } from "../../engine/context_options.ts";
import { ENGINE_BYTES, HEAP_BYTES } from "../../engine/memory.ts";
import { type GgufModel, modelFacts, readModel } from "../../gguf/mod.ts";
import { isRemoteName } from "../../hub/model_name.ts";
import { type CostOptions, estimateCost, type ModelFacts } from "../../plan/mod.ts";
import { ApiError } from "../http/api_error.ts";
import type { Settings } from "../options.ts";
import { PlanChoice } from "../plans/plan_choice.ts";
import { type ContextKind, PlanPool, type PoolEntry } from "../plans/plan_pool.ts";

/** A loaded model, its plans and its contexts. */
export interface LoadedModel {
  /** The model. */
  model: Model;
  /** Plans by name. */
  plans: PlanChoice;
  /** Contexts by plan. */
  pool: PlanPool;
  /** What the model file says of memory; undefined where the model was given loaded. */
  facts: ModelFacts | undefined;
  /** The contexts' sizes and forms, for estimates. */
  costOptions: CostOptions;
  /** Whether the model can rank. */
  canRank: boolean;
  /** Whether the chat template has tools, or calls of them. */
  hasTools: boolean;
  /** What loading took. */
  boot: BootFacts;
}

/** What loading took, in milliseconds. */
export interface BootFacts {
  /** Weights. */
  load_ms: number;
  /** Context of the default plan. */
  context_ms: number;
}

/** Tokens that a text to embed may have, as it is computed in one piece. */
const MAX_EMBED_BATCH = 2048;

/** Upstream's names of pooling types, by their number in a model file. */
const POOLING = ["none", "mean", "cls", "last", "rank"];

function declaredPooling({ architecture, metadata }: GgufModel["header"]): string | undefined {
  return POOLING[Number(metadata.get(`${architecture}.pooling_type`)?.value ?? -1)];
}

/**
 * Whether a model ranks texts.
 *
 * @param header What its file says.
 */
export function ranks(header: GgufModel["header"]): boolean {
  return declaredPooling(header) === "rank";
}

/** The name that a model file gives its model. */
export function fileName(path: string): string {
  const name = path.replace(/^.*[/\\]/, "").replace(/\.gguf$/i, "")
    .replace(/-\d{5}-of-\d{5}$/, "");
  return name.replaceAll(",", "_") || "model";
}

/** Whether the server loads its model, so that it can load it again, and frees it. */
export function loadsItself(
  settings: Settings,
): settings is Settings & { model: string | GgufModel } {
  return typeof settings.model === "string" || "header" in settings.model;
}

/**
 * Loads the model, and makes the context of the default plan, so that a first request finds it.
 *
 * @param settings Options.
 * @param again Whether it was loaded before: its file may be another by now, so its header is read anew.
 * @param signal Stops it.
 * @param onChange Told when a context is made or freed.
 */
export async function loadWithContexts(
  settings: Settings,
  again: boolean,
  signal: AbortSignal,
  onChange: (what: "made" | "freed", entry: PoolEntry) => void,
): Promise<LoadedModel> {
  const start = performance.now();
  let facts: ModelFacts | undefined;
  let pooling: string | undefined = settings.pooling;
  let canRank = false;
  let model: Model;
  const owned = loadsItself(settings);
  if (owned) {
    const { model: source } = settings;
    const path = typeof source === "string"
      ? await localPath(source, settings, signal)
      : source.files[0]!;
    const file = typeof source === "string" || again ? await readModel(path) : source;
    facts = modelFacts(file.header);
    const declared = declaredPooling(file.header);
    canRank = ranks(file.header);
    if (declared !== undefined && declared !== "none" && !canRank) pooling ??= declared;
    model = await loadModel(file, { ...settings.load, signal });
  } else model = settings.model as Model;
  const loadMs = performance.now() - start;
  try {
    return await prepare(settings, model, {
      facts,
      pooling: pooling ?? "mean",
      canRank,
      loadMs,
      signal,
      onChange,
    });
  } catch (error) {
    if (owned) await model.dispose();
    throw error;
  }
}

async function prepare(
  settings: Settings,
  model: Model,
  more: {
    facts: ModelFacts | undefined;
    pooling: string;
    canRank: boolean;
    loadMs: number;
    signal: AbortSignal;
    onChange: (what: "made" | "freed", entry: PoolEntry) => void;
  },
): Promise<LoadedModel> {
  const { facts, pooling, canRank, loadMs, signal, onChange } = more;
  const name = modelName(settings, model);
  const plans = new PlanChoice(
    model,
    name,
    settings.repeatLayers,
    settings.aliases ?? {},
    settings.strictModels,
  );
  const nCtx = settings.nCtx ?? defaultContext(model.info.nCtxTrain);
  const context = settings.context ?? {};
  const { nParallel } = settings;
  const costOptions = contextCost({ ...context, nCtx, nParallel });
  // Bytes for each layer of contexts that were made: what is expected of the next where the header tells nothing.
  let perLayer = 0;
  let compute = 0;
  const pool: PlanPool = new PlanPool({
    maxContexts: settings.maxContexts,
    memoryBudget: settings.memoryBudget ?? memoryFor(model.info),
    nParallel: settings.nParallel,
    maxQueue: settings.maxQueue,
    onChange,
    estimate(_kind: ContextKind, plan: EffectivePlan): number {
      if (!facts) return perLayer * plan.nLayerEff + compute;
      const cost = estimateCost(facts, plan, costOptions);
      return cost.plan.kvBytes + cost.plan.recurrentBytes + compute;
    },
    async create(kind: ContextKind, plan: EffectivePlan): Promise<Context> {
      const args = ["--alias", name.replaceAll(",", "_"), "--metrics", ...context.args ?? []];
      const batch = Math.min(MAX_EMBED_BATCH, Math.max(nCtx, 256));
      const made = await model.createContext({
        ...context,
        ...kind === "text" ? {} : { nBatch: batch, nUbatch: batch, speculative: undefined },
        args: kind === "text"
          ? args
          : [...args, "--embedding", "--pooling", kind === "rerank" ? "rank" : pooling],
        repeatLayers: plan,
        nCtx,
        nParallel: settings.nParallel,
      });
      const { info } = made;
      perLayer = Math.max(perLayer, (info.kvBytes + info.recurrentBytes) / plan.nLayerEff);
      compute = Math.max(compute, info.computeBytes);
      return made;
    },
  });
  const start = performance.now();
  let hasTools: boolean;
  try {
    const lease = await pool.acquire("text", plans.base.plan, signal, false);
    try {
      hasTools = await templateHasTools(lease.context, signal);
    } finally {
      lease.release();
    }
  } catch (error) {
    await pool.close(new EngineError("the model is disposed"));
    // Who starts the server is told what the engine says; a client is not.
    throw error instanceof ApiError && error.cause !== undefined ? error.cause : error;
  }
  const boot = { load_ms: Math.round(loadMs), context_ms: Math.round(performance.now() - start) };
  return { model, plans, pool, facts, costOptions, canRank, hasTools, boot };
}

/** Upstream finds out by trying what a chat template writes; where it has neither tools nor calls, it leaves them out. */
async function templateHasTools(context: Context, signal: AbortSignal): Promise<boolean> {
  const { body } = await context.request("/props", undefined, { signal });
  const { chat_template_caps: caps } = JSON.parse(new TextDecoder().decode(body)) as {
    chat_template_caps?: Record<string, boolean>;
  };
  return caps === undefined || caps.supports_tools === true || caps.supports_tool_calls === true;
}

/**
 * Bytes that contexts may take, where the caller sets none: what WASM memory has beside the weights in it. With all
 * layers on a GPU contexts are there as well, and only making one shows whether there is room.
 *
 * @param info What the model says of itself.
 */
export function memoryFor({ gpu, modelBytes, nLayer, nLayerNextn }: ModelInfo): number {
  if (gpu !== null && gpu.layers > nLayer + nLayerNextn) return Infinity;
  return Math.max(1, HEAP_BYTES - ENGINE_BYTES - (gpu?.cpuBytes ?? modelBytes));
}

/** How often the log says how far fetching is, in milliseconds. */
const FETCH_LOG_MS = 10_000;

/** The path of a model, which is fetched if its name is one of the hub or a URL. */
async function localPath(name: string, settings: Settings, signal: AbortSignal): Promise<string> {
  if (!isRemoteName(name)) return name;
  const { fetchModel } = await import("../../hub/fetch_model.ts");
  const { onLog = () => {} } = settings;
  let due = 0;
  const paths = await fetchModel(name, {
    onNote: (line) => onLog(line),
    onProgress({ doing, file, bytes, size }) {
      if (performance.now() < due) return;
      due = performance.now() + FETCH_LOG_MS;
      onLog(`${doing} ${file}: ${Math.floor(100 * bytes / Math.max(size, 1))} %`);
    },
    ...settings.load?.hub,
    signal,
  });
  return paths[0]!;
}

/** The name in answers of a model on the hub, as llama-server has it; undefined for others. */
export function hubModelName(name: string): string | undefined {
  return /^hf:/i.test(name) ? name.replace(/^hf:(?:\/\/)?/i, "") : undefined;
}

/** The model's name in answers. */
export function modelName(settings: Settings, model?: Model): string {
  if (settings.modelName !== undefined) return settings.modelName;
  if (loadsItself(settings)) {
    const hub = typeof settings.model === "string" ? hubModelName(settings.model) : undefined;
    if (hub !== undefined) return hub;
    return fileName(typeof settings.model === "string" ? settings.model : settings.model.files[0]!);
  }
  return (model?.info.name || "model").replaceAll(",", "_");
}
