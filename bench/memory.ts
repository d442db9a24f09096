/**
 * Memory: what loading takes at its peak and what a plan adds, ours and node-llama-cpp's, for the demo model, SmolLM2
 * and gemma.
 *
 * @module
 */

import type { LineChild } from "../tests/models/_line_child.ts";
import { fetchModel } from "../tests/models/fetch.ts";
import { startPeer } from "../tests/models/_peer.ts";
import { options, Report, show, someTokens, spread, startOurs, table } from "./_bench.ts";

interface Memory {
  rss: number;
  peak: number;
  heap?: number;
}

interface Sample {
  /** Bytes of the process before it loads anything. */
  empty: number;
  /** Peak when the model is loaded. */
  loadedPeak: number;
  /** Peak when a context has answered. */
  usedPeak: number;
  /** The WASM's memory when the model is loaded, and when a context has answered. */
  loadedHeap?: number;
  usedHeap?: number;
  /** The WASM's memory when a second context, with a plan, has answered too; and that context's own bytes. */
  planHeap?: number;
  planBytes?: number;
}

interface Row {
  model: string;
  variant: string;
  modelBytes: number;
  kvBytes: number;
  samples: Sample[];
}

const asked = options("usage: deno run -A bench/memory.ts [options]", 3);
const N_CTX = 2048;
const report = new Report("memory", "Memory", asked);
const models: [name: string, path: string, plan: string][] = [
  ["demo", asked.demo, "3,5"],
  ...asked.smoke ? [] : [
    ["SmolLM2-135M Q4_1", await fetchModel("smollm2"), "12,14"],
    ["gemma-3-270m Q4_K_M", await fetchModel("gemma"), "8,10"],
  ] as [string, string, string][],
];

const VARIANTS: [name: string, start: () => LineChild | Promise<LineChild>, load: object][] = [
  ["ours", startOurs, {}],
  ["node-llama-cpp", startPeer, {}],
  ["node-llama-cpp, no mmap", startPeer, { mmap: false }],
];

const rows: Row[] = [];
for (const [model, path, plan] of models) {
  const part = VARIANTS.map(([variant]): Row => ({
    model,
    variant,
    modelBytes: 0,
    kvBytes: 0,
    samples: [],
  }));
  const nTokens = 64;
  for (let round = 0; round < asked.rounds; round++) {
    for (const [i, [variant, start, load]] of VARIANTS.entries()) {
      await using child = await start();
      const memory = () => child.call<Memory>("memory");
      const use = async (name: string, plan: string) => {
        const made = await child.call<{ kvBytes: number; computeBytes: number }>("context", {
          ...{ name, plan },
          ...{ nCtx: N_CTX, threads: Math.min(2, navigator.hardwareConcurrency) },
        });
        await child.call("measure", { name, tokens: someTokens(nTokens, 1000), tg: 4 });
        return made;
      };
      const { rss: empty } = await memory();
      const { modelBytes = 0 } = await child.call<{ modelBytes?: number }>("load", {
        path,
        ...load,
      });
      const loaded = await memory();
      const { kvBytes = 0 } = await use("none", "none");
      const used = await memory();
      const sample: Sample = { empty, loadedPeak: loaded.peak, usedPeak: used.peak };
      if (variant === "ours") {
        const made = await use("plan", plan);
        const planned = await memory();
        Object.assign(sample, {
          loadedHeap: loaded.heap,
          usedHeap: used.heap,
          planHeap: planned.heap,
          planBytes: made.kvBytes + made.computeBytes,
        });
      }
      Object.assign(part[i]!, { modelBytes, kvBytes });
      part[i]!.samples.push(sample);
    }
    console.error(`${model}: round ${round + 1} of ${asked.rounds}`);
  }
  for (const row of part) Object.assign(row, pick(part[0]!)); // only ours tells them
  rows.push(...part);
}

function pick({ modelBytes, kvBytes }: Row) {
  return { modelBytes, kvBytes };
}

const mb = (bytes: number) => bytes / 1e6;
const over = (row: Row, of: (s: Sample) => number) => spread(row.samples.map((s) => mb(of(s))));

report.add(
  `Megabytes; a context of ${N_CTX} tokens answers a prompt of 64. *over* is the process's peak less what it had before ` +
    "loading, less the weights (and the cache): what loading and running take beside them. node-llama-cpp maps the " +
    "file where it may, so its pages count only as they are touched; the row without it compares like with like.",
);
report.add(table(
  ["model", "variant", "weights", "cache", "before", "peak, loaded", "over", "peak, used", "over"],
  rows.map((row) => [
    row.model,
    row.variant,
    mb(row.modelBytes).toFixed(1),
    mb(row.kvBytes).toFixed(1),
    show(over(row, (s) => s.empty), 0),
    show(over(row, (s) => s.loadedPeak), 0),
    show(over(row, (s) => s.loadedPeak - s.empty - row.modelBytes), 0),
    show(over(row, (s) => s.usedPeak), 0),
    show(over(row, (s) => s.usedPeak - s.empty - row.modelBytes - row.kvBytes), 0),
  ]),
));
report.add("## The WASM's memory");
report.add(
  "What the engine has taken from the host (it never gives back). The last columns are a second context, with a plan: " +
    "how much the memory grew, and what that context's cache and scratch buffers are; the weights are shared.",
);
report.add(table(
  [
    "model",
    "loaded",
    "over weights",
    "used",
    "over weights and cache",
    "a plan: grew by",
    "its own",
  ],
  rows.filter((row) => row.variant === "ours").map((row) => [
    row.model,
    show(over(row, (s) => s.loadedHeap!), 0),
    show(over(row, (s) => s.loadedHeap! - row.modelBytes), 0),
    show(over(row, (s) => s.usedHeap!), 0),
    show(over(row, (s) => s.usedHeap! - row.modelBytes - row.kvBytes), 0),
    show(over(row, (s) => s.planHeap! - s.usedHeap!), 1),
    show(over(row, (s) => s.planBytes!), 1),
  ]),
));
await report.write({ n_ctx: N_CTX, results: rows });
