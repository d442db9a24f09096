import { assertEquals, assertThrows } from "@std/assert";
import { readPlan } from "./read_plan.ts";
import { expandPlan } from "./expand_plan.ts";
import { toMergekit } from "./mergekit.ts";
import { toRelayer } from "./relayer.ts";

Deno.test("readPlan() reads every form as the same plan", () => {
  const plan = expandPlan("1,3", 4);
  for (
    const form of [
      "1,3",
      "blocks:1,3",
      "layers:0..2,1..3",
      plan.layers,
      { layers: plan.layers },
      { layers: "0,1,2,1,2,3" },
      { layers: "layers:0..2,1..3" },
      { blocks: "1,3" },
      { blocks: "blocks:1,3" },
      { blocks: [[1, 3]] },
      toMergekit(plan.layers, { model: "m" }),
      {
        slices: [{ sources: [{ model: "m", layer_range: [0, 3] }] }, {
          sources: [{ model: "m", layer_range: [1, 4] }],
        }],
      },
      toRelayer(plan),
      { rys_relayer: toRelayer(plan) },
    ]
  ) {
    assertEquals(
      expandPlan(readPlan(form, { nLayer: 4 }), 4).layers,
      plan.layers,
      JSON.stringify(form),
    );
  }
});

Deno.test("readPlan() refuses other shapes", () => {
  for (
    const form of [
      null,
      undefined,
      1,
      true,
      {},
      { layers: 1 },
      { blocks: [1] },
      { blocks: [[1, "2"]] },
      ["0"],
      [0, null],
    ]
  ) {
    assertThrows(() => readPlan(form), TypeError);
  }
  assertThrows(() => readPlan([]), RangeError);
  assertThrows(() => readPlan([0, -1]), RangeError, "layers[1] is -1");
  assertThrows(() => readPlan([0, 4], { nLayer: 4 }), RangeError, "layer 4 is out of range");
  assertThrows(() => readPlan(Array(1e6).fill(0)), RangeError);
  assertThrows(() => readPlan({ blocks: [[3, 1]] }), RangeError, "is reversed");
  assertThrows(() => readPlan({ blocks: [[-3, 1]] }), SyntaxError);
});

Deno.test("readPlan() reads YAML like the same JSON", () => {
  const plan = readPlan({ blocks: [[26, 34], [10, 12]] });
  for (
    const text of [
      "blocks: [[26,34],[10,12]]",
      "# found by search\nblocks:\n  - [26, 34]\n  - [10, 12]\n",
      "blocks:\n- - 26\n  - 34\n- [10, 12]",
      "model: some/model\nblocks: 26,34;10,12\n",
      'blocks: "26,34;10,12"',
    ]
  ) {
    assertEquals(
      expandPlan(readPlan(text), 40).layers,
      expandPlan(plan, 40).layers,
      text,
    );
  }
  assertEquals(readPlan("layers: [0, 1, 1, 2]\n"), readPlan([0, 1, 1, 2]));
  assertEquals(readPlan("name: x\nlayers: 0..1,1..2\n").kind, "path");
  assertEquals(
    readPlan("rys_relayer:\n  source_num_layers: 3\n  layer_indices: [0, 1, 1, 2]\n"),
    readPlan([0, 1, 1, 2]),
  );
});

Deno.test("readPlan() keeps the grammar's prefixes apart from YAML", () => {
  for (const text of ["layers:0,1,1", "layers: 0,1,1", "blocks:1,2", "blocks: 1,2"]) {
    assertEquals(readPlan(text).spec, text);
  }
  assertThrows(() => readPlan("blocks: [[34, 26]]"), RangeError, "is reversed");
  assertThrows(() => readPlan("blocks: [[26, 34]"), SyntaxError, "YAML");
});
