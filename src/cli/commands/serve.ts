import { DEFAULT_PARALLEL } from "../../engine/context_options.ts";
import type { EffectivePlan, PlanInput } from "../../plan/mod.ts";
import { isRemoteName, parseModelName, resolveModel } from "../../hub/mod.ts";
import { parseNames } from "../../server/from_environment.ts";
import { hubModelName, ranks } from "../../server/life/loaded_model.ts";
import { serve as listen, type ServeOptions } from "../../server/mod.ts";
import { DEFAULT_DRAIN_SECONDS, serverOptions } from "../../server/options.ts";
import { environment } from "../environment.ts";
import { asUsage, Failure, UsageError } from "../errors.ts";
import { grammarOf } from "../flags/generate_flags.ts";
import { gpuLine, gpuOptions, missedLayers } from "../flags/gpu_flags.ts";
import { loadArgs, logOptions } from "../flags/load_flags.ts";
import { demoModel, givenModel, hubOptions, localModel, readModelFile } from "../model_file.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { planInputOrNone } from "../flags/plan_input.ts";
import { readInput } from "../flags/read_input.ts";
import { contextOptions, fittingPlan, ownPlanLine, planFor } from "../session.ts";
import { type Shell, styles } from "../terminal/shell.ts";

/** Addresses that stand for all interfaces, as they appear in a URL. */
const ALL_INTERFACES: Readonly<Record<string, string>> = { "0.0.0.0": "0.0.0.0", "::": "[::]" };

/**
 * The command `serve`.
 *
 * @param flags The model, the default plan, and the server's options.
 * @param shell Where to write.
 */
export async function serve(flags: Flags, shell: Shell): Promise<number> {
  const given = givenModel(flags) ?? demoModel();
  if (given === undefined) throw new Failure("there is no demo model in the package; give -m FILE");
  const spec = await planInputOrNone(flags.name("repeatLayers"), flags.text("repeatLayers"));
  const { modelName, aliases: named } = asUsage(
    flags.name("aliases"),
    () => parseNames(flags.all("aliases")),
  );
  const aliases: Record<string, PlanInput | undefined> = Object.create(null);
  for (const [name, text] of Object.entries(named)) {
    aliases[name] = await planInputOrNone(`${flags.name("aliases")} ${name}`, text);
  }
  const options = {
    ...await serveOptions(flags, shell, given, spec, aliases),
    modelName: modelName ?? hubModelName(given),
  };
  asUsage("", () => serverOptions(options));
  // Only now: what is wrong on the command line is told before the hub is asked.
  const path = options.model = await findLocal(given, flags, shell);
  const queue = flags.on("runpodQueue") ? await import("../../server/runpod/mod.ts") : undefined;
  const runpod = asUsage("--runpod-queue", () => queue?.runpodSettings(environment));
  const unhealthy = async (error: unknown): Promise<never> => {
    if (queue && runpod) {
      await queue.reportUnhealthy(runpod, "model", error instanceof Error ? error.message : "");
    }
    throw error;
  };
  // What has to be fetched is checked when it is there: the server listens meanwhile, and /health says 503.
  const checked = isRemoteName(path)
    ? {}
    : await checkModel(flags, path, spec, aliases, shell).catch(unhealthy);

  await using serving = await listen({ ...options, ...checked });
  const { server } = serving;
  let stopping = false;
  const stopped = Promise.withResolvers<void>();
  shell.onTerminate = () => {
    if (stopping) return false;
    stopping = true;
    shell.note("stopping; running requests may finish first");
    stopped.resolve();
    return true;
  };
  keepGoing(shell);
  if (!shell.quiet) {
    const { bold } = styles(shell.colour);
    const all = ALL_INTERFACES[serving.hostname];
    const where = all === undefined
      ? bold(serving.url)
      : `${bold(`http://${all}:${serving.port}`)} (all interfaces)`;
    shell.err(`listening on ${where}\n`);
  }
  if (
    (options.apiKeys ?? []).length === 0 && !/^(?:127\.|::1$|localhost$)/.test(serving.hostname)
  ) {
    shell.warn("other machines can use the server, as it asks for no key (--api-key)");
  }
  try {
    await Promise.race([server.ready, stopped.promise]);
  } catch (error) {
    await unhealthy(error);
  }
  if (queue && runpod && !stopping) {
    const worker = queue.startRunpodQueue({
      settings: runpod,
      fetch: (request) => server.fetch(request),
      slots: options.nParallel ?? DEFAULT_PARALLEL,
      graceMs: 1000 * (options.drainTimeout ?? DEFAULT_DRAIN_SECONDS),
      apiKey: options.apiKeys?.[0],
      log: (line) => shell.err(`${line}\n`),
    });
    stopped.promise.then(() => worker.stop());
    await worker.done;
  } else {
    // The engine does not keep the process alive between requests; the socket does.
    await stopped.promise;
  }
  await serving.close();
  return 0;
}

/** An error in one request, wherever it comes up, is no reason to abandon the others. */
function keepGoing(shell: Shell): void {
  const tell = (event: Event, error: unknown) => {
    event.preventDefault();
    shell.warn(`an error that nobody caught: ${error instanceof Error ? error.stack : error}`);
  };
  globalThis.addEventListener("error", (event) => tell(event, event.error));
  globalThis.addEventListener("unhandledrejection", (event) => tell(event, event.reason));
}

async function serveOptions(
  flags: Flags,
  shell: Shell,
  path: string,
  repeatLayers: PlanInput | undefined,
  aliases: Record<string, PlanInput | undefined>,
): Promise<ServeOptions> {
  const { nCtx: _nCtx, nParallel: _nParallel, ...context } = await contextOptions(flags, 0);
  // For what requests may set themselves, llama-server's own flags set the defaults.
  const sampling = flags.llamaArgs((flag) => flag.of?.includes("generate") === true);
  const { grammar, schema } = await grammarOf(flags);
  if (grammar !== undefined) sampling.push("--grammar", grammar);
  if (schema !== undefined) sampling.push("--json-schema", JSON.stringify(schema));
  const maxBody = flags.number("maxBodyBytes");
  const origins = flags.all("cors").flatMap((list) => list.split(",")).map((one) => one.trim());
  const gpu = gpuOptions(flags);
  const options: ServeOptions = {
    ...flags.values("server"),
    ...flags.values("listen"),
    model: path,
    repeatLayers,
    aliases,
    memoryBudget: flags.number("memoryBudget"),
    nCtx: flags.number("nCtx") || undefined,
    context: {
      ...context,
      args: [...context.args ?? [], ...sampling],
    },
    load: {
      hub: { ...hubOptions(flags, shell), signal: undefined },
      ...gpu,
      ...logOptions(flags, shell),
      ...loadArgs(flags),
    },
    pooling: mustRank(flags) ? undefined : flags.text("pooling") as ServeOptions["pooling"],
    apiKeys: await apiKeys(flags),
    cors: origins.includes("*") ? true : origins,
    maxBodyBytes: maxBody === undefined ? undefined : Math.round(maxBody),
    onModel: (info) => {
      if (!shell.quiet) shell.err(`GPU: ${gpuLine(info, gpu)}\n`);
      const missed = missedLayers(flags, info, gpu);
      if (missed !== undefined) shell.warn(missed);
    },
    onLog: (line) => {
      if (!shell.quiet || /^(?:request failed|warning: )/.test(line)) shell.err(`${line}\n`);
    },
    allowedHosts: flags.all("allowedHosts"),
  };
  return options;
}

/** The path of a model that is in the cache; the name itself where it has to be fetched. */
async function findLocal(name: string, flags: Flags, shell: Shell): Promise<string> {
  if (!isRemoteName(name)) return name;
  asUsage("", () => parseModelName(name));
  const { kind } = await resolveModel(name, hubOptions(flags, shell));
  return kind === "file" ? await localModel(name, flags, shell) : name;
}

/** Keys from the command line or the environment, and from a file. */
async function apiKeys(flags: Flags): Promise<string[]> {
  const given = flags.all("apiKeys").flatMap((list) => list.split(","));
  const file = flags.text("apiKeyFile");
  const lines = file === undefined ? [] : (await readInput(file)).split(/\r?\n/);
  const keys = [...given, ...lines].map((key) => key.trim()).filter((key) => key !== "");
  const wrong = keys.findIndex((key) => !/^[\x21-\x7e]+$/.test(key));
  if (wrong >= 0) throw new UsageError(`key ${wrong + 1} must consist of visible ASCII characters`);
  if (keys.length === 0 && (flags.has("apiKeys") || file !== undefined)) {
    throw new UsageError(
      `${flags.name(flags.has("apiKeys") ? "apiKeys" : "apiKeyFile")} has no key`,
    );
  }
  return keys;
}

/** Whether the model is to be a reranker. */
function mustRank(flags: Flags): boolean {
  return flags.on("reranking") || flags.text("pooling") === "rank";
}

/** Checks what the header can show before the server listens: that it is a model, that the context fits, and the plans. */
async function checkModel(
  flags: Flags,
  path: string,
  spec: PlanInput | undefined,
  aliases: Record<string, PlanInput | undefined>,
  shell: Shell,
): Promise<Pick<ServeOptions, "model" | "repeatLayers" | "aliases">> {
  const file = await readModelFile(path);
  if (file.header.nLayer === 0) {
    throw new Failure(`${path}: it has no layers: a vocabulary only, or no language model`);
  }
  if (mustRank(flags) && !ranks(file.header)) {
    throw new Failure(
      `${path}: it does not rank texts: a GGUF file of a reranking model has the pooling type "rank"`,
    );
  }
  const named: Record<string, EffectivePlan | undefined> = Object.create(null);
  for (const [name, plan] of Object.entries(aliases)) {
    named[name] = plan === undefined
      ? undefined
      : planFor(`${flags.name("aliases")} ${name}`, plan, file);
  }
  const repeatLayers = fittingPlan(flags, flags.name("repeatLayers"), spec, file);
  for (const [name, value] of ownPlanLine(repeatLayers, file)) shell.note(`${name}: ${value}`);
  return { model: file, repeatLayers, aliases: named };
}
