/**
 * Where the time of a prompt's and of a generated token goes, by kind of work, without and with repacked weights.
 *
 * @module
 */

import { cacheDir } from "../tests/models/fetch.ts";
import {
  options,
  Report,
  show,
  someTokens,
  type Spread,
  spread,
  startOurs,
  table,
} from "./_bench.ts";
import { linkWithNames } from "./_named_build.ts";
import { writeRandomModel } from "./_random_model.ts";
import { readSamples, type Sample } from "./_v8_log.ts";

/** Kinds of work. A sample is of the first kind that has a name in its stack, innermost function first. */
const KINDS: [kind: string, names: RegExp][] = [
  ["rounding activations", /quantize_row_|rys::act_/],
  ["waiting, waking, barriers", /futex|ggml_barrier|pthread_(cond|mutex)|private_cond|timedwait/],
  [
    "products of weights",
    /vec_dot_q|forward_mul_mat|rys::(tile|gemm|gemv|product|traits::(mul_mat|compute))/,
  ],
  ["attention, its softmax too", /flash_attn|attention_|forward_soft_max/],
  ["norms", /forward_(rms_)?norm/],
  ["RoPE", /forward_rope/],
  ["get_rows, set_rows, copies", /forward_(get_rows|set_rows|dup|cpy|cont)/],
  ["element-wise", /forward_(glu|add|mul|scale|unary)|vec_swiglu/],
  ["sampling", /sampl/],
  [
    "graph: building, inputs, dispatch",
    /ggml_graph|ggml_backend|llm_graph|llama_(context|kv|decode)/,
  ],
  ["server and text", /server_/],
];
const UNKNOWN = "not in the table";

/** The function that computes, also while a sample shows it in a helper of V8 or the system. */
const LOOP = "server_context_impl::update_slots";

const VARIANTS = [{ name: "off", repack: false }, { name: "ours", repack: true }];

/** What is measured: prompts of so many tokens, or tokens one by one after a prompt. */
interface Phase {
  name: string;
  prompt: number;
  generated: number;
  /** Measurements a round; one where tokens are generated. */
  times: number;
}

/** One process's profile. */
interface Profile {
  usPerToken: number;
  samples: number;
  /** Part of all samples, 0 to 1, by kind and by the innermost function. */
  kinds: Record<string, number>;
  functions: Record<string, number>;
}

const asked = options("usage: deno run -A bench/profile.ts [options]", 3);
const PHASES: Phase[] = asked.smoke
  ? [{ name: "pp16", prompt: 16, generated: 0, times: 1 }, {
    name: "tg8",
    prompt: 4,
    generated: 8,
    times: 1,
  }]
  : [
    { name: "pp64", prompt: 64, generated: 0, times: 2 },
    { name: "pp256", prompt: 256, generated: 0, times: 1 },
    { name: "tg64", prompt: 64, generated: 64, times: 1 },
  ];

function kindOf({ stack }: Sample): string {
  for (const name of stack) {
    const found = KINDS.find(([, names]) => names.test(name));
    if (found) return found[0];
  }
  return UNKNOWN;
}

function shares(samples: Sample[], key: (sample: Sample) => string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const sample of samples) counts[key(sample)] = (counts[key(sample)] ?? 0) + 1;
  return Object.fromEntries(
    Object.entries(counts).map(([k, n]): [string, number] => [k, n / samples.length])
      .sort((a, b) => b[1] - a[1]),
  );
}

async function profile(
  path: string,
  dist: string,
  repack: boolean,
  phase: Phase,
): Promise<Profile> {
  const dir = await Deno.makeTempDir({ prefix: "rys-profile-" });
  try {
    let ms = 0;
    let windowMs = 0;
    {
      await using child = startOurs(`--prof,--logfile=${dir}/v8.log`);
      await child.call("load", { path, dist, repack });
      await child.call("context", { name: "c", nCtx: 1024, threads: 1 });
      const measure = async (prompt: number, tg: number) => {
        const tokens = someTokens(prompt, 32000);
        const answer = await child.call<{ promptMs: number; predictedMs: number }>("measure", {
          name: "c",
          tokens,
          tg,
        });
        return tg ? answer.predictedMs : answer.promptMs;
      };
      // V8 optimises what has run for a while.
      for (let i = 0; i < 2; i++) await measure(Math.min(phase.prompt, 64), phase.generated && 16);
      const start = performance.now();
      for (let i = 0; i < phase.times; i++) ms += await measure(phase.prompt, phase.generated);
      // Generation comes last: what it took, counted back from the end, leaves out the prompt before it.
      windowMs = phase.generated ? ms : performance.now() - start;
    }
    // Every thread has a log of its own; one has the loop.
    const logs = [...Deno.readDirSync(dir)].map(({ name }) =>
      readSamples(Deno.readTextFileSync(`${dir}/${name}`))
        .filter(({ stack }) => stack.some((f) => f.startsWith(LOOP)))
    );
    const loop = logs.reduce((a, b) => b.length > a.length ? b : a, []);
    const from = (loop.at(-1)?.at ?? 0) - 1000 * windowMs;
    const samples = loop.filter(({ at }) => at >= from);
    if (samples.length === 0) throw new Error(`V8's logs have no sample in ${LOOP}`);
    return {
      usPerToken: 1000 * ms / (phase.times * (phase.generated || phase.prompt)),
      samples: samples.length,
      kinds: shares(samples, kindOf),
      functions: shares(
        samples,
        (sample) => `${sample.stack[0]!.slice(0, 70)} — ${kindOf(sample)}`,
      ),
    };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const named = `${cacheDir()}/bench/named`;
await linkWithNames(named);
const path = `${cacheDir()}/bench/random-221m-Q4_0.gguf`;
writeRandomModel(path, "Q4_0");
const dist = new URL(`file://${named}/`).href;
const report = new Report("profile", "Where the time goes", asked);
const taken = new Map<string, Profile[]>();
for (let round = 0; round < asked.rounds; round++) {
  for (const phase of PHASES) {
    for (const { name, repack } of VARIANTS) {
      const key = `${phase.name} ${name}`;
      const one = await profile(path, dist, repack, phase);
      taken.set(key, [...taken.get(key) ?? [], one]);
    }
  }
  console.error(`round ${round + 1} of ${asked.rounds}`);
}

const of = (phase: Phase, variant: string) => taken.get(`${phase.name} ${variant}`)!;
const percent = (list: Profile[], kind: string): Spread =>
  spread(list.map(({ kinds }) => 100 * (kinds[kind] ?? 0)));
const micros = (list: Profile[], kind: string): Spread =>
  spread(list.map(({ kinds, usPerToken }) => usPerToken * (kinds[kind] ?? 0)));

report.add(
  "The random model of `cpu.ts` as Q4_0 on one thread, with `--no-repack` (off: llama.cpp's own kernels, before) and as " +
    "it is (ours, after). V8 samples the thread that computes, about every millisecond (`--prof`); the engine is " +
    "`wasm/dist` with the names of functions, its code the same byte for byte. A token's microseconds are the engine's " +
    "own count, shared out by samples. Taking samples costs some time itself, and a function that the compiler inlined counts " +
    "as the one that holds it. Attention is flash attention, which has the softmax in it.",
);
for (const phase of PHASES) {
  const [off, ours] = [of(phase, "off"), of(phase, "ours")];
  const total = (list: Profile[]) => spread(list.map(({ usPerToken }) => usPerToken));
  const rows = [...KINDS.map(([kind]) => kind), UNKNOWN].map((kind) => [
    kind,
    show(percent(off, kind), 1),
    show(micros(off, kind), 0),
    show(percent(ours, kind), 1),
    show(micros(ours, kind), 0),
  ]);
  report.add(
    `## ${phase.name}\n\n` +
      (phase.generated
        ? `${phase.generated} tokens one by one after ${phase.prompt}.`
        : `A prompt of ${phase.prompt} tokens.`) +
      "\n\n" +
      table(
        ["kind", "off, %", "off, µs a token", "ours, %", "ours, µs a token"],
        [...rows, ["all", "100", show(total(off), 0), "100", show(total(ours), 0)]],
      ),
  );
  const largest = (list: Profile[]) =>
    Object.entries(list[0]!.functions).filter(([, share]) => share >= 0.005).slice(0, 12)
      .map(([name, share]) => `${(100 * share).toFixed(1)} % \`${name}\``).join("; ");
  report.add(
    `Functions with half a percent or more, with their kind, in the first round. Off: ${
      largest(off)
    }.\n\nOurs: ${largest(ours)}.`,
  );
}
const reading = PHASES.map((phase) => {
  const list = of(phase, "ours");
  const parts = [...KINDS.map(([kind]) => kind), UNKNOWN]
    .map((kind) => ({ kind, share: percent(list, kind).median }))
    .sort((a, b) => b.share - a.share).slice(0, 3)
    .map(({ kind, share }) => `${kind} ${share.toFixed(0)} %`).join(", ");
  const gain = spread(of(phase, "off").map((p, i) => p.usPerToken / list[i]!.usPerToken));
  return `- **${phase.name}**, ${show(gain, 1)} times as fast as off: ${parts}`;
});
report.add(`## What limits it now\n\n${reading.join("\n")}`);
await report.write({ phases: PHASES, profiles: Object.fromEntries(taken) });
