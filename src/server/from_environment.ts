import { fileURLToPath } from "node:url";
import type { ServerOptions } from "./options.ts";

/** Layers beyond any model's; means all. */
const MANY_LAYERS = 9999;

/**
 * Options from llama-server's variables of the environment: LLAMA_ARG_MODEL (default: the demo model),
 * LLAMA_ARG_REPEAT_LAYERS, LLAMA_ARG_ALIAS (`name=spec&...` as well), LLAMA_ARG_CTX_SIZE, LLAMA_ARG_N_PARALLEL,
 * LLAMA_ARG_N_GPU_LAYERS, LLAMA_API_KEY. A variable that may not be read counts as not set.
 *
 * @param env Looks up a variable.
 */
export function fromEnvironment(
  env: (name: string) => string | undefined = environment,
): ServerOptions {
  const options: ServerOptions = { model: env("LLAMA_ARG_MODEL") ?? demoModel() };
  const number = (name: string) => {
    const text = env(name);
    if (text !== undefined && !/^\d+$/.test(text)) {
      throw new TypeError(`${name} must be a whole number, not ${JSON.stringify(text)}`);
    }
    return text === undefined ? undefined : Number(text);
  };
  options.repeatLayers = env("LLAMA_ARG_REPEAT_LAYERS");
  options.aliases = parseAliases(env("LLAMA_ARG_ALIAS")?.split("&") ?? []);
  options.nCtx = number("LLAMA_ARG_CTX_SIZE") || undefined;
  options.nParallel = number("LLAMA_ARG_N_PARALLEL");
  options.maxContexts = number("RYS_MAX_CONTEXTS");
  const layers = env("LLAMA_ARG_N_GPU_LAYERS");
  if (layers !== undefined) {
    options.load = { gpuLayers: parseGpuLayers("LLAMA_ARG_N_GPU_LAYERS", layers) };
  }
  options.apiKeys = env("LLAMA_API_KEY")?.split(",").map((key) => key.trim()).filter(Boolean);
  return options;
}

/**
 * Aliases as they are written: `name=spec`, or a name alone for the default plan.
 *
 * @param list One text for each alias.
 * @throws {TypeError} If one has no name.
 */
export function parseAliases(list: readonly string[]): Record<string, string | undefined> {
  const aliases: Record<string, string | undefined> = Object.create(null);
  for (const text of list) {
    const eq = text.indexOf("=");
    const name = (eq < 0 ? text : text.slice(0, eq)).trim();
    if (name === "") {
      throw new TypeError(
        `an alias is written name=spec, e.g. deep=26,34, not ${JSON.stringify(text)}`,
      );
    }
    aliases[name] = eq < 0 ? undefined : text.slice(eq + 1).trim();
  }
  return aliases;
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

function environment(name: string): string | undefined {
  const { state } = Deno.permissions.querySync({ name: "env", variable: name });
  return state === "granted" ? Deno.env.get(name) || undefined : undefined;
}

function demoModel(): string {
  const url = new URL("../../models/demo.gguf", import.meta.url);
  return url.protocol === "file:" ? fileURLToPath(url) : "models/demo.gguf";
}
