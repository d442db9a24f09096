import { assertEquals } from "@std/assert";
import { expandPlan } from "../../plan/mod.ts";
import {
  alignLines,
  formatBytes,
  formatRuns,
  formatSeams,
  layerBar,
  planLines,
} from "./plan_text.ts";
import { styles } from "./shell.ts";

const plain = styles(false);

Deno.test("formatBytes() picks the unit", () => {
  assertEquals(formatBytes(0), "0 B");
  assertEquals(formatBytes(1023), "1023 B");
  assertEquals(formatBytes(1536), "1.50 KiB");
  assertEquals(formatBytes(20 * 2 ** 20), "20.0 MiB");
  assertEquals(formatBytes(300 * 2 ** 30), "300 GiB");
});

Deno.test("formatRuns() writes ranges with their passes", () => {
  assertEquals(formatRuns(expandPlan("26,34", 64).runs), "0..25 | 26..33 x2 | 34..63");
  assertEquals(formatRuns(expandPlan("33,34", 64).runs), "0..32 | 33 x2 | 34..63");
  assertEquals(formatRuns(expandPlan("none", 64).runs), "0..63");
});

Deno.test("formatSeams() says from which layer to which", () => {
  assertEquals(formatSeams(expandPlan("26,34", 64)), "34 (33 -> 26)");
  assertEquals(formatSeams(expandPlan("none", 64)), "none");
  assertEquals(formatSeams(expandPlan("1,2x9", 8), 2), "2 (1 -> 1), 3 (1 -> 1) and 7 more");
});

Deno.test("layerBar() marks passes and seams", () => {
  assertEquals(layerBar(expandPlan("1,3", 5), plain), ["0 ·11|22··"]);
  assertEquals(layerBar(expandPlan("1,2x2", 4), plain, 4), ["0 ·1|2|3", "4 ··"]);
  assertEquals(layerBar(expandPlan("1,2x10", 3), plain), [
    " 0 ·1|2|3|4|5|6|7|8|9|+|+·",
  ]);
});

Deno.test("planLines() tells costs with and without the plan", () => {
  const memory = {
    nLayerEff: 10,
    kBytes: 500,
    vBytes: 500,
    kvBytes: 1000,
    windowKvBytes: 0,
    largestKvBytes: 50,
    recurrentBytes: 0,
    nKvLayers: 10,
    nWindowKvLayers: 0,
    nRecurrentLayers: 0,
  };
  const cost = {
    nCtx: 512,
    nCtxSeq: 512,
    nCtxSwa: 0,
    base: memory,
    plan: { ...memory, kvBytes: 1200 },
    computeRatio: 1.2,
    inexact: [],
  };
  const text = alignLines(planLines(expandPlan("1,3", 10), cost), plain);
  assertEquals(
    text,
    `n_layer     = 10
n_layer_eff = 12
plan        = 1,3: 0 | 1..2 x2 | 3..9
seam        = 3 (2 -> 1)
kv cache    = 1.17 KiB (without the plan 1000 B, +20.0 %) for 512 tokens
recurrent   = 0 B
compute     = x1.20 per token
`,
  );
});

Deno.test("planLines() divides the cache where some layers attend to a window", () => {
  const memory = {
    nLayerEff: 10,
    kBytes: 500,
    vBytes: 500,
    kvBytes: 1000,
    windowKvBytes: 600,
    largestKvBytes: 100,
    recurrentBytes: 0,
    nKvLayers: 10,
    nWindowKvLayers: 8,
    nRecurrentLayers: 0,
  };
  const cost = {
    nCtx: 512,
    nCtxSeq: 512,
    nCtxSwa: 256,
    base: memory,
    plan: { ...memory, kvBytes: 1200, windowKvBytes: 700, nWindowKvLayers: 9, nKvLayers: 12 },
    computeRatio: 1.2,
    inexact: [],
  };
  const lines = Object.fromEntries(planLines(expandPlan("1,3", 10), cost));
  assertEquals(lines["  attention"], "500 B (without the plan 400 B, +25.0 %) in 3 layers");
  assertEquals(
    lines["  windows"],
    "700 B (without the plan 600 B, +16.7 %) in 9 layers of 256 cells",
  );
});
