import { type Context, type ContextOptions, loadModel, type Model } from "../engine/mod.ts";
import { type EffectivePlan, type PlanCost, type PlanInput, resolvePlan } from "../plan/mod.ts";
import { chatTemplateArgs } from "./flags/chat_templates.ts";
import { asUsage, Failure, fileError, UsageError } from "./errors.ts";
import { jsonObject, textOrFile } from "./flags/generate_flags.ts";
import type { FlagId } from "./flags/flags.ts";
import { gpuLine, type GpuOptions, gpuOptions, missedLayers } from "./flags/gpu_flags.ts";
import { loadArgs, logOptions } from "./flags/load_flags.ts";
import {
  contextSize,
  costOf,
  localModel,
  type ModelFile,
  modelPath,
  readModelFile,
} from "./model_file.ts";
import type { Flags } from "./flags/parse_flags.ts";
import { alignLines, planLines } from "./terminal/plan_text.ts";
import { type Shell, styles } from "./terminal/shell.ts";

/** A loaded model and its header. */
export interface LoadedModel<Checked = unknown> extends AsyncDisposable {
  /** The model. */
  model: Model;
  /** Its files. */
  file: ModelFile;
  /** The GPU options that were asked for. */
  gpu: GpuOptions;
  /** The command line's options for its contexts, except size and plan. */
  options: ContextOptions;
  /** What the check against the header found. */
  checked: Checked;
  /** How long loading took, in milliseconds. */
  loadMs: number;
}

/** A context on a model, as the command line asks for it. */
export interface Session {
  /** The context. */
  context: Context;
  /** Its cost with the plan and without, as computed from the header. */
  cost: PlanCost;
  /** Milliseconds from the beginning of loading to here. */
  readyMs: number;
}

/**
 * A plan on a model; without one, the file's own plan.
 *
 * @param where What messages begin with.
 * @param spec The plan as it was given.
 * @param file The model.
 * @throws {UsageError} If it does not fit the model.
 */
export function planFor(
  where: string,
  spec: PlanInput | undefined,
  file: ModelFile,
): EffectivePlan {
  const { nLayer, nextn, layerPlan } = file.header;
  return asUsage(
    spec === undefined ? `${file.path}: rys.layer_plan` : where,
    () => resolvePlan(spec, { nLayer, nextn, layerPlan }),
  );
}

/**
 * A plan on a model, if the plan and a context fit the model according to its header.
 *
 * @param flags Read for what decides the size of the context.
 * @param where What messages begin with.
 * @param spec The plan.
 * @param file The model.
 * @throws {UsageError} If they do not.
 */
export function fittingPlan(
  flags: Flags,
  where: string,
  spec: PlanInput | undefined,
  file: ModelFile,
): EffectivePlan {
  const plan = planFor(where, spec, file);
  asUsage("", () => costOf(file, plan, flags));
  return plan;
}

/**
 * Loads the model that the command line names, once everything else on the command line has been checked.
 *
 * @param flags Read for the model, the GPU, logging and adapters.
 * @param shell Where to report progress.
 * @param check Checks against the header, and resolves plans by it; what it throws ends the loading.
 */
export async function openModel<Checked>(
  flags: Flags,
  shell: Shell,
  check: (file: ModelFile) => Checked,
): Promise<LoadedModel<Checked>> {
  const options = await contextOptions(flags, 0);
  const gpu = gpuOptions(flags);
  const path = await localModel(modelPath(flags), flags, shell);
  const start = performance.now();
  const file = await readModelFile(path);
  if (file.header.nLayer === 0) {
    throw new Failure(`${path}: it has no layers: a vocabulary only, or no language model`);
  }
  const checked = check(file);
  const progress = progressLine(shell);
  try {
    const model = await loadModel(file, {
      ...gpu,
      signal: shell.signal,
      onProgress: progress.show,
      ...logOptions(flags, shell),
      ...loadArgs(flags),
    });
    const loadMs = performance.now() - start;
    const missed = missedLayers(flags, model.info, gpu);
    if (missed !== undefined) {
      progress.clear();
      shell.warn(missed);
    }
    return {
      model,
      file,
      gpu,
      options,
      checked,
      loadMs,
      [Symbol.asyncDispose]: () => model.dispose(),
    };
  } finally {
    progress.clear();
  }
}

/**
 * Makes a context on a loaded model.
 *
 * @param flags Read for the options of the context.
 * @param loaded The model.
 * @param plan The plan.
 */
export async function openContext(
  flags: Flags,
  loaded: LoadedModel,
  plan: EffectivePlan,
): Promise<Session> {
  const cost = asUsage("", () => costOf(loaded.file, plan, flags));
  const start = performance.now();
  const context = await loaded.model.createContext({
    ...loaded.options,
    nCtx: contextSize(flags, loaded.model.info.nCtxTrain),
    repeatLayers: plan,
  });
  return { context, cost, readyMs: loaded.loadMs + performance.now() - start };
}

/**
 * The command line's options for a context, except the plan.
 *
 * @param flags Read for sizes, cache types, adapters, drafting and the chat template.
 * @param nCtxTrain The model's own context size.
 */
export async function contextOptions(flags: Flags, nCtxTrain: number): Promise<ContextOptions> {
  const { threads, ...values } = flags.values("context");
  const { cacheTypeV = "f16", flashAttention, nParallel = 1 } = values;
  if (!/^b?f\d+$/.test(cacheTypeV) && flashAttention === "off") {
    throw new UsageError(
      `${flags.name("cacheTypeV")} ${cacheTypeV} needs flash attention, which is off`,
    );
  }
  const chatTemplate = await textOrFile(flags, "chatTemplate", "chatTemplateFile");
  if (flags.has("chatTemplateKwargs")) {
    jsonObject(flags.name("chatTemplateKwargs"), flags.text("chatTemplateKwargs")!);
  }
  const args = [
    ...flags.has("chatTemplate")
      ? chatTemplateArgs(flags.name("chatTemplate"), chatTemplate ?? "")
      : [],
    ...flags.llamaArgs((flag) => flag.of === undefined && !flag.atLoad),
  ];
  return {
    ...values,
    nCtx: contextSize(flags, nCtxTrain),
    nParallel,
    threads: threads !== undefined && threads > 0 ? threads : undefined,
    chatTemplate,
    speculative: speculative(flags),
    lora: scaledFiles(flags, "lora", "loraScaled"),
    ...controlVectors(flags),
    ...(args.length > 0 ? { args } : {}),
  };
}

function speculative(flags: Flags): ContextOptions["speculative"] {
  const model = flags.text("modelDraft");
  const name = flags.text("specType") ?? (model === undefined ? "none" : "draft-simple");
  const nMax = flags.number("specDraftNMax");
  if (name === "none") {
    const given = (["modelDraft", "specDraftNMax", "specDraftNMin", "specDraftPMin"] as const)
      .find((id) => flags.has(id));
    if (given !== undefined) {
      throw new UsageError(`${flags.name(given)} needs a --spec-type other than none`);
    }
    return undefined;
  }
  const type = name.startsWith("ngram") ? "ngram" : name.endsWith("mtp") ? "mtp" : "draft";
  if (type === "draft" && model === undefined) {
    throw new UsageError(`--spec-type ${name} needs a draft model: -md FILE`);
  }
  if (type !== "draft" && model !== undefined) {
    throw new UsageError(`--spec-type ${name} takes no draft model`);
  }
  if (model !== undefined) checkFile(model);
  return {
    type,
    ...(model === undefined ? {} : { model }),
    ...(nMax === undefined ? {} : { nMax }),
  };
}

function scaledFiles(flags: Flags, plain: FlagId, scaled: FlagId): ContextOptions["lora"] {
  const list = (id: FlagId) => (flags.text(id) ?? "").split(",").filter((part) => part !== "");
  const files = [
    ...list(plain).map((path) => ({ path })),
    ...list(scaled).map((part) => {
      const colon = part.lastIndexOf(":");
      const scale = Number(part.slice(colon + 1));
      if (colon < 1 || part.length === colon + 1 || !Number.isFinite(scale)) {
        throw new UsageError(`${flags.name(scaled)} wants FILE:SCALE, not ${JSON.stringify(part)}`);
      }
      return { path: part.slice(0, colon), scale };
    }),
  ];
  for (const { path } of files) checkFile(path);
  return files.length > 0 ? files : undefined;
}

function controlVectors(
  flags: Flags,
): Pick<ContextOptions, "controlVectors" | "controlVectorRange"> {
  const vectors = scaledFiles(flags, "controlVector", "controlVectorScaled");
  const range = flags.text("controlVectorRange");
  if (range === undefined) return vectors === undefined ? {} : { controlVectors: vectors };
  const name = flags.name("controlVectorRange");
  const [first, last] = range.split(" ").map(Number) as [number, number];
  if (!(Number.isInteger(first) && Number.isInteger(last) && 1 <= first && first <= last)) {
    throw new UsageError(
      `${name} must be two layers, the first being 1, not ${JSON.stringify(range)}`,
    );
  }
  if (vectors === undefined) throw new UsageError(`${name} needs a --control-vector`);
  return { controlVectors: vectors, controlVectorRange: [first, last] };
}

function checkFile(path: string): void {
  try {
    if (!Deno.statSync(path).isFile) throw new Failure(`cannot open ${path}: it is not a file`);
  } catch (error) {
    throw error instanceof Failure ? error : fileError("open", path, error);
  }
}

/**
 * Shows how far loading is, in a terminal and if it takes long. (The progress bar of `@std/cli` is not stable yet, counts
 * bytes, and leaves its line behind.)
 */
function progressLine(shell: Shell): { show(fraction: number): void; clear(): void } {
  let due = performance.now() + 500;
  const isShown = Deno.stderr.isTerminal() && !shell.quiet && !shell.verbose;
  let last = -1;
  return {
    show(fraction) {
      const percent = Math.floor(fraction * 100);
      if (!isShown || percent === last || performance.now() < due) return;
      due = performance.now() + 100;
      last = percent;
      shell.err(`\r\x1b[Kloading ${percent} %`);
    },
    clear() {
      if (last >= 0) shell.err("\r\x1b[K");
      last = -1;
    },
  };
}

/**
 * Reports on standard error what was loaded and what the plan costs.
 *
 * @param loaded The model.
 * @param session The context.
 * @param shell Where to write; if it is quiet, only warnings are written.
 */
export function bootLog(loaded: LoadedModel, session: Session, shell: Shell): void {
  const { info } = session.context;
  planLog(loaded, info.plan, allocated(session), shell, [
    ["n_ctx", String(info.nCtx)],
    ["threads", String(info.threads)],
    ["load time", `${(session.readyMs / 1000).toFixed(2)} s`],
  ]);
  for (const text of info.warnings) shell.warn(text);
}

/**
 * Reports on standard error which model and which plan run.
 *
 * @param loaded The model.
 * @param plan The plan.
 * @param cost What it costs.
 * @param shell Where to write; if it is quiet, only warnings are written.
 * @param more Further lines.
 */
export function planLog(
  loaded: LoadedModel,
  plan: EffectivePlan,
  cost: PlanCost,
  shell: Shell,
  more: [name: string, value: string][],
): void {
  if (!shell.quiet) {
    const { info } = loaded.model;
    const name = info.name === "" ? loaded.file.path : info.name;
    const model: [string, string] = ["model", `${name} (${info.desc})`];
    const gpu: [string, string] = ["GPU", gpuLine(info, loaded.gpu)];
    const own = ownPlanLine(plan, loaded.file);
    const lines = [model, gpu, ...planLines(plan, cost), ...own, ...more];
    shell.err(alignLines(lines, styles(shell.colour)));
  }
  for (const text of plan.advisories) shell.warn(text);
}

/**
 * What to say about the plan that a model's file carries; nothing if it carries none.
 *
 * @param plan The plan that runs.
 * @param file The model.
 */
export function ownPlanLine(
  plan: EffectivePlan,
  { header: { nLayer, nextn, layerPlan } }: Pick<ModelFile, "header">,
): [name: string, value: string][] {
  if (!layerPlan) return [];
  const runs = sameLayers(plan, () => resolvePlan(layerPlan, { nLayer, nextn }))
    ? "runs; --repeat-layers none runs the model without it"
    : "does not run: another is given";
  return [["file's plan", `${layerPlan} (rys.layer_plan) ${runs}`]];
}

/** Whether a plan runs the layers of another one, however that is spelt. */
function sameLayers(plan: EffectivePlan, other: () => EffectivePlan): boolean {
  try {
    const { layers } = other();
    return layers.length === plan.layers.length && layers.every((il, e) => il === plan.layers[e]);
  } catch {
    return false; // one that does not fit the model does not run
  }
}

/** The cost, with the bytes that were actually allocated. */
function allocated({ cost, context: { info } }: Session): PlanCost {
  const { kvBytes, recurrentBytes, nCtx } = info;
  return { ...cost, nCtx, plan: { ...cost.plan, kvBytes, recurrentBytes } };
}
