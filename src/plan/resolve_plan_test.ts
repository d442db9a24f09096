import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";
import { parsePlan } from "./parse_plan.ts";
import { resolvePlan } from "./resolve_plan.ts";
import { formsOf, randomPlan, seeded } from "./_testing.ts";

Deno.test("resolvePlan() says what expandPlan() says, for random plans in every form", () => {
  const random = seeded(17);
  for (let n = 0; n < 200; n++) {
    const plan = randomPlan(random, 12, 512);
    for (const [form, input] of Object.entries(formsOf(plan))) {
      const got = resolvePlan(input, { nLayer: 12, nextn: 1 });
      assertEquals([got.layers, got.runs, got.seams], [plan.layers, plan.runs, plan.seams], form);
      // Its text is one that leads to the same layers, whatever came with the input.
      assertEquals(expandPlan(got.spec, 12).layers, plan.layers, `${form}: ${got.spec}`);
    }
  }
});

Deno.test("resolvePlan() runs a plan's blocks and layers, not its text", () => {
  const block = { repeatStart: 1, repeatEnd: 3, repeatCount: 2 };
  const spec = resolvePlan({ kind: "spec", spec: "26,34", blocks: [block] }, { nLayer: 40 });
  assertEquals(spec.layers, expandPlan("1,3", 40).layers);
  assertEquals(spec.spec, "1,3");
  const path = resolvePlan({ kind: "path", spec: "", layers: [0, 1, 2, 3] }, { nLayer: 40 });
  assertEquals([path.layers, path.spec], [[0, 1, 2, 3], "layers:0..3"]);
});

Deno.test("resolvePlan() takes what it made without a second look, and nobody can change it", () => {
  const plan = resolvePlan("1,3", { nLayer: 8 });
  assertStrictEquals(resolvePlan(plan, { nLayer: 8 }), plan);
  assertStrictEquals(expandPlan(parsePlan("1,3"), 8).nLayer, 8);
  for (const part of [plan, plan.layers, plan.runs, plan.runs[0]!, plan.seams, plan.advisories]) {
    assert(Object.isFrozen(part));
  }
});

Deno.test("resolvePlan() refuses the plan of another model", () => {
  const plan = resolvePlan("1,3", { nLayer: 8 });
  const message = "The plan is for a model of 8 layers, and this one has 9";
  assertThrows(() => resolvePlan(plan, { nLayer: 9 }), RangeError, message);
  assertThrows(() => resolvePlan({ ...plan }, { nLayer: 9 }), RangeError, message);
  assertThrows(
    () => resolvePlan(resolvePlan("0,256", { nLayer: 256 }), { nLayer: 256, nextn: 1 }),
    RangeError,
    "512 is the most",
  );
});

Deno.test("resolvePlan() takes the file's own plan where none is given", () => {
  assertEquals(resolvePlan(undefined, { nLayer: 4, layerPlan: "1,2" }).nLayerEff, 5);
  assertEquals(resolvePlan(undefined, { nLayer: 4, layerPlan: "" }).nLayerEff, 4);
  assertEquals(resolvePlan("none", { nLayer: 4, layerPlan: "1,2" }).nLayerEff, 4);
});
