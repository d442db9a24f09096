import { fileURLToPath } from "node:url";
import { environment } from "../environment.ts";
import { joinHubName } from "../hub/model_name.ts";
import { llamaArgs } from "../options/llama_args.ts";
import type { Option } from "../options/option.ts";
import { parseValue, variableOf } from "../options/parse_value.ts";
import { optionById, OPTIONS } from "../options/table.ts";
import type { ServerOptions } from "./options.ts";

/** Layers beyond any model's; means all. */
const MANY_LAYERS = 9999;

/**
 * Options from llama-server's variables of the environment: those that the command `serve` reads as well, but for an
 * address, a port, recipes (`@FILE`) and a log file. A variable that may not be read counts as not set.
 *
 * @param env Looks up a variable.
 */
export function fromEnvironment(
  env: (name: string) => string | undefined = environment,
): ServerOptions {
  const options: Record<string, unknown> = {};
  const context: Record<string, unknown> = {};
  const load: Record<string, unknown> = {};
  const args: string[] = [];
  const other: Record<string, unknown> = {};
  for (const row of OPTIONS as readonly Option[]) {
    if (!row.commands.includes("serve")) continue;
    const { name, text } = variableOf(row, env) ?? {};
    if (name === undefined || text === undefined || row.of?.includes("listen")) continue;
    if (row.id === "aliases") {
      Object.assign(options, parseNames(text.split(row.envSeparator!)));
      continue;
    }
    const of = row.of ?? [];
    const value = row.own ? ownValue(row, name, text) : parseValue(row, name, text);
    if (of.includes("server")) options[row.id] = value;
    else if (of.includes("load")) load[row.id] = value;
    else if (of.includes("context")) context[row.id] = value;
    else if (row.llama !== undefined) args.push(...llamaArgs(row, value));
    else other[row.id] = value;
  }
  addOthers(other, options, context);
  if (options.nCtx === 0) delete options.nCtx;
  if (typeof context.threads === "number" && context.threads < 1) delete context.threads;
  if (args.length > 0) context.args = args;
  return {
    model: demoModel(),
    ...options,
    ...Object.keys(context).length > 0 ? { context } : {},
    ...Object.keys(load).length > 0 ? { load } : {},
  };
}

/** What is given in another way in the library: texts in files, and the parts of speculative decoding. */
function addOthers(
  other: Record<string, unknown>,
  options: Record<string, unknown>,
  context: Record<string, unknown>,
): void {
  const { hfRepo, hfFile, modelUrl } = other;
  if (typeof hfRepo === "string") {
    options.model = joinHubName(hfRepo, hfFile === undefined ? undefined : String(hfFile));
  } else if (typeof modelUrl === "string") options.model = modelUrl;
  const { apiKeyFile, chatTemplateFile, modelDraft, specType, specDraftNMax, logFile } = other;
  if (typeof apiKeyFile === "string") {
    const keys = Deno.readTextFileSync(apiKeyFile).split(/\s+/).filter(Boolean);
    options.apiKeys = [...(options.apiKeys as string[] | undefined) ?? [], ...keys];
  }
  if (typeof chatTemplateFile === "string") {
    context.chatTemplate = Deno.readTextFileSync(chatTemplateFile);
  }
  const type = String(specType ?? (modelDraft === undefined ? "none" : "draft-simple"));
  if (type !== "none") {
    context.speculative = {
      type: Object.entries(SPEC_TYPES).find(([, name]) => name === type)![0],
      ...modelDraft === undefined ? {} : { model: modelDraft },
      ...specDraftNMax === undefined ? {} : { nMax: specDraftNMax },
    };
  }
  if (logFile !== undefined) {
    throw new TypeError("LLAMA_ARG_LOG_FILE is read by the command serve only");
  }
}

const SPEC_TYPES: Readonly<Record<string, string>> = optionById("specType").words!;

/** A value that has another form in the library than on a command line. */
function ownValue(row: Option, name: string, text: string): unknown {
  switch (row.id) {
    case "apiKeys":
      return text.split(",").map((key) => key.trim()).filter(Boolean);
    case "cors": {
      const origins = text.split(",").map((origin) => origin.trim());
      return origins.includes("*") || origins;
    }
    case "gpuLayers":
      return parseGpuLayers(name, text);
    case "pooling":
      return text === "rank" ? undefined : parseValue(row, name, text);
    default:
      return text;
  }
}

/** Names of a model and of its plans. */
export interface Names {
  /** The name that answers carry. */
  modelName: string | undefined;
  /** Names of plans; undefined is the default plan. */
  aliases: Record<string, string | undefined>;
}

/**
 * Names as `--alias` has them: `name=spec` names a plan, `name` or `a,b` the model, as llama-server reads it.
 *
 * @param list One text for each time it is given.
 * @throws {TypeError} If one has no name, or one name has two plans.
 */
export function parseNames(list: readonly string[]): Names {
  const aliases: Record<string, string | undefined> = Object.create(null);
  let modelName: string | undefined;
  for (const text of list) {
    const eq = text.indexOf("=");
    const names = (eq < 0 ? text.split(",") : [text.slice(0, eq)]).map((name) => name.trim());
    const spec = eq < 0 ? "" : text.slice(eq + 1).trim();
    for (const name of names) {
      if (name === "") {
        throw new TypeError(
          `an alias is written name, or name=spec, e.g. deep=26,34, not ${JSON.stringify(text)}`,
        );
      }
      const plan = spec === "" ? undefined : spec;
      if (eq < 0 && modelName === undefined) modelName = name;
      else if (name in aliases && aliases[name] !== plan) {
        throw new TypeError(
          `the alias ${name} is given twice, as ${aliases[name] ?? "the default plan"} and as ${
            plan ?? "the default plan"
          }`,
        );
      } else aliases[name] = plan;
    }
  }
  return { modelName, aliases };
}

/**
 * A number of layers on the GPU as llama.cpp reads it, where -1 is auto and -2 all; here both are all.
 *
 * @param name What the text was given as.
 * @param text The text.
 * @throws {TypeError} If it is neither a whole number nor a word for all.
 */
export function parseGpuLayers(name: string, text: string): number | "all" {
  if (["all", "auto", "-1", "-2"].includes(text)) return "all";
  if (/^\+?\d+$/.test(text)) return Math.min(Number(text), MANY_LAYERS);
  throw new TypeError(
    `${name} must be a whole number from 0, -1 (as auto), all or auto, not ${JSON.stringify(text)}`,
  );
}

function demoModel(): string {
  const url = new URL("../../models/demo.gguf", import.meta.url);
  return url.protocol === "file:" ? fileURLToPath(url) : "models/demo.gguf";
}
