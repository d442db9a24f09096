import type { Context, GenerateOptions } from "../../engine/mod.ts";
import { type EffectivePlan, type PlanInput, planToJson } from "../../plan/mod.ts";
import { UsageError } from "../errors.ts";
import { gpuJson, gpuLine } from "../flags/gpu_flags.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { planInput } from "../flags/plan_input.ts";
import { formatRatio } from "../terminal/plan_text.ts";
import { type LoadedModel, openModel, planFor } from "../session.ts";
import { type Shell, showsColour, styles } from "../terminal/shell.ts";
import type { FlagId } from "../flags/flags.ts";

/** What is measured: a prompt of `n` tokens, or `n` tokens generated. */
export interface Test {
  /** pp: prompt processing; tg: text generation. */
  kind: "pp" | "tg";
  /** Tokens. */
  n: number;
}

interface Row extends Test {
  plan: EffectivePlan;
  /** Tokens per second, one for each repetition. */
  samples: number[];
}

/** Mean and sample standard deviation. */
export interface Stats {
  /** Mean. */
  mean: number;
  /** Standard deviation, 0 for one sample. */
  stddev: number;
}

/**
 * Mean and sample standard deviation.
 *
 * @param samples At least one number.
 */
export function statsOf(samples: readonly number[]): Stats {
  const mean = samples.reduce((a, b) => a + b, 0) / samples.length;
  const squares = samples.reduce((a, b) => a + (b - mean) ** 2, 0);
  return { mean, stddev: samples.length < 2 ? 0 : Math.sqrt(squares / (samples.length - 1)) };
}

/** A speed beside that without a plan. */
export interface Ratio {
  /** The mean speed over that without a plan. */
  ratio: number;
  /** Its standard deviation, from that of both speeds. */
  stddev: number;
  /** The spread is too large for the ratio to mean anything. */
  doubtful: boolean;
}

/**
 * How a speed compares to that without a plan.
 *
 * @param samples Tokens per second.
 * @param base Tokens per second without a plan, measured in turn with them.
 */
export function ratioOf(samples: readonly number[], base: readonly number[]): Ratio {
  const [own, plain] = [statsOf(samples), statsOf(base)];
  const ratio = own.mean / plain.mean;
  const stddev = samples === base
    ? 0
    : ratio * Math.hypot(own.stddev / own.mean, plain.stddev / plain.mean);
  // It should be less than the change that the ratio reports, and less than a quarter of the ratio itself.
  const doubtful = !(stddev <= Math.max(Math.abs(1 - ratio), 0.02) && stddev <= ratio / 4);
  return { ratio, stddev, doubtful };
}

/**
 * The command `bench`.
 *
 * @param flags The model, the plans, and what to measure: `-p`, `-n`, `-r`.
 * @param shell Where to write.
 */
export async function bench(flags: Flags, shell: Shell): Promise<number> {
  const where = flags.name("repeatLayersList");
  const specs: PlanInput[] = [];
  for (const text of flags.all("repeatLayersList")) specs.push(await planInput(where, text));
  const tests: Test[] = [
    ...numbers(flags, "benchPrompt", "128", 1).map((n) => ({ kind: "pp" as const, n })),
    ...numbers(flags, "benchGen", "32", 2).map((n) => ({ kind: "tg" as const, n })),
  ];
  if (tests.length === 0) throw new UsageError("-p 0 and -n 0 leave nothing to measure");
  const repetitions = Number(flags.text("repetitions") ?? 3);
  if (!Number.isInteger(repetitions) || repetitions < 1 || repetitions > 1000) {
    throw new UsageError(`${flags.name("repetitions")} must be a whole number in 1..1000`);
  }

  await using loaded = await openModel(flags, shell, (file) => {
    const plans = (specs.length > 0 ? specs : [undefined])
      .map((spec) => planFor(where, spec, file));
    for (const plan of plans) {
      for (const text of plan.advisories) {
        shell.warn(plans.length > 1 ? `${plan.spec}: ${text}` : text);
      }
    }
    const none = planFor("", "none", file);
    const isOwnNone = specs.length === 0 && plans[0]!.layers.join() === none.layers.join();
    return isOwnNone ? [none] : [none, ...plans];
  });
  const { nCtxTrain } = loaded.model.info;
  const nCtx = flags.number("nCtx") ?? Math.max(...tests.map((test) => test.n)) + 16;
  const options = {
    ...loaded.options,
    nCtx: nCtx || nCtxTrain,
    nParallel: 1,
  };
  const contexts: Context[] = [];
  const rows: Row[] = [];
  for (const repeatLayers of loaded.checked) {
    const context = await loaded.model.createContext({ ...options, repeatLayers });
    contexts.push(context);
    await measure(context, { kind: "tg", n: 4 }, shell.signal); // the first is slower
    for (const test of tests) rows.push({ ...test, plan: context.info.plan, samples: [] });
  }
  // In turn, so that other load on the machine affects all plans alike.
  for (let i = 0; i < repetitions; i++) {
    for (const [t, test] of tests.entries()) {
      for (const [c, context] of contexts.entries()) {
        if (!shell.quiet && Deno.stderr.isTerminal()) {
          shell.err(
            `\r\x1b[K${i + 1}/${repetitions} ${test.kind}${test.n} ${context.info.plan.spec}`,
          );
        }
        rows[c * tests.length + t]!.samples.push(await measure(context, test, shell.signal));
      }
    }
  }
  if (!shell.quiet && Deno.stderr.isTerminal()) shell.err("\r\x1b[K");

  const toBase = (row: Row) =>
    ratioOf(
      row.samples,
      rows.find((other) => other.kind === row.kind && other.n === row.n)!.samples,
    );
  const { threads } = contexts[0]!.info;
  if (flags.on("json")) {
    await shell.out(JSON.stringify(toJson(rows, toBase, loaded, threads)) + "\n");
  } else {
    await shell.out(table(rows, toBase, loaded, threads));
  }
  return 0;
}

function numbers(flags: Flags, id: FlagId, otherwise: string, least: number): number[] {
  return (flags.text(id) ?? otherwise).split(",").map((part) => {
    const n = Number(part);
    if (/^\s*\d{1,7}\s*$/.test(part) && (n === 0 || n >= least)) return n;
    throw new UsageError(
      `${flags.name(id)} wants whole numbers from ${least}, or 0 for none, not ${
        JSON.stringify(part)
      }`,
    );
  }).filter((n) => n > 0);
}

/** Tokens per second of one test. */
async function measure(context: Context, { kind, n }: Test, signal: AbortSignal): Promise<number> {
  const { nVocab, bos } = context.model.info;
  // Any tokens will do: the work does not depend on which they are.
  const prompt = kind === "tg"
    ? [bos ?? 0]
    : Array.from({ length: n }, (_, i) => i === 0 && bos !== null ? bos : (i * 7919 + 13) % nVocab);
  const options: GenerateOptions = {
    maxTokens: kind === "tg" ? n : 1,
    temperature: 0,
    ignoreEos: true,
    cachePrompt: false,
    signal,
  };
  const { timings } = await context.generate(prompt, options).completion();
  return kind === "tg" ? timings.predictedPerSecond : timings.promptPerSecond;
}

function toJson(
  rows: readonly Row[],
  toBase: (row: Row) => Ratio,
  { model, file }: LoadedModel,
  threads: number,
): Record<string, unknown> {
  return {
    model: {
      file: file.path,
      architecture: model.info.arch,
      desc: model.info.desc,
      bytes: model.info.modelBytes,
    },
    n_threads: threads,
    backend: model.info.gpu === null ? "CPU" : "WebGPU",
    gpu: gpuJson(model.info),
    results: rows.map((row) => {
      const { mean, stddev } = statsOf(row.samples);
      const base = toBase(row);
      return {
        test: `${row.kind}${row.n}`,
        n_prompt: row.kind === "pp" ? row.n : 0,
        n_gen: row.kind === "tg" ? row.n : 0,
        plan: planToJson(row.plan),
        avg_ts: mean,
        stddev_ts: stddev,
        samples_ts: row.samples,
        ratio: base.ratio,
        ratio_stddev: base.stddev,
        ratio_doubtful: base.doubtful,
        expected_ratio: row.plan.nLayer / row.plan.nLayerEff,
      };
    }),
  };
}

function table(
  rows: readonly Row[],
  toBase: (row: Row) => Ratio,
  { model, gpu }: LoadedModel,
  threads: number,
): string {
  const style = styles(showsColour(Deno.stdout));
  let isDoubtful = false;
  const cells = rows.map((row) => {
    const { mean, stddev } = statsOf(row.samples);
    const { ratio, doubtful } = toBase(row);
    isDoubtful ||= doubtful;
    return [
      row.plan.spec.trim(),
      String(row.plan.nLayerEff),
      `${row.kind}${row.n}`,
      mean.toFixed(2) + (row.samples.length > 1 ? ` ± ${stddev.toFixed(2)}` : ""),
      formatRatio(ratio) + (doubtful ? " ?" : ""),
    ];
  });
  const head = ["plan", "layers", "test", "tokens/s", "to none"];
  const widths = head.map((name, k) =>
    Math.max(name.length, ...cells.map((row) => row[k]!.length))
  );
  const line = (row: readonly string[]) =>
    `| ${
      row.map((cell, k) => k === 0 ? cell.padEnd(widths[k]!) : cell.padStart(widths[k]!)).join(
        " | ",
      )
    } |\n`;
  const rule = `|${
    widths.map((width, k) => k === 0 ? "-".repeat(width + 2) : "-".repeat(width + 1) + ":").join(
      "|",
    )
  }|\n`;
  const backend = model.info.gpu === null ? "CPU" : `WebGPU (${gpuLine(model.info, gpu)})`;
  return `${model.info.desc}; ${backend}, ${threads} threads\n\n` +
    style.bold(line(head)) + rule + cells.map(line).join("") +
    (isDoubtful
      ? "\n?: the speeds spread too far for this ratio to say anything; more repetitions (-r N) or a machine " +
        "that is otherwise idle may help\n"
      : "");
}
