import { exportModel, type ExportReport } from "../../export/mod.ts";
import { planToJson, resolvePlan, toMergekit, toRelayer } from "../../plan/mod.ts";
import { asUsage, Failure, UsageError } from "../errors.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { planInputOrNone } from "../flags/plan_input.ts";
import { hubOptions, type ModelFile, modelPath, readNamed } from "../model_file.ts";
import { fetchProgress } from "../terminal/fetch_progress.ts";
import { formatBytes } from "../terminal/plan_text.ts";
import type { Shell } from "../terminal/shell.ts";
import { writeWhole } from "../write_whole.ts";

/** Milliseconds between two updates of the progress. */
const TICK = 200;

/**
 * The command `export`.
 *
 * @param flags The model, its plan, the file to write and its format.
 * @param shell Where to write.
 */
export async function exportCommand(flags: Flags, shell: Shell): Promise<number> {
  const format = flags.text("format") ?? "gguf";
  const output = flags.text("exportFile");
  checkFlags(flags, format, output);
  const where = flags.name("repeatLayers");
  const spec = await planInputOrNone(where, flags.text("repeatLayers"));
  const model = await readNamed(modelPath(flags), shell, flags);
  const { nLayer, nextn, layerPlan } = model.header;
  const plan = asUsage(
    spec === undefined ? `${model.path}: rys.layer_plan` : where,
    () => resolvePlan(spec, { nLayer, nextn, layerPlan }),
  );
  if (format !== "gguf") {
    const source = flags.text("source");
    const text = format === "mergekit"
      ? toMergekit(plan.layers, { model: source })
      : JSON.stringify({ rys_relayer: toRelayer(plan, { sourceRepoId: source ?? null }) }) + "\n";
    await writeText(text, output, flags, shell);
    return 0;
  }
  const planOnly = flags.on("planOnly");
  if (spec === undefined && !layerPlan) {
    shell.note("no --repeat-layers is given, so the model is written as it is");
  }
  const fetching = fetchProgress(shell);
  const writing = progressLine(shell);
  let report: ExportReport;
  try {
    report = await exportModel(model, output!, {
      repeatLayers: plan,
      planOnly,
      splitMaxBytes: splitSize(flags.text("splitMaxSize")),
      splitMaxTensors: flags.number("splitMaxTensors"),
      force: flags.on("force"),
      signal: shell.signal,
      onProgress: (written, total) => {
        fetching.clear();
        writing.update(written, total);
      },
      hub: { ...hubOptions(flags, shell), onProgress: fetching.show },
    });
  } finally {
    fetching.clear();
    writing.end();
  }
  for (const advisory of plan.advisories) shell.warn(advisory);
  await shell.out(flags.on("json") ? reportJson(model, report, planOnly) : reportText(report));
  return 0;
}

function checkFlags(flags: Flags, format: string, output: string | undefined): void {
  if (format === "gguf") {
    if (output === undefined) throw new UsageError("export needs a file to write: -o FILE");
    if (output === "-") throw new UsageError("-o - is not possible: a model is written to a file");
    if (flags.has("source")) {
      throw new UsageError("--source belongs to --format mergekit and --format rys");
    }
    return;
  }
  for (const id of ["planOnly", "splitMaxSize", "splitMaxTensors"] as const) {
    if (flags.has(id)) {
      throw new UsageError(`${flags.name(id)} and --format ${format} exclude each other`);
    }
  }
  if (format === "mergekit" && flags.on("json")) {
    throw new UsageError("--format mergekit writes YAML and excludes --json");
  }
}

/** Bytes of a size as gguf-split reads it. */
function splitSize(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return Number(text.slice(0, -1)) * (text.endsWith("G") ? 1e9 : 1e6);
}

async function writeText(
  text: string,
  output: string | undefined,
  flags: Flags,
  shell: Shell,
): Promise<void> {
  if (output === undefined || output === "-") return await shell.out(text);
  const isThere = await Deno.lstat(output).then(() => true, () => false);
  if (isThere && !flags.on("force")) {
    throw new Failure(`cannot write ${output}: the file exists; --force replaces it`);
  }
  await writeWhole(output, text, { signal: shell.signal });
}

/** A line on a terminal that says how far the writing is. */
function progressLine(
  shell: Shell,
): { update: (written: number, total: number) => void; end: () => void } {
  const isShown = Deno.stderr.isTerminal() && !shell.quiet;
  const began = performance.now();
  let last = 0;
  return {
    update(written, total) {
      const now = performance.now();
      if (!isShown || now - last < TICK) return;
      last = now;
      const rate = written / (now - began) * 1000;
      const percent = Math.floor(100 * written / total);
      shell.err(
        `\r\x1b[Kwriting ${percent} % of ${formatBytes(total)}, ${formatBytes(rate)}/s, ${
          Math.ceil((total - written) / rate)
        } s left`,
      );
    },
    end() {
      if (isShown && last > 0) shell.err("\r\x1b[K");
    },
  };
}

function reportText({ files, bytes, nLayer, nextn, nTensors }: ExportReport): string {
  const mtp = nextn > 0 ? ` + ${nextn} MTP` : "";
  const lines = files.length > 1 ? [...files, `${files.length} shards`] : files;
  return `${lines.join("\n")}: ${
    formatBytes(bytes)
  }, ${nLayer}${mtp} layers, ${nTensors} tensors\n`;
}

function reportJson(model: ModelFile, report: ExportReport, planOnly: boolean): string {
  const { files, bytes, nLayer, nextn, nTensors, plan } = report;
  return JSON.stringify({
    model: model.path,
    files,
    bytes,
    n_layer: nLayer,
    n_layer_nextn: nextn,
    n_tensors: nTensors,
    shards: files.length,
    plan_only: planOnly,
    plan: planToJson(plan),
  }) + "\n";
}
