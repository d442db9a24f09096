/**
 * What a plan costs: time for a prompt token and for a generated one with plans, against none, and against what the
 * number of layers and the work in them lead one to expect.
 *
 * @module
 */

import { estimateCost, expandPlan, modelFacts, parsePlan, readModel } from "@rys/edge";
import { fetchModel } from "../tests/models/fetch.ts";
import {
  options,
  ratios,
  Report,
  ROOT,
  show,
  someTokens,
  spread,
  startOurs,
  table,
} from "./_bench.ts";

interface Case {
  name: string;
  path: string;
  /** Plans; the first place is that of none. */
  plans: string[];
}

interface Row {
  model: string;
  plan: string;
  nLayerEff: number;
  /** Layers run, to those of the model. */
  layerRatio: number;
  /** The library's estimate of the compute ratio. */
  estimate: number;
  /** Bytes of weights read for a generated token, to those without a plan: the head runs once whatever the plan. */
  readRatio: number;
  promptMs: number[];
  tokenMs: number[];
}

const asked = options("usage: deno run -A bench/plan_cost.ts [options]", 9);
const N_PROMPT = asked.smoke ? 16 : 128;
const N_GEN = asked.smoke ? 4 : 32;
const THREADS = Math.min(2, navigator.hardwareConcurrency);

const report = new Report("plan_cost", "What a plan costs in time", asked);

/** Small plans in the middle, a long one, two blocks, three passes more: their places by the model's depth. */
function plansFor(nLayer: number): string[] {
  const at = (part: number) => Math.round(part * nLayer);
  const mid = at(0.5);
  return [
    "none",
    `${mid},${mid + 1}`,
    `${mid - 1},${mid + 1}`,
    `${at(0.3)},${at(0.6)}`,
    `${at(0.3)},${at(0.3) + 2};${at(0.6)},${at(0.6) + 2}`,
    `${mid - 1},${mid + 1}x3`,
    `${at(0.2)},${at(0.8)}`,
  ];
}

const files: [string, string][] = [["demo", asked.demo], [
  "SmolLM2-135M Q4_1",
  await fetchModel("smollm2"),
]];
const cases: (Case & { rows: Row[] })[] = [];
for (const [name, path] of files) {
  const { header } = await readModel(path);
  const { nLayer, nextn } = header;
  const facts = modelFacts(header);
  const inLayers = facts.layers.slice(0, nLayer).map((layer) => layer.activeBytes ?? 0);
  const head = header.tensors.find((t) => t.name === "output.weight") ??
    header.tensors.find((t) => t.name === "token_embd.weight");
  const reads = (layers: readonly number[]) =>
    layers.reduce((sum, il) => sum + inLayers[il]!, head?.bytes ?? 0);
  const plans = plansFor(nLayer).slice(0, asked.smoke ? 3 : undefined);
  const rows = plans.map((plan): Row => {
    const effective = expandPlan(parsePlan(plan), nLayer, { nextn });
    return {
      model: name,
      plan,
      nLayerEff: effective.nLayerEff,
      layerRatio: effective.nLayerEff / nLayer,
      estimate: estimateCost(facts, effective, { nCtx: 512 }).computeRatio,
      readRatio: reads(effective.layers) / reads(inLayers.map((_, il) => il)),
      promptMs: [],
      tokenMs: [],
    };
  });
  cases.push({ name, path, plans, rows });

  await using child = startOurs();
  const { nVocab } = await child.call<{ nVocab: number }>("load", { path });
  const tokens = someTokens(N_PROMPT, nVocab);
  for (const { plan } of rows) {
    await child.call("context", { name: plan, plan, nCtx: 512, threads: THREADS });
    await child.call("measure", { name: plan, tokens, tg: N_GEN }); // V8 optimises what has run
  }
  for (let round = 0; round < asked.rounds; round++) {
    for (const row of rows) {
      const { promptMs, predictedMs } = await child.call<
        { promptMs: number; predictedMs: number }
      >("measure", { name: row.plan, tokens, tg: N_GEN });
      row.promptMs.push(promptMs / N_PROMPT);
      row.tokenMs.push(predictedMs / N_GEN);
    }
    console.error(`${name}: round ${round + 1} of ${asked.rounds}`);
  }
}

report.add(
  `Milliseconds for a token of a prompt of ${N_PROMPT} and for one of ${N_GEN} generated after it, on ${THREADS} ` +
    "threads. A ratio is that to no plan in the same round. *layers* is layers run to layers of the model: what a " +
    "prompt token should cost, and at most what a generated one should. *read* is the weights that a generated token " +
    "reads, head included, to those without a plan: what it should cost. The last columns are how far the measured " +
    "ratios are from that, in percent; the target is within 5.",
);
for (const { name, path, rows } of cases) {
  const none = rows[0]!;
  report.add(`## ${name}\n\n${path.replace(`${ROOT}/`, "").split("/").at(-1)}`);
  report.add(table(
    [
      ...["plan", "layers", "read", "prompt ms", "ratio", "generated ms", "ratio"],
      ...["prompt off layers", "generated off layers", "generated off read"],
    ],
    rows.map((row) => {
      const prompt = ratios(row.promptMs, none.promptMs);
      const token = ratios(row.tokenMs, none.tokenMs);
      const off = (x: number, of: number) => row === none ? "–" : (100 * (x / of - 1)).toFixed(1);
      return [
        row.plan,
        row.layerRatio.toFixed(3),
        row.readRatio.toFixed(3),
        show(spread(row.promptMs), 3),
        show(prompt, 3),
        show(spread(row.tokenMs), 3),
        show(token, 3),
        off(prompt.median, row.layerRatio),
        off(token.median, row.layerRatio),
        off(token.median, row.readRatio),
      ];
    }),
  ));
}
await report.write({
  threads: THREADS,
  n_prompt: N_PROMPT,
  n_gen: N_GEN,
  results: cases.flatMap(({ rows }) =>
    rows.map((row) => ({
      ...row,
      prompt_ratio: ratios(row.promptMs, rows[0]!.promptMs),
      token_ratio: ratios(row.tokenMs, rows[0]!.tokenMs),
    }))
  ),
});
