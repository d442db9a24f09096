import { contextCost, defaultContext } from "../engine/context_options.ts";
import { modelFacts, readModel } from "../gguf/mod.ts";
import type { GgufModel } from "../gguf/mod.ts";
import { type EffectivePlan, estimateCost, type PlanCost } from "../plan/mod.ts";
import { fetchModel } from "../hub/fetch_model.ts";
import { isRemoteName, joinHubName, parseModelName } from "../hub/model_name.ts";
import { type NamedModel, readNamedModel } from "../hub/read_named_model.ts";
import type { HubOptions } from "../hub/settings.ts";
import { fetchProgress } from "./terminal/fetch_progress.ts";
import { asUsage, Failure, UsageError } from "./errors.ts";
import { filePath } from "./file_path.ts";
import type { Flags } from "./flags/parse_flags.ts";
import type { Shell } from "./terminal/shell.ts";

/** A model's files and header. */
export interface ModelFile extends GgufModel {
  /** The path as it was given. */
  path: string;
}

/**
 * Reads a model's header.
 *
 * @param path The file, or any shard.
 * @throws {GgufError} If there is no such file or it is not a model.
 */
export async function readModelFile(path: string): Promise<ModelFile> {
  return { path, ...await readModel(path) };
}

/**
 * Reads the header of a model by its name: a path, a URL, or `hf:owner/repo`.
 *
 * @param name The name.
 * @param shell Where to write notes, and what stops it.
 * @param flags Read for the token and `--offline`.
 * @throws {UsageError} If the name is malformed.
 * @throws {HubError} If there is no such model.
 * @throws {GgufError} If it is not a sound model.
 */
export async function readNamed(
  name: string,
  shell: Shell,
  flags: Flags,
): Promise<ModelFile & NamedModel> {
  asUsage("", () => parseModelName(name));
  const model = await readNamedModel(name, hubOptions(flags, shell));
  return { path: name, ...model };
}

/**
 * The command line's options for models on the hub.
 *
 * @param flags Read for the token and `--offline`.
 * @param shell Where to write notes, and what stops it.
 */
export function hubOptions(flags: Flags, shell: Shell): HubOptions {
  return {
    signal: shell.signal,
    onNote: (line) => shell.note(line),
    // Variables are read where the hub is needed, and there alone.
    token: flags.name("hfToken").startsWith("-") ? flags.text("hfToken") : undefined,
    offline: flags.on("offline") || undefined,
  };
}

/**
 * The model that the command line names by `-m`, `-hf` or `-mu`, or a variable of these. A flag goes before a variable.
 *
 * @param flags Read for these.
 * @returns A path or a name; undefined if there is none.
 * @throws {UsageError} If there are two, or a file without its repository.
 */
export function givenModel(flags: Flags): string | undefined {
  const all = (["hfRepo", "modelUrl", "model"] as const).filter((id) => flags.has(id));
  const flagged = all.filter((id) => flags.name(id).startsWith("-"));
  if (flagged.length > 1) {
    const names = flagged.map((id) => flags.name(id)).join(" and ");
    throw new UsageError(`${names} exclude each other: each names the model`);
  }
  const id = flagged[0] ?? all[0];
  const file = flags.text("hfFile");
  if (file !== undefined && id !== "hfRepo" && flags.name("hfFile").startsWith("-")) {
    throw new UsageError(
      `${flags.name("hfFile")} needs the repository of the file: -hf OWNER/REPO`,
    );
  }
  if (id === undefined) return undefined;
  const name = id === "hfRepo" ? joinHubName(flags.text(id)!, file) : flags.text(id)!;
  asUsage(flags.name(id), () => parseModelName(name));
  return name;
}

/**
 * Fetches a model, unless it is a path or in the cache, and shows how far that is.
 *
 * @param name The name.
 * @param flags Read for the token and `--offline`.
 * @param shell Where to write.
 * @returns The path of its first file.
 */
export async function localModel(name: string, flags: Flags, shell: Shell): Promise<string> {
  if (!isRemoteName(name)) return name;
  asUsage("", () => parseModelName(name));
  const progress = fetchProgress(shell);
  try {
    const options = { ...hubOptions(flags, shell), onProgress: progress.show };
    return (await fetchModel(name, options))[0]!;
  } finally {
    progress.clear();
  }
}

/**
 * The model to use: what `-m`, `-hf` or `-mu` says, or the demo model.
 *
 * @param flags Read for these.
 * @returns A path or a name.
 */
export function modelPath(flags: Flags): string {
  const given = givenModel(flags);
  if (given !== undefined) return given;
  const demo = demoModel();
  if (demo === undefined) {
    throw new Failure(
      "the demo model is part of the repository, not of the published package; give a model with -m FILE",
    );
  }
  return demo;
}

/** The demo model's path; undefined in the published package, which does not have it. */
export function demoModel(): string | undefined {
  const demo = new URL("../../models/demo.gguf", import.meta.url);
  return demo.protocol === "file:" ? filePath(demo) : undefined;
}

/**
 * The context size that the command line asks for.
 *
 * @param flags Read for `-c`.
 * @param nCtxTrain The model's own, 0 if it does not say.
 */
export function contextSize(flags: Flags, nCtxTrain: number): number {
  const asked = flags.number("nCtx");
  return asked === undefined ? defaultContext(nCtxTrain) : asked || nCtxTrain || defaultContext(0);
}

/**
 * What a plan costs on a model in the context that the command line asks for.
 *
 * @param model The model.
 * @param plan The plan.
 * @param flags Read for cache types, batch sizes and slots.
 * @param nCtx Context size. Default: what the command line says.
 * @throws {RangeError} If no such context can exist.
 */
export function costOf(
  model: ModelFile,
  plan: EffectivePlan,
  flags: Flags,
  nCtx = contextSize(flags, model.header.contextLength),
): PlanCost {
  return estimateCost(
    modelFacts(model.header),
    plan,
    contextCost({
      ...flags.values("context"),
      nCtx,
      nParallel: flags.number("nParallel") ?? 1,
    }),
  );
}

/** A cost under the names it has outside of TypeScript. */
export function costJson(cost: PlanCost): Record<string, unknown> {
  return {
    n_ctx: cost.nCtx,
    kv_bytes: cost.plan.kvBytes,
    kv_bytes_base: cost.base.kvBytes,
    window_kv_bytes: cost.plan.windowKvBytes,
    recurrent_bytes: cost.plan.recurrentBytes,
    recurrent_bytes_base: cost.base.recurrentBytes,
    n_kv_layers: cost.plan.nKvLayers,
    n_kv_layers_base: cost.base.nKvLayers,
    n_window_kv_layers: cost.plan.nWindowKvLayers,
    n_recurrent_layers: cost.plan.nRecurrentLayers,
    n_recurrent_layers_base: cost.base.nRecurrentLayers,
    compute_ratio: cost.computeRatio,
    inexact: cost.inexact,
  };
}
