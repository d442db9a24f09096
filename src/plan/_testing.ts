// Shared by tests; not published.

import { expandPlan } from "./expand_plan.ts";
import { toMergekit } from "./mergekit.ts";
import { parsePlan } from "./parse_plan.ts";
import { planToJson } from "./plan_json.ts";
import { stretches } from "./_stretches.ts";
import { toRelayer } from "./relayer.ts";
import type { EffectivePlan, LayerRun, PlanInput } from "./types.ts";

/** A seeded generator of numbers in [0, 1): mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from `low` to `high`, both included. */
export function between(random: () => number, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1));
}

/** The same, two times in three near the ends. */
export function pick<T>(random: () => number, items: readonly T[]): T {
  return items[between(random, 0, items.length - 1)]!;
}

/** What a block is in the tests' own terms: `times` insertions of `i..j-1`. */
export interface TestBlock {
  i: number;
  j: number;
  times: number;
}

/**
 * Expands blocks another way than the product does: as rewriting of a word. A layer is one letter; a block is the word of
 * its letters; inserting it after the last place of its last letter is one greedy regular-expression replacement.
 */
export function rewriteExpand(nLayer: number, blocks: readonly TestBlock[]): number[] {
  const letter = (il: number) => String.fromCodePoint(0x4e00 + il);
  let word = "";
  for (let il = 0; il < nLayer; il++) word += letter(il);
  for (const { i, j, times } of blocks) {
    let insert = "";
    for (let il = i; il < j; il++) insert += letter(il);
    word = word.replace(
      new RegExp(`^(.*${letter(j - 1)})`, "u"),
      (head) => head + insert.repeat(times),
    );
  }
  return [...word].map((c) => c.codePointAt(0)! - 0x4e00);
}

/** A random plan on a model, as its blocks or as a path. */
export function randomPlan(random: () => number, nLayer: number, most: number): EffectivePlan {
  for (;;) {
    const range = (): [number, number] => {
      const i = between(random, 0, nLayer - 1);
      return [i, between(random, i + 1, Math.min(nLayer, i + 8))];
    };
    const ranges = Array.from({ length: between(random, 1, 3) }, range);
    const spec = pick(random, [
      "none",
      ranges.map(([i, j]) => `${i},${j}x${between(random, 1, 3)}`).join(";"),
      `layers:0,${ranges.map(([i, j]) => `${i}..${j - 1}`).join(",")}`,
    ]);
    const plan = expandPlan(spec, nLayer);
    if (plan.nLayerEff <= most) return plan;
  }
}

/** A plan in every form that a plan can be given in, by the form's name. */
export function formsOf(plan: EffectivePlan): Record<string, PlanInput> {
  const { spec, layers } = plan;
  const parsed = parsePlan(spec);
  const pairs = stretches(layers);
  const misleading = "1,2;0,1x2"; // a text that the plan is not
  const forms: Record<string, PlanInput> = {
    spec,
    "spec with spaces": ` ${spec.replaceAll(",", " , ")} `,
    "layers: text": `layers:${layers.join(",")}`,
    list: layers,
    pairs,
    "pairs as text": JSON.stringify(pairs),
    "parsed plan": parsed,
    "plan by hand": { ...parsed, spec: "" },
    "plan by hand with another text": { ...parsed, spec: misleading },
    "path by hand": { kind: "path", spec: "", layers },
    "path by hand with another text": { kind: "path", spec: misleading, layers },
    "resolved plan": plan,
    "resolved plan, copied": structuredClone(plan),
    "resolved plan by hand": { ...plan, spec: misleading, runs: [], seams: [7] },
    "plan as JSON": { ...planToJson(plan) },
    mergekit: toMergekit(layers),
    rys_relayer: { rys_relayer: toRelayer(plan) },
    "rys_relayer as YAML": `rys_relayer: ${JSON.stringify(toRelayer(plan))}\n`,
    layers: { layers },
    "layers as text": { layers: layers.join(",") },
    layer_map: { layer_map: pairs.map(([i, j]) => `${i}..${j - 1}`).join(",") },
    "layer_map of pairs": { layer_map: pairs },
    layer_replication: { layer_replication: pairs },
    "spec in an object": { spec },
    "RYS's result": { idx: 3, layers, spec, key: layers.length === 2 ? undefined : layers },
  };
  if (parsed.kind === "spec") {
    const blocks = (form: (run: LayerRun) => unknown) =>
      parsed.blocks.flatMap((run) => Array(run.repeatCount - 1).fill(form(run)));
    const twos = blocks(({ repeatStart: i, repeatEnd: j }) => [i, j]);
    forms["blocks"] = { blocks: twos };
    forms["blocks as YAML"] = `# found by search\nblocks: ${JSON.stringify(twos)}\n`;
    forms["blocks as text"] = { blocks: spec };
    forms["RYS's pairs"] = twos.map((two) => `(${two})`).join(";");
    if (twos.length === 1) forms["key"] = { key: twos[0] as number[] };
  }
  return forms;
}
