import { planRefusal } from "../../gguf/mod.ts";
import {
  type EffectivePlan,
  formatPlan,
  type PlanInput,
  planToJson,
  readPlan,
  resolvePlan,
  toMergekit,
  toRelayer,
} from "../../plan/mod.ts";
import { asUsage, Failure, UsageError } from "../errors.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { alignLines, formatBytes, layerBar, planLines } from "../terminal/plan_text.ts";
import { costJson, costOf, demoModel, givenModel, readNamed } from "../model_file.ts";
import { lookAtMemory, memoryJson, memoryLines } from "../plan_memory.ts";
import { suggestions } from "../plan_suggestions.ts";
import { planInputOrNone, readPlanFile } from "../flags/plan_input.ts";
import { type Shell, showsColour, styles } from "../terminal/shell.ts";

/**
 * The command `plan`.
 *
 * @param flags The plan (`--repeat-layers`, `--from`), the model or its number of layers, and `--to`.
 * @param shell Where to write.
 */
export async function plan(flags: Flags, shell: Shell): Promise<number> {
  let path = givenModel(flags);
  if (path !== undefined && flags.has("nLayer")) {
    throw new UsageError(
      "-m and --n-layer exclude each other: the model has its own number of layers",
    );
  }
  const fromFile = flags.text("from");
  if (
    fromFile !== undefined && flags.name("repeatLayers") === "--repeat-layers" &&
    flags.has("repeatLayers")
  ) {
    throw new UsageError("--from and --repeat-layers exclude each other");
  }
  const given = fromFile !== undefined
    ? { what: await readPlanFile(fromFile, fromFile), where: fromFile }
    : await givenPlan(flags);

  if (flags.on("suggest") && given.what !== undefined) {
    throw new UsageError(`--suggest and ${given.where} exclude each other: it names plans to try`);
  }

  const known = flags.number("nLayer") ?? layersOf(given.what);
  if (path === undefined && known === undefined) {
    path = demoModel();
    if (path === undefined) {
      throw new UsageError("plan needs to know the model: give --n-layer N or -m FILE");
    }
    shell.note("no -m or --n-layer is given, so this is the plan on the demo model");
  }
  const model = path === undefined ? undefined : await readNamed(path, shell, flags);
  const nLayer = model?.header.nLayer ?? known!;
  const nextn = model?.header.nextn ?? flags.number("nextn") ?? 0;
  const effective = asUsage(
    given.what === undefined ? "" : given.where,
    () => resolvePlan(given.what, { nLayer, nextn, layerPlan: model?.header.layerPlan }),
  );

  const to = flags.text("to");
  if (to !== undefined) {
    await shell.out(convert(to, effective, flags));
    return 0;
  }
  if (model === undefined) {
    if (flags.on("suggest")) {
      throw new UsageError("--suggest needs a model: what to try depends on its architecture");
    }
    await shell.out(
      flags.on("json")
        ? JSON.stringify(planToJson(effective)) + "\n"
        : rendering(effective, planLines(effective), []),
    );
    return 0;
  }
  if (flags.on("suggest")) {
    await shell.out(suggestions(model, flags));
    return 0;
  }
  const cost = asUsage("", () => costOf(model, effective, flags));
  const refusal = planRefusal(model.header, effective.layers);
  const memory = await lookAtMemory(model, cost, flags);
  if (flags.on("json")) {
    await shell.out(
      JSON.stringify({
        ...planToJson(effective),
        model: {
          file: model.path,
          architecture: model.header.architecture,
          name: model.header.name ?? "",
          weight_bytes: model.header.weightBytes,
        },
        cost: costJson(cost),
        memory: memoryJson(memory),
        refused: refusal ?? null,
      }) + "\n",
    );
  } else {
    const notes = cost.inexact.map((why) => `note: the bytes are not exact: ${why}\n`);
    const { name, architecture, weightBytes } = model.header;
    await shell.out(rendering(effective, [
      [
        "model",
        `${name ?? model.path} (${architecture}, ${formatBytes(weightBytes)} of weights)`,
      ],
      ...planLines(effective, cost),
      ...memoryLines(memory),
    ], notes));
  }
  if (refusal === undefined) return 0;
  throw new Failure(refusal);
}

async function givenPlan(flags: Flags): Promise<{ what: PlanInput | undefined; where: string }> {
  const where = flags.name("repeatLayers");
  return { what: await planInputOrNone(where, flags.text("repeatLayers")), where };
}

/** The number of layers that the plan's own form states. */
function layersOf(what: unknown): number | undefined {
  if (typeof what !== "object" || what === null) return undefined;
  const root: unknown = "rys_relayer" in what ? what.rys_relayer : what;
  if (typeof root !== "object" || root === null) return undefined;
  const its = "source_num_layers" in root
    ? root.source_num_layers
    : "n_layer" in root
    ? root.n_layer
    : undefined;
  return typeof its === "number" ? its : undefined;
}

function convert(
  to: string,
  effective: EffectivePlan,
  flags: Flags,
): string {
  // A display name (general.name) is not a repository, and these tools do not read GGUF files.
  const source = flags.text("source");
  const json = flags.on("json");
  switch (to) {
    case "mergekit":
      if (json) throw new UsageError("--to mergekit writes YAML and excludes --json");
      return toMergekit(effective.layers, { model: source });
    case "rys_relayer": {
      const relayer = toRelayer(effective, { sourceRepoId: source ?? null });
      const text = JSON.stringify({ rys_relayer: relayer }, null, json ? 0 : 2);
      return text.replace(/\[[\d,\s]+\]/g, (list) => list.replace(/\s+/g, "")) + "\n";
    }
    case "layers":
      return json
        ? JSON.stringify(effective.layers) + "\n"
        : `layers:${effective.layers.join(",")}\n`;
    default: {
      const spec = formatPlan(readPlan(effective.spec));
      return (json ? JSON.stringify(spec) : spec) + "\n";
    }
  }
}

function rendering(
  effective: EffectivePlan,
  lines: readonly [name: string, value: string][],
  notes: readonly string[],
): string {
  const style = styles(showsColour(Deno.stdout));
  const more = [
    ...notes,
    ...effective.advisories.map((text) => `${style.yellow("advisory:")} ${text}\n`),
  ];
  return alignLines(lines, style) + "\n" + layerBar(effective, style).join("\n") + "\n" +
    (more.length > 0 ? "\n" : "") + more.join("");
}
