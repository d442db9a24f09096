import { assertEquals, assertThrows } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";
import { fromRelayer, toRelayer } from "./relayer.ts";
import { between, seeded } from "./_testing.ts";

Deno.test("fromRelayer() reads what RYS exports", () => {
  const rys_relayer = {
    source_repo_id: "example/base-model",
    source_num_layers: 4,
    target_num_layers: 5,
    spec: "blocks:1,2",
    layer_indices: [0, 1, 1, 2, 3],
    duplication_counts: { "1": 2 },
  };
  const plan = { kind: "path", spec: "layers:0..1,1..3", layers: [0, 1, 1, 2, 3] };
  assertEquals<unknown>(fromRelayer({ model_type: "x", rys_relayer }), plan);
  assertEquals<unknown>(fromRelayer(rys_relayer, { nLayer: 4 }), plan);
  assertEquals(fromRelayer({ source_num_layers: 4, spec: "1,2" }).layers, plan.layers);
  assertEquals(fromRelayer({ ...rys_relayer, spec: "found by beam search" }).layers, plan.layers);
});

Deno.test("toRelayer() round trips random plans", () => {
  const random = seeded(13);
  for (let n = 0; n < 300; n++) {
    const i = between(random, 0, 30);
    const plan = expandPlan(
      `${i},${between(random, i + 1, 40)};${between(random, 0, 9)},10x${between(random, 1, 4)}`,
      40,
    );
    const written = toRelayer(plan);
    assertEquals(
      fromRelayer(JSON.parse(JSON.stringify({ rys_relayer: written })), { nLayer: 40 }).layers,
      plan.layers,
    );
    const extra = Object.values(written.duplication_counts).reduce(
      (sum, count) => sum + count - 1,
      0,
    );
    assertEquals(extra, plan.nLayerEff - plan.nLayer);
  }
});

const good = toRelayer(expandPlan("1,3", 4));
const BAD: [
  what: string,
  change: Record<string, unknown>,
  Class: ErrorConstructor,
  message: string,
][] = [
  ["no layers", { layer_indices: [] }, TypeError, "list of 1 to 512"],
  ["too many layers", { layer_indices: Array(513).fill(0) }, TypeError, "list of 1 to 512"],
  [
    "a text as a layer",
    { layer_indices: [0, "1"] },
    TypeError,
    `layer_indices[1] must be a whole number, not "1"`,
  ],
  ["a negative layer", { layer_indices: [0, -1] }, RangeError, "below 0"],
  ["a layer that is not there", { layer_indices: [0, 4] }, RangeError, "layer 4 is out of range"],
  ["a late start", { layer_indices: [1] }, RangeError, "must begin with layer 0"],
  [
    "a wrong length",
    { target_num_layers: 7 },
    TypeError,
    "target_num_layers is 7, but there are 6 layers",
  ],
  ["wrong counts", { duplication_counts: { "1": 3, "2": 2 } }, TypeError, "does not agree"],
  ["a spec that says something else", { spec: "1,2" }, TypeError, `spec "1,2" does not agree`],
  [
    "no number of layers",
    { source_num_layers: null },
    TypeError,
    "source_num_layers must be a whole number",
  ],
  ["neither list nor text", { layer_indices: null, spec: null }, TypeError, "neither"],
];

for (const [what, change, Class, message] of BAD) {
  Deno.test(`fromRelayer() refuses ${what}`, () => {
    assertThrows(() => fromRelayer({ rys_relayer: { ...good, ...change } }), Class, message);
  });
}

Deno.test("fromRelayer() refuses another model's plan", () => {
  assertThrows(
    () => fromRelayer(good, { nLayer: 5 }),
    RangeError,
    "source_num_layers is 4, but the model has 5",
  );
});
