import type { ContextOptions, PlanInput } from "../engine/mod.ts";
import { knownNames, namesOf } from "../options/names.ts";
import type { Option } from "../options/option.ts";
import { optionById, OPTIONS } from "../options/table.ts";
import { formatPlan, readPlan } from "../plan/mod.ts";
import type { ServeOptions } from "./options.ts";

/** Options of {@linkcode serverArgs}: those of {@linkcode serve} that a command line can say, and a few of its own. */
export interface ServerArgsOptions extends
  Omit<
    ServeOptions,
    | "model"
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

const NAMES = namesOf<ServerArgsOptions, "server" | "listen">(["server", "listen"], {
  modelName: 1,
  context: 1,
  gpu: 1,
  gpuLayers: 1,
  powerPreference: 1,
  apiKeyFile: 1,
  runpodQueue: 1,
  quiet: 1,
  args: 1,
});

type ContextArgs = NonNullable<ServerArgsOptions["context"]>;
/** Options of contexts that the server itself has. */
const SERVER_OWN = ["repeatLayers", "nCtx", "nParallel"];
const CONTEXT_NAMES = namesOf<ContextOptions, "context">(["context"], {
  controlVectors: 1,
  speculative: 1,
  args: 1,
})
  .filter((name) => name !== "args" && !SERVER_OWN.includes(name));

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
 *   ...["serve", "-m", "models/demo.gguf", "--alias", "plain=none", "--repeat-layers", "26,34"],
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
  const more = options.args ?? [];
  if (!Array.isArray(more) || more.some((arg) => typeof arg !== "string")) {
    throw new TypeError("args must be a list of texts");
  }
  const own: Record<string, string[] | undefined> = {
    repeatLayers: options.repeatLayers === undefined
      ? []
      : ["--repeat-layers", planText("repeatLayers", options.repeatLayers)],
    aliases: [...nameArgs(options.modelName), ...aliasArgs(options.aliases ?? {})],
    apiKeys: options.apiKeys?.some((key) => typeof key === "string" && key.includes(","))
      ? fail("apiKeys: on a command line a comma separates keys; give apiKeyFile")
      : undefined,
    cors: options.cors === true ? ["--cors-origin", "*"] : options.cors === false ? [] : undefined,
    lora: fileArgs("lora", "--lora-scaled", context.lora ?? []),
    controlVectorRange: [
      ...fileArgs("controlVectors", "--control-vector-scaled", context.controlVectors ?? []),
      ...context.controlVectorRange === undefined
        ? []
        : ["--control-vector-layer-range", ...context.controlVectorRange.map(String)],
    ],
  };
  const args = (OPTIONS as readonly Option[])
    .filter(({ id, commands }) =>
      commands.includes("serve") && [...NAMES, ...CONTEXT_NAMES].includes(id)
    )
    .flatMap((row) => {
      const ofContext = CONTEXT_NAMES.includes(row.id);
      const value = (ofContext ? context : options)[row.id as never];
      return own[row.id] ?? flagArgs(row, ofContext ? `context.${row.id}` : row.id, value);
    });
  return ["serve", ...args, ...speculativeArgs(context.speculative), ...more];
}

function fail(message: string): never {
  throw new TypeError(message);
}

/** The arguments that give one option a value. */
function flagArgs(row: Option, name: string, value: unknown): string[] {
  if (value === undefined) return [];
  const { kind, names, off, unit = 1 } = row;
  const flag = names[0]!;
  if (row.repeats) {
    if (!Array.isArray(value)) throw new TypeError(`${name} must be a list`);
    return value.flatMap((one) => [flag, textOf(`an item of ${name}`, one)]);
  }
  if (kind === "switch") {
    if (typeof value !== "boolean") throw new TypeError(`${name} must be true or false`);
    if (value === (row.default === "on")) return [];
    return value ? [flag] : off ? [off[0]!] : [];
  }
  if (kind === "text" && !(row.id === "gpuLayers" && typeof value === "number")) {
    return [flag, textOf(name, value)];
  }
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new TypeError(`${name} must be a number`);
  }
  return [flag, String(kind === "integer" ? Math.floor(value / unit) : value / unit)];
}

function textOf(name: string, value: unknown): string {
  if (typeof value !== "string") throw new TypeError(`${name} must be text`);
  if (value.includes("\0")) throw new TypeError(`${name} has a NUL character`);
  return value;
}

/** The model's own name is what has no "=". */
function nameArgs(name: unknown): string[] {
  if (name === undefined) return [];
  const text = textOf("modelName", name);
  if (text === "" || text !== text.trim() || /[=,]/.test(text)) {
    throw new TypeError(
      `modelName ${
        JSON.stringify(text)
      } cannot stand on a command line: it is empty, or has a comma, a "=" or spaces around it`,
    );
  }
  return ["--alias", text];
}

function aliasArgs(aliases: NonNullable<ServerArgsOptions["aliases"]>): string[] {
  return Object.entries(aliases).flatMap(([name, plan]) => {
    if (name === "" || name !== name.trim() || /[=\0]/.test(name)) {
      throw new TypeError(
        `the alias ${
          JSON.stringify(name)
        } cannot stand on a command line: it is empty, or has a "=" or spaces around it`,
      );
    }
    return ["--alias", `${name}=${plan === undefined ? "" : planText(`alias ${name}`, plan)}`];
  });
}

function speculativeArgs(speculative: ContextArgs["speculative"]): string[] {
  if (speculative === undefined) return [];
  const { type, model, nMax } = speculative;
  const name = "context.speculative";
  return [
    ...flagArgs(optionById("specType"), `${name}.type`, SPEC_TYPES[type] ?? type),
    ...flagArgs(optionById("modelDraft"), `${name}.model`, model),
    ...flagArgs(optionById("specDraftNMax"), `${name}.nMax`, nMax),
  ];
}

const SPEC_TYPES: Readonly<Record<string, string>> = optionById("specType").words!;

function fileArgs(name: string, flag: string, files: NonNullable<ContextArgs["lora"]>): string[] {
  if (files.length === 0) return [];
  const wrong = files.find(({ path }) => typeof path !== "string" || /[,\0]/.test(path));
  if (wrong !== undefined) {
    throw new TypeError(
      `context.${name}: the path ${
        JSON.stringify(wrong.path)
      } cannot stand on a command line, where a comma separates files`,
    );
  }
  return [flag, files.map(({ path, scale = 1 }) => `${path}:${scale}`).join(",")];
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
