import { assertEquals, assertThrows } from "@std/assert";
import { parsePlan } from "./parse_plan.ts";
import type { SpecPlan } from "./types.ts";
import { between, pick, seeded } from "./_testing.ts";

function blocksOf(spec: string): number[][] {
  const plan = parsePlan(spec);
  if (plan.kind !== "spec") throw new Error(`${spec} is ${plan.kind}`);
  return plan.blocks.map((b) => [b.repeatStart, b.repeatEnd, b.repeatCount]);
}

function layersOf(spec: string): readonly number[] {
  const plan = parsePlan(spec);
  if (plan.kind !== "path") throw new Error(`${spec} is ${plan.kind}`);
  return plan.layers;
}

Deno.test("parsePlan() reads every spelling of a block", () => {
  for (
    const spec of [
      "26,34",
      "26-34",
      "26..33",
      " 26 , 34 ",
      "26 - 34",
      "26 .. 33",
      "blocks:26,34",
      "26,34x1",
      "26,34 x 1",
      "026,34",
      "\t26,34",
    ]
  ) {
    assertEquals(blocksOf(spec), [[26, 34, 2]], spec);
  }
  assertEquals(blocksOf("0,1"), [[0, 1, 2]]);
  assertEquals(blocksOf("5..5"), [[5, 6, 2]]);
  assertEquals(blocksOf("3,6x4"), [[3, 6, 5]]);
  assertEquals(blocksOf("43,45;28,34"), [[43, 45, 2], [28, 34, 2]]);
  assertEquals(blocksOf("43..44 x2 ; 28-34"), [[43, 45, 3], [28, 34, 2]]);
});

Deno.test("parsePlan() reads paths", () => {
  assertEquals(layersOf("layers:0..3,3,4..5"), [0, 1, 2, 3, 3, 4, 5]);
  assertEquals(layersOf("layers:0,1,2,3,3,4"), [0, 1, 2, 3, 3, 4]);
  assertEquals(layersOf(" layers: 0 .. 1 , 5 , 2 "), [0, 1, 5, 2]);
  assertEquals(layersOf("layers:0"), [0]);
});

Deno.test("parsePlan() reads RYS's pairs and its baseline", () => {
  assertEquals(blocksOf("(33,36)"), [[33, 36, 2]]);
  assertEquals(blocksOf(" ( 33 , 36 ) x 2 ; (1,2)"), [[33, 36, 3], [1, 2, 2]]);
  assertEquals(blocksOf("blocks:(33,36)"), [[33, 36, 2]]);
  for (const spec of ["0,0", "(0, 0)", "blocks:0,0", " 0 , 0 "]) {
    assertEquals(parsePlan(spec), { kind: "none", spec });
  }
});

Deno.test("parsePlan() reads ExLlamaV3's layer maps", () => {
  assertEquals(layersOf("0..3,2..5"), [0, 1, 2, 3, 2, 3, 4, 5]);
  assertEquals(layersOf("0..3, 3, 4..5"), [0, 1, 2, 3, 3, 4, 5]);
  // A single range is a block, as ever.
  assertEquals(blocksOf("0..3"), [[0, 4, 2]]);
});

Deno.test("parsePlan() gives a plan that stays as it is", () => {
  const plan = parsePlan("26,34");
  assertThrows(() => Object.assign(plan, { spec: "1,2" }), TypeError);
  assertThrows(() => Object.assign((plan as SpecPlan).blocks[0]!, { repeatEnd: 40 }), TypeError);
});

Deno.test("parsePlan() reads none, and keeps the text as it was written", () => {
  assertEquals(parsePlan(" none "), { kind: "none", spec: " none " });
  assertEquals(parsePlan("3 - 5").spec, "3 - 5");
});

const SYNTAX: [spec: string, message: string][] = [
  ["33,", `Cannot parse layer spec "33,": expected a layer index after ',' at position 3`],
  [
    "",
    `Cannot parse layer spec "": expected a layer index at position 0, but it is empty; write "none" for the model's own layers`,
  ],
  [
    "  ",
    `Cannot parse layer spec "  ": expected a layer index at position 0, but it is empty; write "none" for the model's own layers`,
  ],
  ["33,34;", `Cannot parse layer spec "33,34;": expected a layer index after ';' at position 6`],
  [
    "33,34;;1,2",
    `Cannot parse layer spec "33,34;;1,2": expected a layer index after ';' at position 6, found ";"`,
  ],
  ["a,b", `Cannot parse layer spec "a,b": expected a layer index at position 0, found "a"`],
  ["-1,2", `Cannot parse layer spec "-1,2": expected a layer index at position 0, found "-"`],
  [
    "1,-2",
    `Cannot parse layer spec "1,-2": expected a layer index after ',' at position 2, found "-"`,
  ],
  ["33", `Cannot parse layer spec "33": expected ',', '-' or '..' after '33' at position 2`],
  [
    "33.34",
    `Cannot parse layer spec "33.34": expected ',', '-' or '..' after '33' at position 2, found "."`,
  ],
  [
    "3 3,34",
    `Cannot parse layer spec "3 3,34": expected ',', '-' or '..' after '3' at position 2, found "3"`,
  ],
  ["33,34x", `Cannot parse layer spec "33,34x": expected a repeat count after 'x' at position 6`],
  [
    "33,34x2x3",
    `Cannot parse layer spec "33,34x2x3": expected 'x', ';' or the end after '2' at position 7, found "x"`,
  ],
  [
    "1.5,3",
    `Cannot parse layer spec "1.5,3": expected ',', '-' or '..' after '1' at position 1, found "."`,
  ],
  [
    "33,34 35",
    `Cannot parse layer spec "33,34 35": expected 'x', ';' or the end after '34' at position 6, found "3"`,
  ],
  [
    "(33,34",
    `Cannot parse layer spec "(33,34": expected ')' after '34' at position 6`,
  ],
  [
    "(33),34",
    `Cannot parse layer spec "(33),34": expected ',', '-' or '..' after '33' at position 3, found ")"`,
  ],
  [
    "0..15,11..",
    `Cannot parse layer spec "0..15,11..": expected a layer index after '..' at position 10; the last layer has to be named`,
  ],
  [
    "３３,34",
    `Cannot parse layer spec "３３,34": expected a layer index at position 0, found "３"`,
  ],
  [
    "33,🦙",
    `Cannot parse layer spec "33,🦙": expected a layer index after ',' at position 3, found "🦙"`,
  ],
  [
    "33\n,34",
    `Cannot parse layer spec "33\\n,34": expected ',', '-' or '..' after '33' at position 2, found "\\n"`,
  ],
  ["None", `Cannot parse layer spec "None": expected a layer index at position 0, found "N"`],
  [
    "none,1",
    `Cannot parse layer spec "none,1": expected the end after 'none' at position 4, found ","`,
  ],
  [
    "layers:",
    `Cannot parse layer spec "layers:": expected a layer index after 'layers:' at position 7`,
  ],
  [
    "layers:0,,1",
    `Cannot parse layer spec "layers:0,,1": expected a layer index after ',' at position 9, found ","`,
  ],
  [
    "layers:0..",
    `Cannot parse layer spec "layers:0..": expected a layer index after '..' at position 10; the last layer has to be named`,
  ],
  [
    "layers:0;1",
    `Cannot parse layer spec "layers:0;1": expected '..', ',' or the end after '0' at position 8, found ";"`,
  ],
  [
    "blocks:",
    `Cannot parse layer spec "blocks:": expected a layer index after 'blocks:' at position 7`,
  ],
  [
    "0,1,1,2",
    `Cannot parse layer spec "0,1,1,2": expected 'x', ';' or the end after '1' at position 3, found ","; ` +
    `a list of layers is written "layers:0..33,33,34..63"`,
  ],
];

for (const [spec, message] of SYNTAX) {
  Deno.test(`parsePlan() says where ${JSON.stringify(spec)} cannot be parsed`, () => {
    assertEquals(assertThrows(() => parsePlan(spec), SyntaxError).message, message);
  });
}

const RANGE: [spec: string, nLayer: number | undefined, why: string][] = [
  ["34,33", 64, "the block 34,33 at position 0 is reversed"],
  ["33,33", 64, "the block 33,33 at position 0 is empty"],
  ["34..32", 64, "the block 34..32 at position 0 is reversed"],
  ["0,0;1,2", 64, `the block 0,0 at position 0 is empty; "none" stands for the model's own layers`],
  ["0..15,11..63", 40, "layer 63 at position 10 is out of range: the model has layers 0..39"],
  ["60,70", 40, "layer 60 at position 0 is out of range: the model has layers 0..39"],
  [
    "30,50",
    40,
    "the end 50 at position 3 is out of range: the model has layers 0..39, so a block ends at 40 or before",
  ],
  ["1,2; 30..40", 40, "layer 40 at position 9 is out of range: the model has layers 0..39"],
  ["1,2x0", 40, "the repeat count 0 at position 4 is below 1"],
  ["0,1x4294967295", 40, "it makes 4294967335 layers at position 4, and 512 is the most"],
  ["0,1x4294967295", undefined, "it makes 4294967295 layers at position 4, and 512 is the most"],
  ["0,1x4294967296", undefined, `"4294967296" at position 4 is too large a number`],
  ["0,256;0,1", 256, "it makes 513 layers at position 8, and 512 is the most"],
  [
    "600,601",
    undefined,
    "layer 600 at position 0 is out of range: no model has more than 512 layers",
  ],
  [
    "99999999999999999999999999999999,3",
    undefined,
    `"999999999999999999999999…" at position 0 is too large a number`,
  ],
  ["layers:1,2", undefined, "a path must begin with layer 0, not 1 at position 7"],
  ["layers:0,5..3", 8, "the range 5..3 at position 9 is reversed"],
  ["layers:0..7,8", 8, "layer 8 at position 12 is out of range: the model has layers 0..7"],
  ["layers:0..9", 8, "layer 9 at position 10 is out of range: the model has layers 0..7"],
  ["layers:0..4294967295", undefined, "the end"],
];

for (const [spec, nLayer, why] of RANGE) {
  Deno.test(`parsePlan() refuses ${JSON.stringify(spec)} on ${nLayer ?? "any"} layers`, () => {
    const error = assertThrows(
      () => parsePlan(spec, nLayer === undefined ? {} : { nLayer }),
      RangeError,
    );
    const expected = `Cannot use layer spec ${JSON.stringify(spec)}: ${why}`;
    if (why !== "the end") assertEquals(error.message, expected);
  });
}

Deno.test("parsePlan() tells next-token layers from layers that are not there", () => {
  assertEquals(
    assertThrows(() => parsePlan("64,65", { nLayer: 64, nextn: 1 }), RangeError).message,
    `Cannot use layer spec "64,65": layer 64 at position 0 is a next-token layer, which no plan runs; the model has layers 0..63`,
  );
  assertThrows(
    () => parsePlan("0,255", { nLayer: 256, nextn: 2 }),
    RangeError,
    "511 layers and 2 next-token layers",
  );
  parsePlan("0,254", { nLayer: 256, nextn: 2 });
});

Deno.test("parsePlan() shows a long text cut short", () => {
  const error = assertThrows(() => parsePlan("1,2;".repeat(100_000)), SyntaxError);
  assertEquals(error.message.length < 300, true);
});

Deno.test("parsePlan() answers any text with a plan or one of its two errors", () => {
  const random = seeded(1);
  const parts = [
    "0",
    "1",
    "33",
    "999",
    "4294967296",
    ",",
    "-",
    "..",
    ".",
    ";",
    "x",
    " ",
    "layers:",
    "blocks:",
    "none",
    "é",
    "\0",
    "🦙",
  ];
  let good = 0;
  for (let n = 0; n < 5000; n++) {
    const spec = Array.from({ length: between(random, 0, 9) }, () => pick(random, parts)).join("");
    try {
      parsePlan(spec, { nLayer: 40 });
      good++;
    } catch (error) {
      if (!(error instanceof SyntaxError || error instanceof RangeError)) throw error;
      assertEquals(error.message.includes("\n"), false);
    }
  }
  assertEquals(good > 20, true);
});
