import { assertEquals, assertThrows } from "@std/assert";
import { readPlan, readPlanText } from "./read_plan.ts";
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

Deno.test("readPlan() reads the forms that others write", () => {
  const layersOf = (value: unknown, nLayer = 40) =>
    expandPlan(readPlan(value, { nLayer }), nLayer).layers;
  const range = (i: number, j: number) => Array.from({ length: j - i }, (_, k) => i + k);
  const block = expandPlan("33,36", 40).layers;
  const stacked = [...range(0, 14), ...range(10, 40)];
  const FORMS: [value: unknown, layers: readonly number[]][] = [
    ["(33,36)", block],
    ["(33, 36)", block],
    ["0,0", range(0, 40)],
    [{ key: [33, 36] }, block],
    [{ key: "(33, 36)" }, block],
    [{ key: [0, 0] }, range(0, 40)],
    ['{"key": [33, 36]}', block],
    [{ spec: "blocks:33,36" }, block],
    ['{"spec": "blocks:33,36"}', block],
    ["spec: blocks:33,36\n", block],
    ["spec: (33,36)\nscore: 0.3\n", block],
    ["blocks: |\n  33,36\n", block],
    ["blocks: >-\n  33,36;\n  1,2\n", expandPlan("33,36;1,2", 40).layers],
    [[[0, 14], [10, 40]], stacked],
    ["[[0, 14], [10, 40]]", stacked],
    ["- [0, 14]\n- [10, 40]\n", stacked],
    [{ layer_map: [[0, 14], [10, 40]] }, stacked],
    [{ layer_map: "0..13,10..39" }, stacked],
    ["layer_map: 0..13,10..39", stacked],
    ["layer_map: [0, 1, 1, 2]", [0, 1, 1, 2]],
    ["0..13,10..39", stacked],
    [{ layer_replication: [[0, 14], [10, 40]] }, stacked],
    [{ layers: [[0, 14], [10, 40]] }, stacked],
    ["x: &a [0, 1, 1]\nlayers: *a\n", [0, 1, 1]],
    ["%YAML 1.2\n---\nlayers: [0,\n  1, 1]\n", [0, 1, 1]],
    [{ layers: [0, 1, 1], spec: "some prose" }, [0, 1, 1]],
    [
      "modules:\n  text_decoder:\n    slices:\n    - sources: [{model: {model: {path: a/b}}, layer_range: [0, 14]}]\n" +
      "    - sources: [{model: {model: {path: a/b}}, layer_range: [10, 40]}]\n",
      stacked,
    ],
  ];
  for (const [value, layers] of FORMS) assertEquals(layersOf(value), layers, JSON.stringify(value));
});

Deno.test("readPlan() says what would be right", () => {
  const HINTS: [value: unknown, Class: ErrorConstructor, message: string][] = [
    [[33, 36], RangeError, 'a block to repeat is written "33,36"'],
    [[[33, 36]], RangeError, 'a block to repeat is written "33,36"'],
    [
      [[0, 4], [6, 6]],
      RangeError,
      "layers[1] [6, 6] is empty or reversed: a range ends before its second number",
    ],
    [
      [[0, 4], [3]],
      TypeError,
      "layers[1] must be two numbers, the first layer and the one after the last",
    ],
    [[[0, 4], 3], TypeError, "layers[1] must be two numbers"],
    [{ layer_map: "0..3,2.." }, SyntaxError, "the last layer has to be named"],
    [[{ key: [1, 2] }, { key: [2, 3] }], TypeError, "a list of 2 objects, and a plan is one"],
    [{ models: [] }, TypeError, '"models" merges weights'],
    [{ merge_method: "slerp", models: [] }, TypeError, "other methods change weights"],
    [{ layers: [0, 1, 2, 3], key: [1, 2] }, TypeError, '"layers" and "key" are different plans'],
    [{ layers: [0, 1, 2, 3], spec: "1,9" }, RangeError, "the end 9"],
    [{ n_layer: 5, layers: [0, 1] }, RangeError, "for a model of 5 layers, and this one has 4"],
    [{ kind: "spec", spec: "1,2" }, TypeError, 'A plan of kind "spec" needs blocks'],
    [{ kind: "other", spec: "1,2" }, TypeError, 'kind must be "none", "spec" or "path"'],
    ["{layers: [0, 1}", SyntaxError, "Cannot parse YAML"],
  ];
  for (const [value, Class, message] of HINTS) {
    assertThrows(() => readPlan(value, { nLayer: 4 }), Class, message);
  }
});

Deno.test("readPlanText() reads text once, with or without a model", () => {
  assertEquals<unknown>(readPlanText("1,2"), readPlan("1,2"));
  assertEquals(readPlanText('{"layers": [0, 1]}'), { layers: [0, 1] });
  assertThrows(() => readPlanText("blocks: [[34, 26]]"), RangeError, "is reversed");
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
