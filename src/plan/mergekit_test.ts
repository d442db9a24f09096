import { assertEquals, assertThrows } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";
import { fromMergekit, toMergekit } from "./mergekit.ts";
import { between, pick, seeded } from "./_testing.ts";

Deno.test("fromMergekit() reads the styles that recipes are written in", () => {
  const expected = [0, 1, 2, 3, 2, 3, 4, 5];
  for (
    const recipe of [
      "slices:\n- sources:\n  - model: a/b\n    layer_range: [0, 4]\n- sources:\n  - layer_range: [2, 6]\n    model: a/b\nmerge_method: passthrough\ndtype: float16\n",
      "# a comment\n---\nmerge_method: passthrough # why\nslices:\n  -\n    sources:\n      -\n        model: 'a/b'\n        layer_range:\n          - 0\n          - 4\n\n  - sources: [{model: \"a/b\", layer_range: [2,6]}]\n",
      "slices: [{sources: [{model: a/b, layer_range: [0, 4]}]}, {sources: [{model: a/b, layer_range: [2, 6], parameters: {scale: 1.0}}]}]",
      "\uFEFFslices:\r\n  - sources:\r\n      - model: a/b#main\r\n        layer_range: [0, 4]\r\n  - sources:\r\n      - model: a/b#main\r\n        layer_range: [2, 6]\r\n",
    ]
  ) {
    const plan = fromMergekit(recipe, { nLayer: 6 });
    assertEquals(plan, { kind: "path", spec: "layers:0..3,2..5", layers: expected });
  }
});

Deno.test("fromMergekit() takes a parsed recipe", () => {
  const slice = (a: number, b: number) => ({ sources: [{ model: "m", layer_range: [a, b] }] });
  assertEquals(fromMergekit({ slices: [slice(0, 2), slice(1, 3)] }).layers, [0, 1, 1, 2]);
});

Deno.test("toMergekit() round trips random plans", () => {
  const random = seeded(5);
  for (let n = 0; n < 200; n++) {
    const i = between(random, 0, 30);
    const j = between(random, i + 1, 40);
    const { layers } = expandPlan(
      `${i},${j}x${between(random, 1, 3)};${pick(random, ["3,6", "0,1", "30,40x2"])}`,
      40,
    );
    const model = pick(random, ["a/b", "C:\\models\\it's # here", "ünïcode: yes", "- x", "[a]"]);
    assertEquals(fromMergekit(toMergekit(layers, { model }), { nLayer: 40 }).layers, layers);
  }
});

Deno.test("toMergekit() leaves a model that it does not know to be named", () => {
  const recipe = toMergekit([0, 1, 1]);
  assertEquals(
    recipe,
    "# Write the model's folder or repository, as mergekit is to find it, in place of null.\n" +
      "merge_method: passthrough\ndtype: bfloat16\nslices:\n" +
      "  - sources:\n      - model: null\n        layer_range: [0, 2]\n" +
      "  - sources:\n      - model: null\n        layer_range: [1, 2]\n",
  );
  assertEquals(fromMergekit(recipe).layers, [0, 1, 1]);
});

Deno.test("fromMergekit() reads all of YAML", () => {
  for (
    const recipe of [
      // An anchor, an alias and a merge key.
      "base: &s\n  model: a/b\nslices:\n  - sources:\n      - <<: *s\n        layer_range: &r [0, 4]\n  - sources:\n      - {<<: *s, layer_range: [2, 6]}\n",
      // Flow collections on several lines, a block scalar, a directive.
      "%YAML 1.2\n---\nnotes: |\n  two\n  lines: [\nslices: [\n  {sources: [\n    {model: a/b,\n     layer_range: [0,\n  4]}]},\n  {sources: [{model: a/b, layer_range: [2, 6]}]}]\n...\n",
      // Lines of a flow collection that are not indented, which mergekit's reader takes.
      "slices: [\n{sources: [{model: a/b, layer_range: [0, 4]}]},\n{sources: [\n{model: a/b, layer_range: [\n2, 6\n]\n}\n]}\n]\nmerge_method: passthrough\n",
      'merge_method: >-\n  passthrough\nslices:\n- sources: [{model: a/b, layer_range: [0, 0x4]}]\n- sources: [{model: "a\\x2fb", layer_range: [2, 6]}]\n',
    ]
  ) {
    const plan = fromMergekit(recipe, { nLayer: 6 });
    assertEquals(plan.layers, [0, 1, 2, 3, 2, 3, 4, 5], recipe);
  }
});

Deno.test("fromMergekit() reads modules, models by mapping, and scales of 1", () => {
  const slice = (range: number[], more: object = {}, model: unknown = "a/b") => ({
    sources: [{ model, layer_range: range, ...more }],
  });
  const slices = [slice([0, 2]), slice([1, 3])];
  for (
    const recipe of [
      { slices },
      { modules: { text_decoder: { slices } } },
      { modules: { decoder: { slices } } },
      { modules: { text_decoder: { slices }, vision: { slices: [slice([0, 9])] } } },
      {
        slices: [slice([0, 2], {}, { model: { path: "a/b" } }), slice([1, 3], {}, { path: "a/b" })],
      },
      { slices: [slice([0, 2], { parameters: { scale: [{ value: 1.0 }] } }), slice([1, 3])] },
      {
        slices: [
          slice([0, 2], {
            parameters: { scale: [{ filter: "o_proj", value: 1 }, { value: [1, 1] }] },
          }),
          slice([1, 3], { parameters: { scale: [1, 1] } }),
        ],
      },
    ]
  ) {
    assertEquals(fromMergekit(recipe, { nLayer: 3 }).layers, [0, 1, 1, 2], JSON.stringify(recipe));
  }
});

const slices = (body: string) =>
  `slices:\n  - sources:\n      - model: m\n        layer_range: ${body}\n`;
const BAD: [what: string, recipe: string | object, Class: ErrorConstructor, message: string][] = [
  ["an empty text", "", SyntaxError, "it is empty"],
  ["a list", "- 1", TypeError, "is a mapping"],
  ["another merge method", "merge_method: slerp\nslices: []", TypeError, `merge_method "slerp"`],
  ["no slices", "merge_method: passthrough", TypeError, "needs slices"],
  [
    "two sources",
    { slices: [{ sources: [{}, {}] }] },
    TypeError,
    "slices[0].sources must be a list of one source, not a list of 2: mergekit takes one source per slice here",
  ],
  [
    "two models",
    {
      slices: [{ sources: [{ model: "a", layer_range: [0, 1] }] }, {
        sources: [{ model: "b", layer_range: [0, 1] }],
      }],
    },
    TypeError,
    `slices[1] takes layers from "b", slices before it from "a"`,
  ],
  [
    "a scale",
    slices("[0, 4]\n        parameters:\n          scale: 0.5"),
    TypeError,
    "scale is not 1",
  ],
  [
    "a filtered scale",
    slices(
      "[0, 4]\n        parameters:\n          scale:\n            - filter: o_proj\n              value: 0",
    ),
    TypeError,
    "scale is not 1",
  ],
  [
    "a scale by the tensor's name",
    {
      slices: [{
        sources: [{
          layer_range: [0, 4],
          parameters: { scale: [{ filter: "o_proj", value: 0.5 }, { value: 1 }] },
        }],
      }],
    },
    TypeError,
    "sources[0].parameters.scale is not 1 but 0.5",
  ],
  [
    "a scale of all",
    { parameters: { scale: 2 }, slices: [] },
    TypeError,
    "parameters.scale is not 1",
  ],
  ["whole models", { models: [{ model: "a" }] }, TypeError, `"models" takes whole models`],
  [
    "modules that repeat other layers",
    { modules: { text_decoder: { slices: [1] }, vision: { slices: [1, 2] } } },
    TypeError,
    "modules.vision has 2 slices",
  ],
  [
    "modules without a text decoder",
    { modules: { audio: {}, vision: {} } },
    TypeError,
    "not audio, vision",
  ],
  [
    "an adapter",
    { slices: [{ sources: [{ model: { model: "a", lora: "b" }, layer_range: [0, 4] }] }] },
    TypeError,
    "sources[0].model.lora merges an adapter",
  ],
  ["a text for a range", slices("0-4"), TypeError, "must be two numbers"],
  [
    "a text in a range",
    slices("[0, x]"),
    TypeError,
    `layer_range[1] must be a whole number, not "x"`,
  ],
  ["a fraction", slices("[0, 1.5]"), TypeError, "must be a whole number"],
  ["a reversed range", slices("[4, 2]"), RangeError, "ranges end before the second number"],
  ["a negative layer", slices("[-1, 2]"), RangeError, "is empty or reversed"],
  ["a late start", slices("[1, 2]"), RangeError, "must begin with layer 0"],
  [
    "a layer that is not there",
    slices("[0, 9]"),
    RangeError,
    "layer 8 is out of range: the model has layers 0..7",
  ],
  ["too many layers", slices("[0, 4294967295]"), RangeError, "out of range"],
  [
    "a tab",
    "slices:\n\t- 1",
    SyntaxError,
    "tab characters must not be used in indentation at line 2",
  ],
  ["an alias of nothing", "slices: *a", SyntaxError, 'unidentified alias "a" at line 1, column 10'],
  [
    "a tag that nobody knows",
    "slices: !x [1]",
    SyntaxError,
    "unknown sequence tag !<!x> at line 1",
  ],
  ["a block scalar", "slices: |\n  x", TypeError, "needs slices, a list"],
  ["an open list", "slices: [1, 2", SyntaxError, "at line 1"],
  ["an open text", 'slices: "abc', SyntaxError, "at line 1"],
  ["a repeated key", "a: 1\na: 2", SyntaxError, "duplicated mapping key at line 2"],
  ["several documents", "slices: []\n---\nslices: []", SyntaxError, "it has several documents"],
  ["deep nesting", `slices: ${"[".repeat(10_000)}`, SyntaxError, "nesting exceeded maxDepth"],
  ["deep dashes", "- ".repeat(10_000) + "1", SyntaxError, "nesting exceeded maxDepth"],
  ["rest after the value", "slices: [1] 2", SyntaxError, "at line 1"],
  [
    "aliases that grow without end",
    "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" +
    [..."bcdefgh"].map((c, i) => `${c}: &${c} [${`*${"abcdefgh"[i]}, `.repeat(9)}]\n`).join("") +
    "slices: *h\n",
    TypeError,
    "slices[0] must be a mapping with sources, not an array",
  ],
];

for (const [what, recipe, Class, message] of BAD) {
  Deno.test(`fromMergekit() refuses ${what}`, () => {
    assertThrows(() => fromMergekit(recipe, { nLayer: 8 }), Class, message);
  });
}

Deno.test("fromMergekit() answers damaged text with a plan or an error of its own", () => {
  const random = seeded(9);
  const good = toMergekit(expandPlan("2,5", 8).layers, { model: "a/b" });
  for (let n = 0; n < 2000; n++) {
    const chars = [...good];
    for (let k = between(random, 1, 4); k > 0; k--) {
      const at = between(random, 0, chars.length - 1);
      chars.splice(
        at,
        between(random, 0, 3),
        pick(random, ["-", ":", "[", "]", "{", " ", "\n", "#", '"', "'", "9", "é", "\t", "&", ""]),
      );
    }
    try {
      fromMergekit(chars.join(""), { nLayer: 8 });
    } catch (error) {
      if (
        !(error instanceof SyntaxError || error instanceof RangeError || error instanceof TypeError)
      ) throw error;
      if (/Cannot read|not a function|not iterable|call stack/.test(error.message)) throw error;
    }
  }
});
