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
    "slices[0].sources must be a list of one source",
  ],
  [
    "two models",
    {
      slices: [{ sources: [{ model: "a", layer_range: [0, 1] }] }, {
        sources: [{ model: "b", layer_range: [0, 1] }],
      }],
    },
    TypeError,
    `slices[1] takes layers from "b"`,
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
  ["a text for a range", slices("0-4"), TypeError, "must be two numbers"],
  [
    "a text in a range",
    slices("[0, x]"),
    TypeError,
    `layer_range[1] must be a whole number, not "x"`,
  ],
  ["a fraction", slices("[0, 1.5]"), TypeError, "must be a whole number"],
  ["a reversed range", slices("[4, 2]"), RangeError, "is empty or reversed"],
  ["a negative layer", slices("[-1, 2]"), RangeError, "is empty or reversed"],
  ["a late start", slices("[1, 2]"), RangeError, "must begin with layer 0"],
  [
    "a layer that is not there",
    slices("[0, 9]"),
    RangeError,
    "layer 8 is out of range: the model has layers 0..7",
  ],
  ["too many layers", slices("[0, 4294967295]"), RangeError, "out of range"],
  ["a tab", "slices:\n\t- 1", SyntaxError, "a tab in the indentation in line 2"],
  ["an anchor", "slices: &a [1]", SyntaxError, "no value that is supported"],
  ["a block scalar", "slices: |\n  x", SyntaxError, "no value that is supported"],
  ["an open list", "slices: [1, 2", SyntaxError, "in line 1"],
  ["an open text", 'slices: "abc', SyntaxError, "a quoted text without an end"],
  ["a repeated key", "a: 1\na: 2", SyntaxError, `a second "a" in line 2`],
  ["deep nesting", `slices: ${"[".repeat(10_000)}`, SyntaxError, "too deep a nesting"],
  ["deep dashes", "- ".repeat(10_000) + "1", SyntaxError, "too deep a nesting"],
  ["rest after the value", "slices: [1] 2", SyntaxError, "unexpected"],
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
