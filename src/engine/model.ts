import type { GpuChoice } from "../../gpu/device.ts";
import type { GpuCounts } from "../../gpu/executor.ts";
import { checkOptions, oneOf, wholeNumber } from "../options/check_option.ts";
import { knownNames, namesOf } from "../options/names.ts";
import { type EffectivePlan, packPlan, type PlanInput, resolvePlan } from "../plan/mod.ts";
import { type CallEvents, EngineClient, EngineError } from "./client.ts";
import type { LiveContext } from "./call_context.ts";
import { Context } from "./context.ts";
import { contextInfo } from "./context_info.ts";
import type { ContextModel, Logits } from "./context_model.ts";
import {
  contextArgs,
  type ContextOptions,
  defaultThreads,
  type KvType,
} from "./context_options.ts";
import { contextWarnings } from "./context_warnings.ts";
import { inUnits, type ModelInfo, modelInfo, type RawModel, UNITS } from "./model_info.ts";
import type { HubOptions } from "../hub/settings.ts";
import type { EngineCall } from "./protocol.ts";
import { Gate } from "./gate.ts";
import { type ModelSource, openSources, pathSource } from "./source.ts";

/** Options of {@linkcode loadModel}. */
export interface LoadModelOptions {
  /** Called with how much is loaded, 0 to 1. */
  onProgress?: ((fraction: number) => void) | undefined;
  /** Stops the loading; the promise then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Receives llama.cpp's log lines. */
  onLog?: ((level: LogLevel, line: string) => void) | undefined;
  /** How much llama.cpp logs: 1 errors, 2 warnings, 3 information, 4 trace, 5 debug. Default 2; 3 with `onLog`. */
  verbosity?: number | undefined;
  /** Folder of the built WASM, with a slash at its end. Default: the package's own `wasm/dist/`. */
  dist?: URL | undefined;
  /**
   * Where to compute. `"auto"` (default): on the GPU if there is one that is not a software rasteriser; `"required"`: on
   * whatever adapter WebGPU offers, or fail; `"off"`: on the CPU, without touching WebGPU.
   */
  gpu?: "auto" | "off" | "required" | undefined;
  /** How many layers' weights go to the GPU, from the last one on; the output layer counts as one. Default `"all"`. */
  gpuLayers?: number | "all" | undefined;
  /** Which adapter to use if there are several. Default: the system's choice. */
  powerPreference?: "low-power" | "high-performance" | undefined;
  /** How the GPU is driven; for measurements and tests. */
  gpuBridge?: Pick<GpuChoice, "provider" | "readback" | "immediate" | "vendor"> | undefined;
  /** Load the model's next-token (MTP) layers as well; speculative decoding of type `"mtp"` needs them. Default false. */
  mtp?: boolean | undefined;
  /**
   * Rearrange weights while loading for faster kernels on the CPU; costs no memory. Default true. With `false` the CPU
   * computes as llama.cpp compiled to WASM does, bit for bit.
   */
  repack?: boolean | undefined;
  /** How a model on the hub or at a URL is fetched: token, cache, progress. */
  hub?: HubOptions | undefined;
  /** Further flags of llama-server that concern the model, e.g. `["--override-kv", "..."]`. */
  args?: string[] | undefined;
}

/** Severity of a log line. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** How long {@linkcode Model.dispose} waits for calls under way. */
const DISPOSE_LIMIT_MS = 10_000;

/** The KV cache types that the GPU backend can write. */
const GPU_KV_TYPES: readonly KvType[] = ["f32", "f16", "q8_0", "q4_0"];

const LOG_LEVELS: Record<number, LogLevel> = { 1: "debug", 2: "info", 3: "warn", 4: "error" };

/**
 * Loads a GGUF model. Its weights are kept once, however many contexts run on it. A loaded model does
 * not keep the process from ending; a call that is awaited does.
 *
 * @param source A path (of any shard of a split model), a `file:` URL, a `Blob`, the file's bytes, or what `readModel()`
 * gave.
 * @param options Progress, cancel, logging.
 * @returns The model; dispose of it, or hold it with `await using`.
 * @throws {GgufError} If the file is not a GGUF, is truncated, or says something impossible.
 * @throws {EngineError} If the WASM is not built, or llama.cpp cannot load the model.
 *
 * @example
 * ```ts
 * import { loadModel } from "@rys/edge";
 * import { assert } from "@std/assert";
 *
 * await using model = await loadModel("models/demo.gguf");
 * await using context = await model.createContext({ repeatLayers: "26,34", nCtx: 512 });
 * let text = "";
 * for await (const piece of context.generate("Once upon a time", { maxTokens: 8, temperature: 0 })) text += piece.text;
 * assert(text.length > 0);
 * ```
 */
export async function loadModel(
  source: ModelSource,
  options: LoadModelOptions = {},
): Promise<Model> {
  knownNames("loadModel()", options, LOAD_OPTIONS);
  checkLoadOptions(options);
  options.signal?.throwIfAborted();
  const sources = await openSources(source, { signal: options.signal, ...options.hub });
  const { onLog } = options;
  const client = await EngineClient.start({
    dist: options.dist ?? new URL("../../wasm/dist/", import.meta.url),
    verbosity: options.verbosity ?? (onLog ? 3 : 2),
    threads: defaultThreads() + 2, // one to serve calls, two for a context's loop
    gpu: {
      mode: options.gpuLayers === 0 ? "off" : options.gpu ?? "auto",
      ...(options.powerPreference ? { powerPreference: options.powerPreference } : {}),
      ...options.gpuBridge,
    },
    ...(onLog
      ? { onLog: (level, line) => onLog(LOG_LEVELS[level] ?? "info", line.trimEnd()) }
      : {}),
  });
  try {
    const events: CallEvents = {};
    if (options.onProgress) events.progress = (mille) => options.onProgress!(mille / 1000);
    const call: EngineCall = {
      fn: "model_load",
      options: { path: client.addFiles(sources), args: modelArgs(options) },
      cancel: 0,
    };
    const { handle, text } = await client.call(call, events, options.signal);
    const model = new Model(client, handle, JSON.parse(text));
    const { cpuTensors = [], cpuBytes = 0 } = model.info.gpu ?? {};
    if (cpuTensors.length > 0) {
      const names = cpuTensors.map(({ name, bytes }) => `${name} (${inUnits(bytes, 1024, UNITS)})`);
      const size = inUnits(cpuBytes, 1024, UNITS);
      client.log(
        3,
        `the GPU cannot hold or compute ${size} of weights; the CPU does: ${names.join(", ")}`,
      );
    }
    return model;
  } catch (error) {
    await client.close();
    throw error;
  }
}

const LOAD_OPTIONS = namesOf<LoadModelOptions, "load">(["load"], {
  onProgress: 1,
  signal: 1,
  onLog: 1,
  dist: 1,
  gpuBridge: 1,
  mtp: 1,
  args: 1,
  hub: 1,
});

function checkLoadOptions(options: LoadModelOptions): void {
  checkOptions("load", options);
  const { args, onLog, onProgress, dist, signal } = options;
  if (args !== undefined && !(Array.isArray(args) && args.every((a) => typeof a === "string"))) {
    throw new TypeError("args must be a list of strings");
  }
  for (const [name, fn] of Object.entries({ onLog, onProgress })) {
    if (fn !== undefined && typeof fn !== "function") {
      throw new TypeError(`${name} must be a function`);
    }
  }
  const { gpu = "auto", gpuLayers = "all" } = options;
  oneOf("gpu", gpu, ["auto", "off", "required"]);
  if (gpuLayers !== "all") wholeNumber("gpuLayers", gpuLayers, 0);
  if (gpu === "required" && gpuLayers === 0) {
    throw new RangeError('gpu: "required" with gpuLayers: 0 asks for a GPU and for none of it');
  }
  if (dist !== undefined && !(dist instanceof URL)) throw new TypeError("dist must be a URL");
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError("signal must be an AbortSignal");
  }
}

function modelArgs(options: LoadModelOptions): string[] {
  const { gpuLayers = "all" } = options;
  return [
    "-ngl",
    String(gpuLayers === "all" ? 9999 : gpuLayers),
    ...options.mtp ? ["--spec-type", "draft-mtp"] : [],
    ...options.repack === false ? ["--no-repack"] : [],
    ...options.args ?? [],
  ];
}

/** A loaded model. Made by {@linkcode loadModel}. */
export class Model implements ContextModel, AsyncDisposable {
  /** What the model reports about itself. */
  readonly info: ModelInfo;
  readonly #client: EngineClient;
  readonly #handle: number;
  readonly #contexts = new Set<Context>();
  readonly #creating = new Set<Promise<unknown>>();

  /** Use {@linkcode loadModel}. */
  constructor(client: EngineClient, handle: number, raw: RawModel) {
    this.#client = client;
    this.#handle = handle;
    this.info = modelInfo(raw, client.gpu);
  }

  /**
   * Resolves a plan on this model, without making a context. The result may itself be given as a plan.
   *
   * @param repeatLayers The plan. Default: the model file's own, else none.
   * @returns The layers that would run.
   * @throws {SyntaxError | RangeError | TypeError} If the plan is malformed or does not fit the model.
   *
   * @example A block of two layers
   * ```ts
   * import { loadModel } from "@rys/edge";
   * import { assertEquals } from "@std/assert";
   *
   * await using model = await loadModel("models/demo.gguf");
   * assertEquals(model.expandPlan("20,22").layers.slice(18, 26), [18, 19, 20, 21, 20, 21, 22, 23]);
   * ```
   */
  expandPlan(repeatLayers?: PlanInput): EffectivePlan {
    const { nLayer, nLayerNextn: nextn, layerPlan } = this.info;
    return resolvePlan(repeatLayers, { nLayer, nextn, layerPlan });
  }

  /**
   * Makes a context: a plan, a KV cache, and a place where requests run. Any number of them work side by side on one
   * model, each with its own plan; weights are shared.
   *
   * @param options Plan, sizes, cache types, threads.
   * @throws {SyntaxError | RangeError | TypeError} If the plan or an option is wrong.
   * @throws {EngineError} If the architecture cannot run the plan, or there is not enough memory.
   *
   * @example Two plans on one model
   * ```ts
   * import { loadModel } from "@rys/edge";
   * import { assertEquals } from "@std/assert";
   *
   * await using model = await loadModel("models/demo.gguf");
   * await using plain = await model.createContext({ repeatLayers: "none", nCtx: 512 });
   * await using plan = await model.createContext({ repeatLayers: "26,34", nCtx: 512 });
   * assertEquals([plain.info.plan.nLayerEff, plan.info.plan.nLayerEff], [40, 48]);
   * assertEquals(plan.info.modelBytes, plain.info.modelBytes);
   * ```
   */
  async createContext(options: ContextOptions = {}): Promise<Context> {
    const plan = this.expandPlan(options.repeatLayers);
    const args = contextArgs(
      "createContext()",
      options,
      this.info.nCtxTrain,
      (path) => this.#client.addFiles([pathSource(path)]),
    );
    args.push(...this.#cacheArgs(options));
    const { kind, words } = packPlan(plan);
    const create = async (extra: string[]): Promise<LiveContext> => {
      const call = this.#client.call({
        fn: "context_create",
        model: this.#handle,
        options: { args: [...args, ...extra], alias: this.info.name || "model" },
        kind,
        words,
      });
      // The model is not freed before a context that was made on it meanwhile.
      const made = call.then(async ({ handle, text }) => {
        if (!this.#disposing) return { handle, text };
        await this.#client.call({ fn: "context_free", context: handle });
        throw new EngineError("the model is disposed");
      });
      this.#creating.add(made);
      const { handle, text } = await made.finally(() => this.#creating.delete(made));
      const info = contextInfo(JSON.parse(text), plan);
      info.warnings = contextWarnings(options.nCtx, this.info.nCtxTrain, info);
      const requests = new Gate(info.nParallel);
      return { handle, info, requests, others: new Gate(4), disposed: false };
    };
    const context = new Context(this, this.#client, await create([]), create, options, () => {
      this.#contexts.delete(context);
    });
    this.#contexts.add(context);
    for (const text of context.info.warnings) this.#client.log(3, text);
    return context;
  }

  /** The GPU backend writes only some cache types; any other stays in memory, with its attention on the CPU. */
  #cacheArgs(options: ContextOptions): string[] {
    if (!this.info.gpu) return [];
    const types = [options.cacheTypeK, options.cacheTypeV].filter((type) => type !== undefined);
    const other = types.find((type) => !GPU_KV_TYPES.includes(type));
    if (!other) return [];
    this.#client.log(3, `the GPU cannot keep a cache of type ${other}: it stays in memory`);
    return ["--no-kv-offload"];
  }

  /**
   * Splits text into tokens.
   *
   * @param text The text.
   * @param options `addSpecial` (default true) adds the model's begin/end tokens, `parseSpecial` (default true) reads
   * control tokens in the text.
   * @returns Token ids.
   *
   * @example There and back
   * ```ts
   * import { loadModel } from "@rys/edge";
   * import { assertEquals } from "@std/assert";
   *
   * await using model = await loadModel("models/demo.gguf");
   * const tokens = await model.tokenize("Once upon a time");
   * assertEquals(await model.detokenize(tokens), "Once upon a time");
   * ```
   */
  async tokenize(
    text: string,
    options: { addSpecial?: boolean; parseSpecial?: boolean } = {},
  ): Promise<number[]> {
    knownNames("tokenize()", options, ["addSpecial", "parseSpecial"]);
    const { addSpecial = true, parseSpecial = true } = options;
    if (typeof text !== "string") throw new TypeError(`text must be a string, not ${typeof text}`);
    const call = {
      do: "tokenize",
      text: text.toWellFormed(),
      add_special: addSpecial,
      parse_special: parseSpecial,
    };
    return (await this.#modelCall<{ tokens: number[] }>(call)).tokens;
  }

  /**
   * Joins tokens into text.
   *
   * @param tokens Token ids.
   * @param options `special` (default true) shows control tokens.
   * @throws {RangeError} If a token is outside the vocabulary.
   */
  async detokenize(
    tokens: readonly number[],
    options: { special?: boolean } = {},
  ): Promise<string> {
    knownNames("detokenize()", options, ["special"]);
    for (const token of tokens) wholeNumber("token", token, 0, this.info.nVocab - 1);
    const call = { do: "detokenize", tokens, special: options.special ?? true };
    return (await this.#modelCall<{ text: string }>(call)).text;
  }

  async #modelCall<T>(call: unknown): Promise<T> {
    const { text } = await this.#client.call({ fn: "model_call", model: this.#handle, call });
    return JSON.parse(text);
  }

  /**
   * Logits of every token of a prompt, in one pass on a context of its own that is freed after it.
   *
   * @param prompt Text or tokens; at least one token.
   * @param options Plan, cache types, threads, `signal`.
   * @returns Rows of `nVocab` 32-bit floats.
   * @throws {RangeError} If the prompt has no tokens, or one outside the vocabulary.
   * @throws {EngineError} If the plan is refused.
   *
   * @example The likeliest next token
   * ```ts
   * import { loadModel } from "@rys/edge";
   * import { assert } from "@std/assert";
   *
   * await using model = await loadModel("models/demo.gguf");
   * const { data, nVocab, tokens } = await model.logits("Once upon a", { repeatLayers: "26,34" });
   * const row = data.subarray((tokens.length - 1) * nVocab);
   * const best = row.indexOf(row.reduce((a, b) => Math.max(a, b)));
   * assert((await model.detokenize([best])).length > 0);
   * ```
   */
  async logits(
    prompt: string | readonly number[],
    options: ContextOptions & { signal?: AbortSignal } = {},
  ): Promise<Logits> {
    const { signal, ...rest } = options;
    const plan = this.expandPlan(rest.repeatLayers);
    if (typeof prompt !== "string" && !Array.isArray(prompt)) {
      throw new TypeError("The prompt must be a string or a list of tokens");
    }
    const tokens = typeof prompt === "string" ? await this.tokenize(prompt) : [...prompt];
    if (tokens.length === 0) throw new RangeError("The prompt has no tokens");
    for (const token of tokens) wholeNumber("token", token, 0, this.info.nVocab - 1);
    const { nVocab } = this.info;
    const data = new Float32Array(tokens.length * nVocab);
    const bytes = new Uint8Array(data.buffer);
    let at = 0;
    const args = contextArgs(
      "logits()",
      rest,
      tokens.length,
      (path) => this.#client.addFiles([pathSource(path)]),
    );
    args.push(...this.#cacheArgs(rest));
    const { text } = await this.#client.call(
      {
        fn: "logits_eval",
        model: this.#handle,
        options: { args },
        ...packPlan(plan),
        tokens: Int32Array.from(tokens),
        cancel: 0,
      },
      {
        chunk(part) {
          bytes.set(part, at);
          at += part.length;
        },
      },
      signal,
    );
    const info = contextInfo(JSON.parse(text), plan);
    return { tokens, nVocab, data, plan: info.plan };
  }

  /** Bytes of memory that the engine has taken from the host: weights, caches, scratch. */
  heapBytes(): Promise<number> {
    return this.#client.heapBytes();
  }

  /** What the GPU bridge has done since the model was loaded, for measurements; null on the CPU. */
  gpuCounts(): Promise<GpuCounts & { recorded: number } | null> {
    return this.#client.gpuCounts();
  }

  /** True when {@linkcode Model.dispose} was called or the engine's instance is gone. */
  get disposed(): boolean {
    return this.#disposing !== undefined || this.#client.gone !== undefined;
  }

  #disposing: Promise<void> | undefined;

  /** Stops everything that runs, frees contexts and weights, ends the Worker. Harmless when called again. */
  dispose(): Promise<void> {
    return this.#disposing ??= (async () => {
      // A call that does not end, e.g. a chat template that loops, must not keep the caller from leaving.
      const limit = setTimeout(
        () => this.#client.kill("it did not end by itself"),
        DISPOSE_LIMIT_MS,
      );
      await Promise.allSettled([...this.#contexts].map((context) => context.dispose()));
      await Promise.allSettled([...this.#creating]);
      await this.#client.call({ fn: "model_free", model: this.#handle }).catch(() => {});
      await this.#client.close();
      clearTimeout(limit);
    })();
  }

  /** Same as {@linkcode Model.dispose}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
