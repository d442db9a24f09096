import { assertEquals, assertThrows } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";
import { layersToRuns, runsToLayers } from "./layers_to_runs.ts";
import { between, seeded } from "./_testing.ts";

function coded(layers: readonly number[]): string {
  return layersToRuns(layers).map((r) => `${r.repeatStart},${r.repeatEnd}x${r.repeatCount}`).join(
    " ",
  );
}

Deno.test("layersToRuns() follows its rule", () => {
  assertEquals(coded([]), "");
  assertEquals(coded([0]), "0,1x1");
  assertEquals(coded([0, 1, 2, 3]), "0,4x1");
  assertEquals(coded([0, 1, 1, 1, 2]), "0,1x1 1,2x3 2,3x1");
  assertEquals(coded([0, 0]), "0,1x2");
  assertEquals(coded([0, 1, 2, 1, 2, 1, 2, 3]), "0,1x1 1,3x3 3,4x1");
  assertEquals(coded([0, 1, 2, 3, 1, 2, 5]), "0,4x1 1,3x1 5,6x1");
  assertEquals(coded([0, 1, 2, 3, 4, 5, 3, 4, 5, 4, 5, 6, 7]), "0,3x1 3,6x2 4,8x1");
  assertEquals(coded([0, 5, 3, 4, 3, 4]), "0,1x1 5,6x1 3,5x2");
  assertEquals(coded(expandPlan("26,34", 64).layers), "0,26x1 26,34x2 34,64x1");
  assertEquals(
    coded(expandPlan("43,45;28,34", 64).layers),
    "0,28x1 28,34x2 34,43x1 43,45x2 45,64x1",
  );
});

Deno.test("runsToLayers() gives random paths back", () => {
  const random = seeded(3);
  for (let n = 0; n < 800; n++) {
    const layers: number[] = [];
    for (let k = between(random, 0, 12); k > 0; k--) {
      const start = between(random, 0, 9);
      const end = between(random, start, start + 4);
      for (let passes = between(random, 1, 3); passes > 0; passes--) {
        for (let il = start; il <= end; il++) layers.push(il);
      }
    }
    const runs = layersToRuns(layers);
    assertEquals(runsToLayers(runs), layers);
    assertEquals(layersToRuns(runsToLayers(runs)), runs);
  }
});

Deno.test("runsToLayers() refuses before it allocates", () => {
  const run = (
    repeatStart: number,
    repeatEnd: number,
    repeatCount: number,
  ) => [{ repeatStart, repeatEnd, repeatCount }];
  assertThrows(() => runsToLayers(run(0, 4294967295, 1)), RangeError, "more than 512");
  assertThrows(() => runsToLayers(run(0, 1, 4294967295)), RangeError, "more than 512");
  assertThrows(() => runsToLayers(run(3, 3, 1)), RangeError, "empty");
  assertThrows(() => runsToLayers(run(4, 3, 1)), RangeError, "empty");
  assertThrows(() => runsToLayers(run(0, 3, 0)), RangeError, "empty");
  assertThrows(() => runsToLayers(run(0, 3, NaN)), RangeError, "empty");
});
