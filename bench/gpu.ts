/**
 * What the host does for the GPU: time, crossings and calls for a token on a device that computes nothing, recorded
 * against one crossing per call; then tokens per second on the adapter there is, against the CPU.
 *
 * @module
 */

import type { GpuCounts } from "../gpu/executor.ts";
import { chooseGpu, type GpuInfo } from "../gpu/device.ts";
import type { LineChild } from "../tests/models/_line_child.ts";
import { cacheDir } from "../tests/models/fetch.ts";
import {
  options,
  ratios,
  Report,
  ROOT,
  show,
  type Spread,
  spread,
  startOurs,
  table,
} from "./_bench.ts";
import { writeRandomModel } from "./_random_model.ts";
import type { HostTime } from "./_host_time.ts";

const asked = options("usage: deno run -A bench/gpu.ts [options]", 7);
const LAYERS = asked.smoke ? [4] : [4, 28, 64];
const N_GEN = asked.smoke ? 4 : 32;
const N_WARM = asked.smoke ? 1 : 12; // runs until V8 has optimised both halves
const TIMED = new URL("./_timed_gpu.ts", import.meta.url).href;

type Counts = GpuCounts & { recorded: number };

interface Spent {
  counts: Counts;
  threads: Record<string, [name: string, ms: number]>;
  host: HostTime;
}

/** Costs of a token, a sample for each round. */
interface Samples {
  wallMs: number[];
  /** Processor time of all threads. */
  cpuMs: number[];
  /** Of it: the engine's thread that makes the graph and records. */
  recordMs: number[];
  /** Of it: the engine's Worker, which takes the words and makes the calls. */
  workerMs: number[];
  /** The executor in the Worker by the clock, waiting left out. */
  executeMs: number[];
}

interface Row {
  nLayer: number;
  form: "recorded" | "immediate";
  /** Counts for a token. */
  counts: Record<string, number>;
  samples: Samples;
}

const report = new Report("gpu", "GPU: what the host does, and speed", asked);

/** Starts a process with a model on a timed device. */
async function start(
  path: string,
  device: "recording" | "adapter",
  bridge: { immediate?: boolean; readback?: "sync" | "awaited" },
): Promise<LineChild> {
  const child = startOurs();
  const gpuBridge = { ...bridge, provider: `${TIMED}?device=${device}` };
  await child.call("load", { path, gpu: "required", gpuBridge });
  await child.call("context", { name: "c", nCtx: 512, threads: 1 });
  return child;
}

/** Generates from a prompt of one token, so that all tokens cost the same. Gives milliseconds for all. */
async function generate(child: LineChild, n: number): Promise<number> {
  const { promptMs, predictedMs } = await child.call<{ promptMs: number; predictedMs: number }>(
    "measure",
    { name: "c", tokens: [260], tg: n - 1 },
  );
  return promptMs + predictedMs;
}

/** One sample of everything. */
async function sample(child: LineChild, row: Row): Promise<void> {
  const before = await child.call<Spent>("spent");
  const wall = await generate(child, N_GEN);
  const after = await child.call<Spent>("spent");
  const each = (ms: number) => ms / N_GEN;
  let cpu = 0, engine = 0, record = 0;
  for (const [id, [name, ms]] of Object.entries(after.threads)) {
    const spent = ms - (before.threads[id]?.[1] ?? 0);
    cpu += spent;
    if (Number(id) === after.host.thread) engine = spent;
    else if (name.startsWith("worker")) record += spent;
  }
  const execute = (after.host.executorMs - before.host.executorMs) -
    (after.host.waitMs - before.host.waitMs);
  const { samples } = row;
  samples.wallMs.push(each(wall));
  samples.cpuMs.push(each(cpu));
  samples.recordMs.push(each(record));
  samples.workerMs.push(each(engine));
  samples.executeMs.push(each(execute));
  for (const key of Object.keys(after.counts) as (keyof Counts)[]) {
    row.counts[key] = (after.counts[key] - before.counts[key]) / N_GEN;
  }
}

const perDispatch = (row: Row, of: keyof Samples) =>
  row.samples[of].map((ms) => 1000 * ms / row.counts.dispatches!);

const rows: Row[] = [];
await Deno.mkdir(`${cacheDir()}/bench`, { recursive: true });
{
  await using stack = new AsyncDisposableStack();
  const measured: [LineChild, Row][] = [];
  for (const nLayer of LAYERS) {
    const path = `${cacheDir()}/bench/random-${nLayer}-layers.gguf`;
    writeRandomModel(path, "Q4_0", {
      nLayer,
      nEmbd: 256,
      nFf: 768,
      nHead: 4,
      nHeadKv: 2,
      head: 64,
      nVocab: 2048,
    });
    for (const form of ["recorded", "immediate"] as const) {
      const child = stack.use(await start(path, "recording", { immediate: form === "immediate" }));
      const samples = { wallMs: [], cpuMs: [], recordMs: [], workerMs: [], executeMs: [] };
      measured.push([child, { nLayer, form, counts: {}, samples }]);
      for (let i = 0; i < N_WARM; i++) await generate(child, N_GEN);
    }
  }
  for (let round = 0; round < asked.rounds; round++) {
    for (const [child, row] of measured) await sample(child, row);
    console.error(`host: round ${round + 1} of ${asked.rounds}`);
  }
  rows.push(...measured.map(([, row]) => row));
}

/** Processor time for one dispatch more, in microseconds: what a token costs whatever the layers is left out. */
function slope(form: Row["form"]): number[] {
  const [first, last] = [LAYERS[0], LAYERS.at(-1)].map((nLayer) =>
    rows.find((row) => row.nLayer === nLayer && row.form === form)!
  ) as [Row, Row];
  const dispatches = last.counts.dispatches! - first.counts.dispatches!;
  return last.samples.cpuMs.map((ms, i) => 1000 * (ms - first.samples.cpuMs[i]!) / dispatches);
}

const count = (row: Row, key: string) => row.counts[key]!.toFixed(row.counts[key]! % 1 ? 1 : 0);
report.add(
  "## Host\n\n" +
    `Random models of width 256, ${N_GEN} tokens one by one on a device that checks and counts calls and computes ` +
    "nothing. *recorded* is what the engine does; *immediate* makes the same calls with a crossing each and nothing " +
    "cached. For a token:",
);
report.add(table(
  ["layers", "form", "dispatches", "submits", "crossings", "beyond submits", "bind groups"]
    .concat("writes", "bytes written"),
  rows.map((row) => [
    String(row.nLayer),
    row.form,
    ...["dispatches", "submits", "crossings"].map((key) => count(row, key)),
    (row.counts.crossings! - row.counts.submits!).toFixed(0),
    ...["bindGroups", "writes", "writtenBytes"].map((key) => count(row, key)),
  ]),
));
report.add(
  "Milliseconds for a token: wall clock, processor time of all threads, and its parts: *C++* makes the graph and " +
    "records, *Worker* takes the words over and makes the calls; *executor* is the latter by the clock (the device " +
    "takes no time for them). The rest is V8's compiler and collector, and the library's thread. *us* is processor " +
    "time for a dispatch in microseconds; *ratio* is that of the immediate form to the recorded one in the same round, " +
    "for processor time and for wall clock.",
);
report.add(table(
  [
    "layers",
    "form",
    "wall",
    "processor",
    "C++",
    "Worker",
    "executor",
    "us",
    "ratio",
    "wall ratio",
  ],
  rows.map((row) => {
    const recorded = rows.find((r) => r.nLayer === row.nLayer && r.form === "recorded")!;
    const { wallMs, cpuMs, recordMs, workerMs, executeMs } = row.samples;
    const to = (of: "cpuMs" | "wallMs"): string =>
      row === recorded ? "–" : show(ratios(row.samples[of], recorded.samples[of]), 2);
    return [
      String(row.nLayer),
      row.form,
      ...[wallMs, cpuMs, recordMs, workerMs, executeMs].map((ms) => show(spread(ms), 2)),
      show(spread(perDispatch(row, "cpuMs")), 2),
      to("cpuMs"),
      to("wallMs"),
    ];
  }),
));

const slopes = { recorded: slope("recorded"), immediate: slope("immediate") };
if (LAYERS.length > 1) {
  report.add(
    `A dispatch more, from the difference of ${LAYERS[0]} and ${LAYERS.at(-1)} layers, costs ` +
      `${show(spread(slopes.recorded), 2)} us recorded and ${
        show(spread(slopes.immediate), 2)
      } us immediate: ` +
      `${
        show(ratios(slopes.immediate, slopes.recorded), 2)
      } times as much. The target is at least 3.`,
  );
}

interface Speed {
  variant: string;
  tokensPerSecond: number[];
  /** Processor time of the executor for a dispatch, in microseconds; none on the CPU. */
  executorUs: number[];
}

/** Tokens per second on the adapter. */
async function speeds(): Promise<{ info: GpuInfo; rows: Speed[] } | { why: string }> {
  const found = await chooseGpu({ mode: "required" }, navigator.gpu);
  if ("why" in found) return found;
  found.device.destroy();
  const variants = [
    { name: "GPU, read at once", bridge: { readback: "sync" } },
    { name: "GPU, read awaited", bridge: { readback: "awaited" } },
    { name: "GPU, immediate", bridge: { immediate: true } },
    { name: "CPU, 1 thread", bridge: undefined },
  ] as const;
  const n = asked.smoke ? 2 : 16;
  await using stack = new AsyncDisposableStack();
  const measured: [LineChild, Speed][] = [];
  for (const { name, bridge } of variants) {
    const child = stack.use(bridge ? await start(asked.demo, "adapter", bridge) : startOurs());
    if (!bridge) {
      await child.call("load", { path: asked.demo });
      await child.call("context", { name: "c", nCtx: 512, threads: 1 });
    }
    await generate(child, n);
    measured.push([child, { variant: name, tokensPerSecond: [], executorUs: [] }]);
  }
  for (let round = 0; round < asked.rounds; round++) {
    for (const [child, row] of measured) {
      const onGpu = row.variant.startsWith("GPU");
      const before = onGpu ? await child.call<Spent>("spent") : undefined;
      row.tokensPerSecond.push(1000 * n / await generate(child, n));
      if (!before) continue;
      const after = await child.call<Spent>("spent");
      const ms = (after.host.executorMs - before.host.executorMs) -
        (after.host.waitMs - before.host.waitMs);
      row.executorUs.push(1000 * ms / (after.counts.dispatches - before.counts.dispatches));
    }
    console.error(`adapter: round ${round + 1} of ${asked.rounds}`);
  }
  return { info: found.info, rows: measured.map(([, row]) => row) };
}

const speed = await speeds();
report.add("## Adapter");
if ("why" in speed) {
  report.add(`Not measured: ${speed.why}.`);
} else {
  const { info } = speed;
  const first = speed.rows[0]!;
  const name = asked.demo.replace(`${ROOT}/`, "");
  report.add(
    `${name} on ${info.description}${
      info.software ? ", a software adapter" : ""
    }: tokens per second, one by one. ` +
      "*executor* is the time of its calls for a dispatch in microseconds, Deno's own part included; submits and reads " +
      "are left out, since a software adapter computes in them. Ratios are to the first row in the same round.",
  );
  report.add(table(
    ["variant", "tokens per second", "ratio", "executor", "ratio"],
    speed.rows.map((row) => {
      const own = row === first;
      const part = (s: () => Spread, digits: number) =>
        row.executorUs.length ? show(s(), digits) : "–";
      return [
        row.variant,
        show(spread(row.tokensPerSecond), 2),
        own ? "–" : show(ratios(row.tokensPerSecond, first.tokensPerSecond), 2),
        part(() => spread(row.executorUs), 1),
        own ? "–" : part(() => ratios(row.executorUs, first.executorUs), 2),
      ];
    }),
  ));
}
await report.write({
  n_gen: N_GEN,
  host: rows.map((row) => ({
    ...row,
    us_per_dispatch: spread(perDispatch(row, "cpuMs")),
    wall_us_per_dispatch: spread(perDispatch(row, "wallMs")),
  })),
  slope_us: slopes,
  adapter: speed,
});
