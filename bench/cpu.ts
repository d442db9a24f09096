/**
 * Tokens per second of a random 221 M-parameter model and of gemma3-270m on the CPU: ours, the same without repacked weights, without the
 * processor's dot products and for 32-bit memory, llama.cpp's own kernels compiled the same way, and native node-llama-cpp.
 *
 * @module
 */

import type { LineChild } from "../tests/models/_line_child.ts";
import { cacheDir, fetchModel } from "../tests/models/fetch.ts";
import { startPeer } from "../tests/models/_peer.ts";
import { WLLAMA_VERSION, WllamaChild } from "./_wllama.ts";
import {
  options,
  ratios,
  Report,
  ROOT,
  show,
  someTokens,
  type Spread,
  spread,
  startOurs,
  table,
} from "./_bench.ts";
import { type Quantisation, writeRandomModel } from "./_random_model.ts";

/** What answers `load`, `context` and `measure`. */
type Child = Pick<LineChild, "call"> & AsyncDisposable;

/** A build or program that is measured. */
interface Variant {
  name: string;
  /** What it is, for the table. */
  what: string;
  start: () => Promise<Child> | Child;
  /** Folder under wasm/, for builds of ours. */
  folder?: string;
  /** Without repacked weights. */
  repack?: false;
  /** So slow that it takes minutes: only this model, and no long prompt. */
  only?: Quantisation;
}

interface Samples {
  pp: number[];
  long: number[];
  tg: number[];
}

/** A random model of a type, or gemma3-270m as it is fetched. */
type ModelKind = Quantisation | "gemma";

interface Row {
  model: ModelKind;
  threads: number;
  variant: string;
  samples: Samples;
}

const VARIANTS: Variant[] = [
  { name: "ours", what: "wasm/dist", folder: "dist", start: () => startOurs() },
  {
    name: "off",
    what: "ours with `--no-repack`: llama.cpp's own CPU kernels",
    folder: "dist",
    start: () => startOurs(),
    repack: false,
  },
  {
    name: "no VNNI",
    what: "ours where V8 may not use the processor's dot product of bytes",
    folder: "dist",
    start: () => startOurs("--no-enable-avx-vnni"),
  },
  {
    name: "memory32",
    what: "the same for 32-bit memory",
    folder: "memory32",
    start: () => startOurs(),
  },
  {
    name: "plain",
    what: "llama.cpp's own CPU kernels and barriers, compiled the same way",
    folder: "plain",
    start: () => startOurs(),
  },
  {
    name: "wllama",
    what: `wllama ${WLLAMA_VERSION} from npm in Chromium, on a page that may use threads`,
    start: () => WllamaChild.start(),
    only: "Q4_0",
  },
  { name: "native", what: "node-llama-cpp, prebuilt native binary in Node", start: startPeer },
];

const asked = options("usage: deno run -A bench/cpu.ts [options]", 7, {
  variants: "A,B   only these, e.g. ours,off,native",
  models: "A,B     only these, e.g. Q4_0,gemma",
  threads: "1,2     only so many threads",
  long: "N          tokens of the long prompt, 512 if not given",
});
const chosen = (name: "variants" | "models" | "threads") => asked.own[name]?.split(",");
const N_PROMPT = asked.smoke ? 16 : 64;
const N_LONG = asked.smoke ? 32 : Number(asked.own.long ?? 512);
if (!Number.isInteger(N_LONG) || N_LONG < 1 || N_LONG > 900) {
  console.error(`error: --long takes a number from 1 to 900, not "${asked.own.long}"`);
  Deno.exit(2);
}
const N_GEN = asked.smoke ? 4 : 32;
const ALL_MODELS: ModelKind[] = ["Q4_0", "Q8_0", "Q4_K_M", "Q6_K", "gemma"];
const MODELS = ALL_MODELS.filter((kind) =>
  chosen("models")?.includes(kind) ?? (!asked.smoke || kind === "Q4_0")
);
const THREADS = chosen("threads")?.map(Number) ?? (asked.smoke ? [1] : [
  1,
  ...navigator.hardwareConcurrency > 1 ? [2] : [],
  ...navigator.hardwareConcurrency > 7 ? [8] : [],
]);

/** Builds what the comparison needs; without it, takes what is there. */
async function build(): Promise<void> {
  for (const folder of ["memory32", "plain"]) {
    if (!(chosen("variants")?.includes(folder) ?? true)) continue;
    const flag = `--${folder}`;
    const { success } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", `${ROOT}/wasm/build.ts`, flag],
      stdout: "inherit",
      stderr: "inherit",
    }).output();
    if (!success) console.error(`note: wasm/build.ts ${flag} failed`);
  }
}

interface BuildFacts {
  id: string;
  wasm_bytes: number;
}

function buildFacts(folder: string): BuildFacts | undefined {
  try {
    return JSON.parse(Deno.readTextFileSync(`${ROOT}/wasm/${folder}/build.json`));
  } catch {
    return undefined;
  }
}

if (!asked.smoke) await build();
const report = new Report("cpu", "CPU speed", asked);
const main = buildFacts("dist");
const left: string[] = [];
const variants = VARIANTS.filter(({ name, folder }) => {
  if (!(chosen("variants")?.includes(name) ?? true)) return false;
  if (!folder) return true;
  const facts = buildFacts(folder);
  if (facts && facts.id === main?.id) return true;
  left.push(`${name}: wasm/${folder} is ${facts ? "of other sources" : "not built"}`);
  return false;
});

const rows: Row[] = [];
/** Path of a model, which is fetched or written if it isn't there. */
async function fileOf(kind: ModelKind): Promise<string> {
  if (kind === "gemma") return await fetchModel("gemma");
  const path = `${cacheDir()}/bench/random-221m-${kind}.gguf`;
  await Deno.mkdir(`${cacheDir()}/bench`, { recursive: true });
  writeRandomModel(path, kind);
  return path;
}

for (const kind of MODELS) {
  const path = await fileOf(kind);
  await using stack = new AsyncDisposableStack();
  const children: [Variant, Child][] = [];
  for (const variant of variants) {
    if ((variant.only ?? kind) !== kind) continue;
    const child = stack.use(await variant.start());
    const { folder, repack = true } = variant;
    const dist = folder
      ? { dist: new URL(`../wasm/${folder}/`, import.meta.url).href, repack }
      : {};
    await child.call("load", { path, ...dist });
    children.push([variant, child]);
  }
  const tokens = someTokens(N_PROMPT, 32000);
  const many = someTokens(N_LONG, 32000);
  for (const threads of THREADS) {
    const taken = new Map<string, Samples>();
    for (const [{ name }, child] of children) {
      await child.call("context", { name: "c", nCtx: 1024, threads });
      // V8 optimises what has run for a while.
      for (let i = 0; i < 2; i++) await child.call("measure", { name: "c", tokens, tg: N_GEN });
      taken.set(name, { pp: [], long: [], tg: [] });
    }
    for (let round = 0; round < asked.rounds; round++) {
      for (const [{ name, only }, child] of children) {
        const measure = (tokens: number[], tg: number) =>
          child.call<{ promptMs: number; predictedMs: number }>("measure", {
            name: "c",
            tokens,
            tg,
          });
        const { promptMs, predictedMs } = await measure(tokens, N_GEN);
        const samples = taken.get(name)!;
        samples.pp.push(1000 * N_PROMPT / promptMs);
        samples.tg.push(1000 * N_GEN / predictedMs);
        if (!only) samples.long.push(1000 * N_LONG / (await measure(many, 1)).promptMs);
      }
      console.error(`${kind}, ${threads} threads: round ${round + 1} of ${asked.rounds}`);
    }
    for (const [variant, samples] of taken) rows.push({ model: kind, threads, variant, samples });
  }
}

const of = (row: Row, variant: string) =>
  rows.find((r) => r.variant === variant && r.model === row.model && r.threads === row.threads)
    ?.samples;

/** A row's speed as a part of another variant's in the same rounds. */
function against(row: Row, variant: string): Record<keyof Samples, Spread> | undefined {
  const base = of(row, variant);
  if (!base || row.variant === variant) return undefined;
  return {
    pp: ratios(row.samples.pp, base.pp),
    long: ratios(row.samples.long, base.long),
    tg: ratios(row.samples.tg, base.tg),
  };
}

const all = (x: Record<keyof Samples, Spread> | undefined) =>
  x ? `${show(x.pp, 2)} / ${show(x.long, 2)} / ${show(x.tg, 2)}` : "–";

report.add(
  `Tokens per second for prompts of ${N_PROMPT} and ${N_LONG} tokens (pp) and for ${N_GEN} tokens one by one after the ` +
    `first (tg). Ratios are pp${N_PROMPT} / pp${N_LONG} / tg, taken round by round; above 1 is faster.`,
);
report.add(VARIANTS.map(({ name, what }) => `- **${name}**: ${what}`).join("\n"));
report.add(table(
  [
    ...["model", "threads", "variant", `pp${N_PROMPT}`, `pp${N_LONG}`, `tg${N_GEN}`],
    ...["to off", "to plain", "to wllama", "to native"],
  ],
  rows.map((row) => [
    row.model,
    String(row.threads),
    row.variant,
    show(spread(row.samples.pp), 1),
    show(spread(row.samples.long), 1),
    show(spread(row.samples.tg), 1),
    all(against(row, "off")),
    all(against(row, "plain")),
    all(against(row, "wllama")),
    all(against(row, "native")),
  ]),
));

interface Goal {
  goal: string;
  wanted: number;
  /** Median of the ratios; null where a side was not measured. */
  reached: number | null;
}

/** What one thread is to reach against kernels off, and against native; prompts are those of pp. */
const TO_OFF: Record<Quantisation, [pp: number, tg: number]> = {
  Q4_0: [5, 2.7],
  Q4_K_M: [5, 2.7],
  Q6_K: [5, 2.5],
  Q8_0: [4.5, 2],
};

function goals(): Goal[] {
  const found: Goal[] = [];
  const row = (model: ModelKind, threads: number, variant: string) =>
    rows.find((r) => r.model === model && r.threads === threads && r.variant === variant);
  const add = (
    what: string,
    kind: "pp" | "tg",
    wanted: number,
    one: Row | undefined,
    base: Row | undefined,
  ) =>
    found.push({
      goal: `${what}, ${kind}${kind === "pp" ? N_PROMPT : N_GEN}`,
      wanted,
      reached: one && base ? ratios(one.samples[kind], base.samples[kind]).median : null,
    });
  for (const model of MODELS) {
    if (model === "gemma") continue; // the goals are those of the random models
    const [ours, off] = [row(model, 1, "ours"), row(model, 1, "off")];
    const [pp, tg] = TO_OFF[model];
    add(`${model}, 1 thread, to off`, "pp", pp, ours, off);
    add(`${model}, 1 thread, to off`, "tg", tg, ours, off);
    add(`${model}, no VNNI, 1 thread, to off`, "pp", 3, row(model, 1, "no VNNI"), off);
    for (const kind of ["pp", "tg"] as const) {
      add(`${model}, 2 threads to 1`, kind, 1.8, row(model, 2, "ours"), ours);
    }
  }
  if (MODELS.includes("Q4_0")) {
    const [ours, native] = [row("Q4_0", 1, "ours"), row("Q4_0", 1, "native")];
    add("Q4_0, 1 thread, to native", "pp", 0.9, ours, native);
    add("Q4_0, 1 thread, to native", "tg", 0.5, ours, native);
  }
  return found;
}

// A smoke run's numbers mean nothing, nor would what they reach.
const reached = asked.smoke ? [] : goals();
if (reached.length) {
  report.add(
    "Goals, as medians of ratios:\n\n" + table(
      ["what", "goal", "reached", "met"],
      reached.map(({ goal, wanted, reached }) => [
        goal,
        `${wanted}`,
        reached === null ? "not measured" : reached.toFixed(2),
        reached === null ? "–" : reached >= wanted ? "yes" : "no",
      ]),
    ),
  );
}
const sizes = Object.fromEntries(
  VARIANTS.flatMap(({ name, folder }) => {
    const facts = folder && buildFacts(folder);
    return facts ? [[name, facts.wasm_bytes]] : [];
  }),
);
report.add(
  "Size of the WASM: " +
    Object.entries(sizes).map(([name, n]) => `${name} ${(n / 1e6).toFixed(2)} MB`).join(", ") + ".",
);
if (left.length) report.add("Not measured: " + left.join("; ") + ".");
await report.write({
  n_prompt: N_PROMPT,
  n_long: N_LONG,
  n_gen: N_GEN,
  wasm_bytes: sizes,
  goals: reached,
  not_measured: left,
  results: rows.map((row) => ({
    ...row,
    pp: spread(row.samples.pp),
    long: spread(row.samples.long),
    tg: spread(row.samples.tg),
    to_off: against(row, "off") ?? null,
    to_plain: against(row, "plain") ?? null,
    to_wllama: against(row, "wllama") ?? null,
    to_native: against(row, "native") ?? null,
  })),
});
