/**
 * Milliseconds of one layer's attention by the type of the KV cache and the tokens in it, for one new token and for a
 * batch of 64.
 *
 * @module
 */

import { runKernels } from "../tests/kernels/run_kernels.ts";
import { options, Report, ROOT, show, type Spread, spread, table } from "./_bench.ts";

const asked = options("usage: deno run -A bench/attention.ts [options]", 3);
const CONTEXTS = asked.smoke ? [64] : [512, 2048, 8192];
const BATCHES = asked.smoke ? [1] : [1, 64];
const TYPES = ["f16-off", "f16", "f32", "q8_0"];

const { success } = await new Deno.Command(Deno.execPath(), {
  args: ["run", "-A", `${ROOT}/wasm/build.ts`, "--kernels"],
  stdout: "inherit",
  stderr: "inherit",
}).output();
if (!success) Deno.exit(1);
const report = new Report("attention", "Attention by the KV cache's type", asked);
const results: { nKv: number; nTokens: number; ms: Record<string, Spread> }[] = [];
for (const nKv of CONTEXTS) {
  for (const nTokens of BATCHES) {
    const samples = new Map<string, number[]>(TYPES.map((type) => [type, []]));
    for (let round = 0; round < asked.rounds; round++) {
      const { lines, code } = await runKernels(["attention", String(nKv), String(nTokens)]);
      if (code !== 0) throw new Error(`rys-kernels attention ended with ${code}: ${lines}`);
      for (const line of lines) {
        const [type, , , ms] = line.split(" ");
        samples.get(type!)!.push(Number(ms));
      }
    }
    const ms = Object.fromEntries([...samples].map(([type, list]) => [type, spread(list)]));
    results.push({ nKv, nTokens, ms });
  }
}

report.add(
  "Milliseconds of flash attention on one thread: 16 heads of 128 numbers that share 8 of keys and values, as in a " +
    "layer of the random model of `cpu.ts`. No mask hides a token. f16-off is llama.cpp's own attention, as with " +
    "`--no-repack`.",
);
report.add(table(
  ["tokens in the cache", "new tokens", ...TYPES],
  results.map(({ nKv, nTokens, ms }) => [
    String(nKv),
    String(nTokens),
    ...TYPES.map((type) => show(ms[type]!, 2)),
  ]),
));
await report.write({ results });
