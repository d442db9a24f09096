import type { ContextOptions, LoadModelOptions, Model, ModelInfo } from "../engine/mod.ts";
import { DEFAULT_PARALLEL } from "../engine/context_options.ts";
import { checkOptions, finiteNumber } from "../options/check_option.ts";
import { knownNames, namesOf } from "../options/names.ts";
import { optionById, optionsOf } from "../options/table.ts";
import type { GgufModel } from "../gguf/mod.ts";
import type { PlanInput } from "../plan/mod.ts";

/** Options of {@linkcode createServer}. */
export interface ServerOptions {
  /**
   * The model: a path (of any shard of a split model), what `readModel()` gave of it, or a model that is loaded already
   * and stays the caller's.
   */
  model: string | GgufModel | Model;
  /** Name of the model in answers and in `/v1/models`. Default: the file's name without `.gguf`. */
  modelName?: string | undefined;
  /** Plan of requests that name none. Default: the model file's own, else none. */
  repeatLayers?: PlanInput | undefined;
  /** Named plans: a request whose `model` is the name runs the plan. `undefined` as the plan is the default plan. */
  aliases?: Record<string, PlanInput | undefined> | undefined;
  /** Refuse names of models that are not known, in place of running the default plan as llama-server does. Default false. */
  strictModels?: boolean | undefined;
  /** Contexts that live at once, one for each plan in use (and one more for embeddings of a plan). Default 4. */
  maxContexts?: number | undefined;
  /**
   * Bytes that caches and scratch of all contexts may take. Default: what WASM memory has beside the weights; none where
   * all layers are on a GPU, whose room WebGPU does not tell: there contexts are made until one does not fit.
   */
  memoryBudget?: number | undefined;
  /** Requests that run at once on one plan; more wait. Default 4. */
  nParallel?: number | undefined;
  /** Tokens of a context, which the requests that run on it at once share. Default: the model's, at most 4096. */
  nCtx?: number | undefined;
  /** Further options of contexts: threads, cache types, batch sizes, LoRA, speculative decoding. */
  context?: Omit<ContextOptions, "repeatLayers" | "nCtx" | "nParallel"> | undefined;
  /** Further options of loading the model: the GPU, how many layers on it, the log of llama.cpp. */
  load?: Omit<LoadModelOptions, "signal"> | undefined;
  /** Seed of requests that name none; -1: a random one for each. Default -1. */
  seed?: number | undefined;
  /** The route `/slots`, which shows what runs. Default true. */
  slots?: boolean | undefined;
  /** What the paths of all routes begin with, e.g. `"/llama"`. Default: nothing. */
  apiPrefix?: string | undefined;
  /** How embeddings are pooled: `"mean"`, `"cls"`, `"last"`, `"none"`. Default: the model's own way, else `"mean"`. */
  pooling?: "none" | "mean" | "cls" | "last" | undefined;
  /** Keys, one of which a request must carry (`Authorization: Bearer`, or `X-Api-Key`). Default: none is asked for. */
  apiKeys?: readonly string[] | undefined;
  /**
   * Origins whose web pages may use the server; `"localhost"`: those of this machine, true: all. Default: none but the
   * server's own page.
   */
  cors?: boolean | readonly string[] | undefined;
  /** Requests that may wait for their turn; more are refused with 503. Default 64. */
  maxQueue?: number | undefined;
  /** Bytes of a request's body at most. Default 16 MiB. */
  maxBodyBytes?: number | undefined;
  /** Seconds that a request's body may take to arrive. Default 30. */
  bodyTimeout?: number | undefined;
  /** Seconds that a request may take in all. Default 3600. */
  requestTimeout?: number | undefined;
  /** Seconds that the reader of a streamed answer may leave it unread. Default 60. */
  readTimeout?: number | undefined;
  /**
   * Seconds that a context may leave unanswered after one of its requests was stopped, before the engine is taken for
   * stuck and the model is loaded again; longer than a micro-batch takes. Default 600.
   */
  stuckTimeout?: number | undefined;
  /** Seconds that requests have to end when the server is closed. Default 7. */
  drainTimeout?: number | undefined;
  /** The web page at `/`. Default true. */
  page?: boolean | undefined;
  /** Told what the model says of itself, and the GPU it is on, when it is loaded; also when it is loaded again. */
  onModel?: ((info: ModelInfo) => void) | undefined;
  /** Told what happens, one line each. Default: nothing is told. */
  onLog?: ((line: string) => void) | undefined;
}

/** Options of {@linkcode serve}. */
export interface ServeOptions extends ServerOptions {
  /** Address to listen on. Default `"127.0.0.1"`: this machine alone. */
  host?: string | undefined;
  /** Port to listen on; 0 takes a free one. Default 8080. */
  port?: number | undefined;
  /**
   * Names in the `Host` header, beside the machine's own, that are answered where no key is asked for; a web page could
   * else reach the server by a name of its own that leads here. Default: none.
   */
  allowedHosts?: readonly string[] | undefined;
}

/** Options that have a default. */
type Filled =
  | "strictModels"
  | "maxContexts"
  | "nParallel"
  | "maxQueue"
  | "maxBodyBytes"
  | "bodyTimeout"
  | "requestTimeout"
  | "readTimeout"
  | "stuckTimeout"
  | "drainTimeout"
  | "page"
  | "slots"
  | "apiPrefix";

/** {@linkcode ServerOptions} with all defaults. */
export type Settings =
  & Omit<ServerOptions, Filled>
  & { [name in Filled]: NonNullable<ServerOptions[name]> };

const NAMES = namesOf<ServerOptions, "server">(["server"], {
  modelName: 1,
  context: 1,
  load: 1,
  onModel: 1,
  onLog: 1,
});

/** Options of {@linkcode serve} that {@linkcode createServer} does not have. */
const SERVE_NAMES: readonly string[] = optionsOf("listen").map(({ id }) => id);

/**
 * The server's own part of the options of {@linkcode serve}, after all of them were checked.
 *
 * @param options What the caller gave.
 * @throws {TypeError | RangeError} If one is wrong.
 */
export function serverOptions(options: ServeOptions): ServerOptions {
  const { host, allowedHosts } = options;
  checkOptions("listen", options);
  if (host === "") throw new TypeError("host must be an address");
  if (allowedHosts !== undefined) listOfText("allowedHosts", allowedHosts);
  const own = Object.fromEntries(
    Object.entries(options).filter(([name]) => !SERVE_NAMES.includes(name)),
  ) as unknown as ServerOptions;
  settings(own);
  return own;
}

/**
 * Checks options and fills in defaults.
 *
 * @param options What the caller gave.
 * @throws {TypeError | RangeError} If one is wrong.
 */
export function settings(options: ServerOptions): Settings {
  knownNames("createServer()", options, NAMES);
  checkOptions("server", options);
  const { model, apiKeys, cors, aliases, modelName } = options;
  if (typeof model !== "string" && !(typeof model === "object" && model !== null)) {
    throw new TypeError("model must be a path or a loaded model");
  }
  if (model === "") throw new TypeError("model must be a path, not empty text");
  if (modelName !== undefined && (typeof modelName !== "string" || modelName === "")) {
    throw new TypeError("modelName must be text");
  }
  if (apiKeys !== undefined) {
    listOfText("apiKeys", apiKeys);
    if (apiKeys.some((key) => !/^[\x21-\x7e]+$/.test(key))) {
      throw new TypeError("apiKeys must be of visible ASCII characters, without spaces");
    }
  }
  if (cors !== undefined && typeof cors !== "boolean") {
    listOfText("cors", cors);
    for (const origin of cors) {
      if (!["*", "null", "localhost"].includes(origin) && originOf(origin) !== origin) {
        throw new TypeError(
          `cors must be origins such as "https://example.com", not ${JSON.stringify(origin)}`,
        );
      }
    }
  }
  const apiPrefix = (options.apiPrefix ?? "").replace(/\/+$/, "");
  if (apiPrefix !== "" && !/^(?:\/[\w.~-]+)+$/.test(apiPrefix)) {
    throw new TypeError(
      `apiPrefix must be the beginning of a path, such as "/llama", not ${
        JSON.stringify(apiPrefix)
      }`,
    );
  }
  if (aliases !== undefined && (typeof aliases !== "object" || aliases === null)) {
    throw new TypeError("aliases must be an object of names and plans");
  }
  for (const name of Object.keys(aliases ?? {})) {
    if (name === "" || name.length > 256) {
      throw new RangeError("a name in aliases has 1 to 256 characters");
    }
  }
  for (const name of ["onModel", "onLog"] as const) {
    if (options[name] !== undefined && typeof options[name] !== "function") {
      throw new TypeError(`${name} must be a function`);
    }
  }
  for (const name of ["memoryBudget", "maxBodyBytes"] as const) {
    const bytes = options[name];
    if (bytes !== undefined) finiteNumber(name, bytes, 1, Number.MAX_SAFE_INTEGER);
  }
  return {
    nParallel: DEFAULT_PARALLEL,
    strictModels: false,
    page: true,
    slots: true,
    ...DEFAULTS,
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
    model,
    apiPrefix,
  } as Settings;
}

/** What the table has as defaults, in the library's units. */
const DEFAULTS = Object.fromEntries(
  optionsOf("server").filter((row) => typeof row.default === "number")
    .map((row) => [row.id, Number(row.default) * (row.unit ?? 1)]),
);

/** Seconds that requests have to end at the end, unless an option says otherwise. */
export const DEFAULT_DRAIN_SECONDS = Number(optionById("drainTimeout").default);

function listOfText(name: string, value: unknown): asserts value is readonly string[] {
  if (!Array.isArray(value) || value.some((one) => typeof one !== "string" || one === "")) {
    throw new TypeError(`${name} must be a list of texts`);
  }
}

function originOf(text: string): string | undefined {
  try {
    return new URL(text).origin;
  } catch {
    return undefined;
  }
}
