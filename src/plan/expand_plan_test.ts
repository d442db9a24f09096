import { assertEquals, assertThrows } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";
import { planSeams } from "./plan_seams.ts";
import { parsePlan } from "./parse_plan.ts";
import type { Plan } from "./types.ts";
import { planToJson } from "./plan_json.ts";
import { between, pick, rewriteExpand, seeded, type TestBlock } from "./_testing.ts";

function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i);
}

const SIZES: [spec: string, nLayerEff: number, seams: number[]][] = [
  ["33,34", 65, [34]],
  ["31,34", 67, [34]],
  ["30,35", 69, [35]],
  ["26,34", 72, [34]],
  ["24,35", 75, [35]],
  ["29,34", 69, [34]],
  ["43,45;28,34", 72, [34, 51]],
  ["none", 64, []],
];

for (const [spec, nLayerEff, seams] of SIZES) {
  Deno.test(`expandPlan() makes ${nLayerEff} of 64 layers with ${spec}`, () => {
    const plan = expandPlan(spec, 64);
    assertEquals(plan.nLayerEff, nLayerEff);
    assertEquals(plan.layers.length, nLayerEff);
    assertEquals(plan.seams, seams);
    assertEquals(plan.spec, spec);
  });
}

Deno.test("expandPlan() runs a block's second pass right after its first", () => {
  const { layers } = expandPlan("26,34", 64);
  assertEquals(layers.slice(32, 36), [32, 33, 26, 27]);
  assertEquals(layers.slice(34, 42), [26, 27, 28, 29, 30, 31, 32, 33]);
  assertEquals(layers.slice(42), upTo(64).slice(34));
});

Deno.test("expandPlan() applies blocks one after another", () => {
  assertEquals(expandPlan("3,6;4,6", 8).layers, [0, 1, 2, 3, 4, 5, 3, 4, 5, 4, 5, 6, 7]);
  assertEquals(expandPlan("4,6;3,6", 8).layers, [0, 1, 2, 3, 4, 5, 4, 5, 3, 4, 5, 6, 7]);
  const thrice = [...upTo(34), 30, 31, 32, 33, 30, 31, 32, 33, ...upTo(64).slice(34)];
  assertEquals(expandPlan("30,34;30,34", 64).layers, thrice);
  assertEquals(expandPlan("30,34x2", 64).layers, thrice);
});

Deno.test("expandPlan() does disjoint blocks in any order", () => {
  assertEquals(expandPlan("43,45;28,34", 64).layers, expandPlan("28,34;43,45", 64).layers);
});

Deno.test("expandPlan() takes a path as it is, skips and reorders included", () => {
  const plan = expandPlan("layers:0,2,1,5", 8);
  assertEquals(plan.layers, [0, 2, 1, 5]);
  assertEquals(plan.seams, [1, 2, 3]);
});

Deno.test("expandPlan() agrees with string rewriting on random specs", () => {
  const random = seeded(7);
  for (let n = 0; n < 600; n++) {
    const nLayer = between(random, 1, 80);
    const blocks: TestBlock[] = Array.from({ length: between(random, 1, 5) }, () => {
      const i = between(random, 0, nLayer - 1);
      return {
        i,
        j: between(random, i + 1, Math.min(nLayer, i + 12)),
        times: between(random, 1, 4),
      };
    });
    const spec = blocks.map(({ i, j, times }) => {
      const body = pick(random, [`${i},${j}`, `${i}-${j}`, `${i} .. ${j - 1}`]);
      return body + (times > 1 || random() < 0.2 ? ` x ${times}` : "");
    }).join(pick(random, [";", " ; "]));
    const expected = rewriteExpand(nLayer, blocks);
    const plan = expandPlan(spec, nLayer);
    assertEquals(plan.layers, expected, spec);
    assertEquals(plan, { ...expandPlan(parsePlan(spec), nLayer) }, spec);
    assertEquals(plan.seams, planSeams(expected));
  }
});

Deno.test("expandPlan() gives a plan object the same answer as its text", () => {
  for (
    const [spec, message] of [
      [
        "60,70",
        `Cannot use layer spec "60,70": layer 60 at position 0 is out of range: the model has layers 0..39`,
      ],
      [
        "layers:0..3, 50",
        `Cannot use layer spec "layers:0..3, 50": layer 50 at position 13 is out of range: the model has layers 0..39`,
      ],
    ] as const
  ) {
    for (const plan of [spec, parsePlan(spec)]) {
      assertEquals(assertThrows(() => expandPlan(plan, 40), RangeError).message, message);
    }
  }
});

Deno.test("expandPlan() checks plans that were made by hand", () => {
  const spec = "by hand";
  const block = (repeatStart: number, repeatEnd: number, repeatCount: number): Plan => ({
    kind: "spec",
    spec,
    blocks: [{ repeatStart, repeatEnd, repeatCount }],
  });
  assertThrows(() => expandPlan(block(1, 2, 1), 8), RangeError, "repeat count 0 is below 1");
  assertThrows(() => expandPlan(block(1, 9, 2), 8), RangeError, "the end 9 is out of range");
  assertThrows(() => expandPlan(block(1.5, 2, 2), 8), TypeError);
  assertThrows(() => expandPlan(block(-1, 2, 2), 8), TypeError);
  assertThrows(() => expandPlan(block(0, 1, 2 ** 32), 8), RangeError, "512 is the most");
  assertThrows(() => expandPlan({ kind: "path", spec, layers: [] }, 8), RangeError);
  assertThrows(
    () => expandPlan({ kind: "path", spec, layers: [1] }, 8),
    RangeError,
    "must begin with layer 0",
  );
});

Deno.test("expandPlan() refuses models of no possible size", () => {
  for (const nLayer of [0, -1, 1.5, NaN, 513, Infinity]) {
    assertThrows(() => expandPlan("none", nLayer), RangeError, "A model has 1 to 512 layers");
  }
  assertThrows(() => expandPlan("none", 510, { nextn: 3 }), RangeError, "0 to 2 next-token layers");
  assertEquals(expandPlan("0,256", 256).nLayerEff, 512);
  assertThrows(
    () => expandPlan("0,256", 256, { nextn: 1 }),
    RangeError,
    "512 layers and 1 next-token layers",
  );
});

Deno.test("planToJson() has the shape that the command line prints", () => {
  assertEquals(
    JSON.stringify(planToJson(expandPlan("26,34", 64))),
    `{"n_layer":64,"n_layer_eff":72,"spec":"26,34","layers":[${[
      ...upTo(34),
      ...upTo(34).slice(26),
      ...upTo(64).slice(34),
    ]}],` +
      `"runs":[{"repeat_start":0,"repeat_end":26,"repeat_count":1},{"repeat_start":26,"repeat_end":34,"repeat_count":2},` +
      `{"repeat_start":34,"repeat_end":64,"repeat_count":1}],"seams":[34],"advisories":[]}`,
  );
});
