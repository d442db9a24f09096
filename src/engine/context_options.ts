import type { CacheType, CostOptions, PlanInput } from "../plan/mod.ts";
import { checkOptions, finiteNumber, oneOf, wholeNumber } from "../options/check_option.ts";
import { llamaArgs } from "../options/llama_args.ts";
import { knownNames, namesOf } from "../options/names.ts";
import { optionById, optionsOf } from "../options/table.ts";

/** The element types that a KV cache can have. */
export type KvType = CacheType;

/** Speculative decoding: tokens drafted cheaply and verified by the context's own layers, plan and all. */
export interface SpeculativeOptions {
  /** Kind of draft: a smaller model, the model's own MTP head, or n-grams of the text so far. */
  type: "draft" | "mtp" | "ngram";
  /** Path of the draft model, for `"draft"`. */
  model?: string;
  /** Most tokens to draft per step. Default: upstream's. */
  nMax?: number;
}

/** Options of {@linkcode Model.createContext}. */
export interface ContextOptions {
  /** The plan. Default: the model file's own `rys.layer_plan`, else none; `"none"` runs every layer once. */
  repeatLayers?: PlanInput | undefined;
  /**
   * Context size in tokens. The requests that run at once share it: together, prompts and answers cannot exceed it,
   * and if they would, all of them end with an error. Default: the model's, at most 4096.
   */
  nCtx?: number | undefined;
  /** Tokens handed to the model at once, at least `nParallel` and 2. A request stops between two batches. Default 512. */
  nBatch?: number | undefined;
  /** Tokens computed at once (ubatch). Default 512. */
  nUbatch?: number | undefined;
  /** Requests that run at once, one per slot, sharing `nCtx` tokens; further ones wait. Default 4. */
  nParallel?: number | undefined;
  /** Threads to compute with, at most four per core and 16 more. Default: the number of cores, at most 8. */
  threads?: number | undefined;
  /** Element type of the K cache. Default `"f16"`. */
  cacheTypeK?: KvType | undefined;
  /** Element type of the V cache. A quantised one turns flash attention on. Default `"f16"`. */
  cacheTypeV?: KvType | undefined;
  /** Flash attention. Default `"auto"`. */
  flashAttention?: "on" | "off" | "auto" | undefined;
  /** Full-size cache for sliding-window layers, which lets a prompt prefix be reused. Default false. */
  swaFull?: boolean | undefined;
  /** Jinja template in place of the model's own. */
  chatTemplate?: string | undefined;
  /** Speculative decoding. Default: none. */
  speculative?: SpeculativeOptions | undefined;
  /** LoRA adapters: paths, with a scale each. They reach every pass of a layer. */
  lora?: { path: string; scale?: number }[] | undefined;
  /** Control vectors: paths, with a scale each. They steer the layers they name in every pass. */
  controlVectors?: { path: string; scale?: number }[] | undefined;
  /** First and last layer that control vectors are applied to, the model's first being 1. Default: all. */
  controlVectorRange?: [first: number, last: number] | undefined;
  /** Drop the oldest tokens instead of stopping when the context is full. Default false. */
  contextShift?: boolean | undefined;
  /** MiB of RAM for prompts of other conversations. Default 0: none. */
  cacheRamMib?: number | undefined;
  /** Further flags of llama-server, as on its command line, e.g. `["--rope-scaling", "yarn"]`. */
  args?: string[] | undefined;
}

const CONTEXT_OPTIONS = namesOf<ContextOptions, "context">(["context"], {
  controlVectors: 1,
  speculative: 1,
  args: 1,
});

/** The number of threads to compute with by default. */
export function defaultThreads(): number {
  return Math.max(1, Math.min(8, navigator.hardwareConcurrency || 1));
}

/** Requests that run at once on a context by default. */
export const DEFAULT_PARALLEL = 4;
/** Tokens in a batch and a micro-batch by default. */
const DEFAULT_BATCH = Number(optionById("nBatch").default);

/** The default context size: the model's own, at most 4096. */
export function defaultContext(nCtxTrain: number): number {
  return nCtxTrain > 0 ? Math.min(nCtxTrain, 4096) : 4096;
}

/**
 * The options of a context that decide the size of its memory, with defaults for those that are not given.
 *
 * @param options The options.
 */
export function contextCost(options: ContextOptions): CostOptions {
  const { nParallel = DEFAULT_PARALLEL, nBatch = DEFAULT_BATCH, nUbatch = DEFAULT_BATCH } = options;
  const { nCtx, swaFull, flashAttention, cacheTypeK, cacheTypeV } = options;
  return {
    nCtx,
    nParallel,
    kvUnified: nParallel > 1,
    nBatch,
    nUbatch: Math.min(nUbatch, nBatch),
    swaFull,
    flashAttention,
    cacheTypeK,
    cacheTypeV,
  };
}

/**
 * llama-server's flags for a context.
 *
 * @param of What the options belong to, for messages.
 * @param options What the caller asks for.
 * @param nCtxTrain The model's own context size.
 * @param file Makes a path readable for the engine and returns its name there.
 */
export function contextArgs(
  of: string,
  options: ContextOptions,
  nCtxTrain: number,
  file: (path: string) => string,
): string[] {
  knownNames(of, options, CONTEXT_OPTIONS);
  checkOptions("context", options);
  const nParallel = options.nParallel ?? DEFAULT_PARALLEL;
  // Upstream asserts that a batch holds a token of every slot, and two tokens for a trial at the start.
  const nBatch = Math.max(options.nBatch ?? DEFAULT_BATCH, nParallel, 2);
  const values: Record<string, unknown> = {
    ...options,
    // A file may say 0, or a number that is negative as upstream's int32. Upstream rounds up to a multiple of 256.
    nCtx: Math.max(options.nCtx ?? defaultContext(nCtxTrain), 256),
    nParallel,
    nBatch,
    nUbatch: Math.min(options.nUbatch ?? DEFAULT_BATCH, nBatch),
    // Each is a Worker; many more than there are cores would only wait for each other.
    threads: Math.min(options.threads ?? defaultThreads(), 4 * defaultThreads() + 16),
    contextShift: options.contextShift ?? false,
  };
  const args = optionsOf("context").flatMap((row) => llamaArgs(row, values[row.id] ?? row.default));
  const add = (flag: string, value: string | number) => void args.push(flag, String(value));
  if (nParallel > 1) args.push("--kv-unified");
  add("--poll", 5); // a millisecond: the pause between two tokens; longer spinning starves everything else
  args.push("--no-cache-idle-slots");
  const adapters = scaledFiles("lora", options.lora);
  const vectors = scaledFiles("controlVectors", options.controlVectors);
  const range = options.controlVectorRange;
  if (range !== undefined) {
    if (!Array.isArray(range) || range.length !== 2) {
      throw new TypeError("controlVectorRange must be a first and a last layer");
    }
    range.forEach((layer, i) => wholeNumber(`controlVectorRange[${i}]`, layer, 1));
    args.push("--control-vector-layer-range", ...range.map(String));
  }
  const spec = options.speculative;
  if (spec !== undefined) {
    if (typeof spec !== "object" || spec === null) {
      throw new TypeError("speculative must be an object");
    }
    knownNames("speculative", spec, ["type", "model", "nMax"]);
    oneOf("speculative.type", spec.type, ["draft", "mtp", "ngram"]);
    if (spec.type === "draft" && typeof spec.model !== "string") {
      throw new TypeError(`speculative.type "draft" needs speculative.model, a path`);
    }
    add(
      "--spec-type",
      { draft: "draft-simple", mtp: "draft-mtp", ngram: "ngram-simple" }[spec.type],
    );
    if (spec.nMax !== undefined) {
      add("--spec-draft-n-max", wholeNumber("speculative.nMax", spec.nMax, 1));
    }
  }
  const more = options.args ?? [];
  if (!Array.isArray(more) || more.some((arg) => typeof arg !== "string")) {
    throw new TypeError("args must be a list of strings");
  }
  const listed = (files: ScaledFile[]) =>
    files.map(({ path, scale }) => `${file(path)}:${scale}`).join(",");
  if (adapters.length > 0) add("--lora-scaled", listed(adapters));
  if (vectors.length > 0) add("--control-vector-scaled", listed(vectors));
  if (spec?.type === "draft") add("-md", file(spec.model!));
  args.push(...more);
  // llama.cpp refuses -1, its own older value for the whole context.
  for (const flag of ["--repeat-last-n", "--dry-penalty-last-n"]) {
    const at = args.lastIndexOf(flag) + 1;
    if (at > 0 && args[at] === "-1") args[at] = String(values.nCtx);
  }
  return args;
}

/** A file and the scale that it is applied with. */
interface ScaledFile {
  path: string;
  scale: number;
}

function scaledFiles(name: string, files: ContextOptions["lora"]): ScaledFile[] {
  if (files === undefined) return [];
  if (!Array.isArray(files)) throw new TypeError(`${name} must be a list`);
  return files.map((one, i) => {
    if (typeof one !== "object" || one === null) {
      throw new TypeError(`${name}[${i}] must be an object with a path`);
    }
    const { path, scale = 1 } = one;
    if (typeof path !== "string") throw new TypeError(`${name}[${i}].path must be a path`);
    return { path, scale: finiteNumber(`${name}[${i}].scale`, scale, -1e6, 1e6) };
  });
}
