import { assertEquals, assertThrows } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";
import { formatPlan } from "./format_plan.ts";
import { packPlan, unpackPlan } from "./pack_plan.ts";
import { parsePlan } from "./parse_plan.ts";
import { runsToLayers } from "./layers_to_runs.ts";
import { between, seeded } from "./_testing.ts";

function packed(spec: string): [kind: number, words: number[]] {
  const { kind, words } = packPlan(parsePlan(spec));
  return [kind, [...words]];
}

Deno.test("packPlan() packs each kind", () => {
  assertEquals(packed("none"), [0, []]);
  assertEquals(packed("26,34"), [1, [26, 34, 2]]);
  assertEquals(packed("43..44x3;28-34"), [1, [43, 45, 4, 28, 34, 2]]);
  assertEquals(packed("layers:0..33,33,34..63"), [2, [0, 33, 1, 33, 34, 2, 34, 64, 1]]);
});

Deno.test("unpackPlan() is the inverse of packPlan()", () => {
  const random = seeded(11);
  const specs = ["none", "0,1", "layers:0", "layers:0,0,0"];
  for (let n = 0; n < 400; n++) {
    const part = (sep: string) => {
      const i = between(random, 0, 30);
      return `${i}${sep}${between(random, i + 1, 40)}`;
    };
    specs.push(
      random() < 0.5
        ? Array.from(
          { length: between(random, 1, 4) },
          () => part(",") + (random() < 0.5 ? `x${between(random, 1, 3)}` : ""),
        ).join(";")
        : `layers:0,${Array.from({ length: between(random, 1, 6) }, () => part("..")).join(",")}`,
    );
  }
  for (const spec of specs) {
    const plan = parsePlan(spec);
    const back = unpackPlan(packPlan(plan));
    assertEquals({ ...back, spec }, { ...plan, spec });
    assertEquals(back.spec, formatPlan(plan));
    assertEquals(parsePlan(back.spec), back);
    if (plan.kind === "path") {
      const { words } = packPlan(plan);
      const runs = Array.from({ length: words.length / 3 }, (_, i) => ({
        repeatStart: words[3 * i]!,
        repeatEnd: words[3 * i + 1]!,
        repeatCount: words[3 * i + 2]!,
      }));
      assertEquals(runsToLayers(runs), expandPlan(plan, 41).layers);
    }
  }
});

Deno.test("unpackPlan() refuses what packPlan() never writes", () => {
  assertThrows(() => unpackPlan({ kind: 1, words: Uint32Array.of(1, 2) }), TypeError, "triples");
  assertThrows(
    () => unpackPlan({ kind: 1, words: new Uint32Array() }),
    TypeError,
    "at least one triple",
  );
  assertThrows(
    () => unpackPlan({ kind: 0, words: Uint32Array.of(1, 2, 3) }),
    TypeError,
    "kind 0 has no words",
  );
  assertThrows(
    () => unpackPlan({ kind: 3 as 2, words: Uint32Array.of(1, 2, 3) }),
    TypeError,
    "kind 0, 1 or 2",
  );
  assertThrows(() => unpackPlan({ kind: 2, words: Uint32Array.of(0, 1, 0xffff_ffff) }), RangeError);
  assertThrows(
    () =>
      packPlan({
        kind: "spec",
        spec: "",
        blocks: [{ repeatStart: -1, repeatEnd: 2, repeatCount: 2 }],
      }),
    RangeError,
    "Cannot pack -1",
  );
});
