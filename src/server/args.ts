import type { ContextOptions, PlanInput } from "../engine/mod.ts";
import { knownNames, namesOf } from "../engine/names.ts";
import { formatPlan, readPlan } from "../plan/mod.ts";
import type { ServeOptions } from "./options.ts";

/** Options of {@linkcode serverArgs}: those of {@linkcode serve} that a command line can say, and a few of its own. */
export interface ServerArgsOptions extends
  Omit<
    ServeOptions,
    | "model"
    | "modelName"
    | "memoryBudget"
    | "maxBodyBytes"
    | "context"
    | "load"
    | "onModel"
    | "onLog"
  > {
  /** Path of the model. Default: the demo model. */
  model?: string | undefined;
  /** Bytes that caches and scratch of all contexts may take, rounded down to MiB. */
  memoryBudget?: number | undefined;
  /** Bytes of a request's body at most. */
  maxBodyBytes?: number | undefined;
  /** Options of contexts. */
  context?:
    | Omit<ContextOptions, "repeatLayers" | "nCtx" | "nParallel" | "args">
    | undefined;
  /** File with a key in each line. Other users of the machine can read a command line, and with it `apiKeys`. */
  apiKeyFile?: string | undefined;
  /** Whether a GPU is used. */
  gpu?: "auto" | "on" | "off" | "required" | undefined;
  /** How many layers' weights go to the GPU, from the last one on. */
  gpuLayers?: number | "all" | undefined;
  /** Which adapter, where there are several. */
  powerPreference?: "low-power" | "high-performance" | undefined;
  /** Take jobs from the queue of a Runpod endpoint. */
  runpodQueue?: boolean | undefined;
  /** No notes on standard error; warnings and errors stay. */
  quiet?: boolean | undefined;
  /** Further flags of the command, e.g. `["--temp", "0"]`. */
  args?: readonly string[] | undefined;
}

const NAMES = namesOf<ServerArgsOptions>({
  model: 1,
  repeatLayers: 1,
  aliases: 1,
  strictModels: 1,
  maxContexts: 1,
  memoryBudget: 1,
  nParallel: 1,
  nCtx: 1,
  context: 1,
  pooling: 1,
  apiKeys: 1,
  apiKeyFile: 1,
  cors: 1,
  maxQueue: 1,
  maxBodyBytes: 1,
  bodyTimeout: 1,
  requestTimeout: 1,
  readTimeout: 1,
  stuckTimeout: 1,
  drainTimeout: 1,
  page: 1,
  host: 1,
  port: 1,
  allowedHosts: 1,
  gpu: 1,
  gpuLayers: 1,
  powerPreference: 1,
  runpodQueue: 1,
  quiet: 1,
  args: 1,
});

const CONTEXT_NAMES = namesOf<NonNullable<ServerArgsOptions["context"]>>({
  nBatch: 1,
  nUbatch: 1,
  threads: 1,
  cacheTypeK: 1,
  cacheTypeV: 1,
  flashAttention: 1,
  swaFull: 1,
  chatTemplate: 1,
  speculative: 1,
  lora: 1,
  contextShift: 1,
  cacheRamMib: 1,
});

const MIB = 2 ** 20;

/**
 * The command line that starts a server, for a program that runs it as a child.
 *
 * @param options What the server is to be.
 * @returns Arguments for `mod.ts`, the command `serve` first. An option that is not given is not in them.
 * @throws {TypeError | RangeError | SyntaxError} If an option is of the wrong kind, a plan does not parse, or a text
 * cannot stand on a command line. Whether values fit the model, the command itself says.
 *
 * @example A server that is a child
 * ```ts
 * import { serverArgs } from "@rys/edge/serve";
 * import { assertEquals } from "@std/assert";
 *
 * const args = serverArgs({
 *   model: "models/demo.gguf",
 *   repeatLayers: "26,34",
 *   aliases: { plain: "none" },
 *   port: 8090,
 * });
 * assertEquals(args, [
 *   ...["serve", "-m", "models/demo.gguf", "--repeat-layers", "26,34", "--alias", "plain=none"],
 *   ...["--port", "8090"],
 * ]);
 * // new Deno.Command("deno", { args: ["run", "-A", "mod.ts", ...args] }).spawn();
 * ```
 */
export function serverArgs(options: ServerArgsOptions = {}): string[] {
  knownNames("serverArgs()", options, NAMES);
  const context = options.context ?? {};
  if (typeof context !== "object") throw new TypeError("context must be an object");
  knownNames("context", context, CONTEXT_NAMES);
  const args = ["serve"];
  const text = (flag: string, name: string, value: unknown) => {
    if (value === undefined) return;
    if (typeof value !== "string") throw new TypeError(`${name} must be text`);
    if (value.includes("\0")) throw new TypeError(`${name} has a NUL character`);
    args.push(flag, value);
  };
  const number = (flag: string, name: string, value: unknown, unit = 1) => {
    if (value === undefined) return;
    if (typeof value !== "number" || !Number.isFinite(value)) {
      throw new TypeError(`${name} must be a number`);
    }
    args.push(flag, String(value / unit));
  };
  const isOn = (name: string, value: unknown): boolean => {
    if (value !== undefined && typeof value !== "boolean") {
      throw new TypeError(`${name} must be true or false`);
    }
    return value === true;
  };
  const toggle = (flag: string, name: string, value: unknown) => {
    if (isOn(name, value)) args.push(flag);
  };
  const texts = (flag: string, name: string, value: unknown) => {
    if (value !== undefined && !Array.isArray(value)) throw new TypeError(`${name} must be a list`);
    for (const one of value ?? []) text(flag, `an item of ${name}`, one);
  };

  text("-m", "model", options.model);
  if (options.repeatLayers !== undefined) {
    args.push("--repeat-layers", planText("repeatLayers", options.repeatLayers));
  }
  for (const [name, plan] of Object.entries(options.aliases ?? {})) {
    if (name === "" || name !== name.trim() || /[=\0]/.test(name)) {
      throw new TypeError(
        `the alias ${
          JSON.stringify(name)
        } cannot stand on a command line: it is empty, or has a "=" or spaces around it`,
      );
    }
    args.push("--alias", plan === undefined ? name : `${name}=${planText(`alias ${name}`, plan)}`);
  }
  toggle("--strict-models", "strictModels", options.strictModels);
  number("--max-contexts", "maxContexts", options.maxContexts);
  if (options.memoryBudget !== undefined) {
    number("--memory-budget", "memoryBudget", options.memoryBudget);
    args[args.length - 1] = String(Math.floor(options.memoryBudget / MIB));
  }
  number("-np", "nParallel", options.nParallel);
  number("-c", "nCtx", options.nCtx);
  contextArgs(context, { args, text, number, toggle });
  text("--pooling", "pooling", options.pooling);
  if (options.apiKeys?.some((key) => typeof key === "string" && key.includes(","))) {
    throw new TypeError("apiKeys: on a command line a comma separates keys; give apiKeyFile");
  }
  texts("--api-key", "apiKeys", options.apiKeys);
  text("--api-key-file", "apiKeyFile", options.apiKeyFile);
  if (typeof options.cors === "boolean") {
    if (options.cors) args.push("--cors-origin", "*");
  } else texts("--cors-origin", "cors", options.cors);
  number("--max-queue", "maxQueue", options.maxQueue);
  number("--max-body", "maxBodyBytes", options.maxBodyBytes, MIB);
  number("--body-timeout", "bodyTimeout", options.bodyTimeout);
  number("--timeout", "requestTimeout", options.requestTimeout);
  number("--read-timeout", "readTimeout", options.readTimeout);
  number("--stuck-timeout", "stuckTimeout", options.stuckTimeout);
  number("--drain-timeout", "drainTimeout", options.drainTimeout);
  if (options.page !== undefined && !isOn("page", options.page)) args.push("--no-page");
  text("--host", "host", options.host);
  number("--port", "port", options.port);
  texts("--allowed-host", "allowedHosts", options.allowedHosts);
  text("--gpu", "gpu", options.gpu);
  if (options.gpuLayers === "all") args.push("-ngl", "all");
  else number("-ngl", "gpuLayers", options.gpuLayers);
  text("--gpu-power", "powerPreference", options.powerPreference);
  toggle("--runpod-queue", "runpodQueue", options.runpodQueue);
  toggle("--quiet", "quiet", options.quiet);
  const more = options.args ?? [];
  if (!Array.isArray(more) || more.some((arg) => typeof arg !== "string")) {
    throw new TypeError("args must be a list of texts");
  }
  return [...args, ...more];
}

interface Adders {
  args: string[];
  text(flag: string, name: string, value: unknown): void;
  number(flag: string, name: string, value: unknown): void;
  toggle(flag: string, name: string, value: unknown): void;
}

function contextArgs(
  context: NonNullable<ServerArgsOptions["context"]>,
  { args, text, number, toggle }: Adders,
): void {
  number("-b", "context.nBatch", context.nBatch);
  number("-ub", "context.nUbatch", context.nUbatch);
  number("-t", "context.threads", context.threads);
  text("-ctk", "context.cacheTypeK", context.cacheTypeK);
  text("-ctv", "context.cacheTypeV", context.cacheTypeV);
  text("-fa", "context.flashAttention", context.flashAttention);
  toggle("--swa-full", "context.swaFull", context.swaFull);
  toggle("--context-shift", "context.contextShift", context.contextShift);
  text("--chat-template", "context.chatTemplate", context.chatTemplate);
  number("-cram", "context.cacheRamMib", context.cacheRamMib);
  const { speculative, lora } = context;
  if (speculative !== undefined) {
    const types: Record<string, string> = {
      draft: "draft-simple",
      mtp: "draft-mtp",
      ngram: "ngram-simple",
    };
    text("--spec-type", "context.speculative.type", types[speculative.type] ?? speculative.type);
    text("-md", "context.speculative.model", speculative.model);
    number("--spec-draft-n-max", "context.speculative.nMax", speculative.nMax);
  }
  if (lora !== undefined && lora.length > 0) {
    const wrong = lora.find(({ path }) => typeof path !== "string" || /[,\0]/.test(path));
    if (wrong !== undefined) {
      throw new TypeError(
        `context.lora: the path ${
          JSON.stringify(wrong.path)
        } cannot stand on a command line, where a comma separates adapters`,
      );
    }
    args.push("--lora-scaled", lora.map(({ path, scale = 1 }) => `${path}:${scale}`).join(","));
  }
}

/** A plan as the command line has it. */
function planText(name: string, plan: PlanInput): string {
  try {
    return formatPlan(readPlan(plan));
  } catch (error) {
    (error as Error).message = `${name}: ${(error as Error).message}`;
    throw error;
  }
}
