import { assertEquals } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";
import { packPlan } from "./pack_plan.ts";
import { runsToLayers } from "./layers_to_runs.ts";
import { between, rewriteExpand, seeded } from "./_testing.ts";

function packed(spec: string): [kind: number, words: number[]] {
  const { kind, words } = packPlan(expandPlan(spec, 64));
  return [kind, [...words]];
}

Deno.test("packPlan() packs what repeats blocks in place as those blocks", () => {
  assertEquals(packed("26,34"), [1, [26, 34, 2]]);
  assertEquals(packed("43..44x3;28-34"), [1, [28, 34, 2, 43, 45, 4]]);
  assertEquals(packed("0,1"), [1, [0, 1, 2]]);
  assertEquals(packed("63,64x2"), [1, [63, 64, 3]]);
  assertEquals(packed("layers:0..33,33,34..63"), [1, [33, 34, 2]]);
});

Deno.test("packPlan() packs the model's own layers as nothing", () => {
  assertEquals(packed("none"), [0, []]);
  assertEquals(packed("layers:0..63"), [0, []]);
});

Deno.test("packPlan() packs other paths as their runs", () => {
  assertEquals(packed("layers:0..62"), [2, [0, 63, 1]]);
  assertEquals(packed("layers:0,2..63"), [2, [0, 1, 1, 2, 64, 1]]);
  assertEquals(packed("layers:0..3,3,2..63"), [2, [0, 3, 1, 3, 4, 2, 2, 64, 1]]);
  assertEquals(packed("3,6;4,6"), [2, [0, 3, 1, 3, 6, 2, 4, 64, 1]]);
});

Deno.test("packPlan() packs what expands to the same layers", () => {
  const random = seeded(11);
  const kinds = [0, 0, 0];
  for (let n = 0; n < 600; n++) {
    const part = (sep: string) => {
      const i = between(random, 0, 30);
      return `${i}${sep}${between(random, i + 1, 39)}`;
    };
    const spec = random() < 0.7
      ? Array.from(
        { length: between(random, 1, 3) },
        () => part(",") + (random() < 0.5 ? `x${between(random, 1, 3)}` : ""),
      ).join(";")
      : `layers:0,${Array.from({ length: between(random, 1, 6) }, () => part("..")).join(",")}`;
    const plan = expandPlan(spec, 40);
    const { kind, words } = packPlan(plan);
    kinds[kind]!++;
    const triples = Array.from({ length: words.length / 3 }, (_, i) => ({
      repeatStart: words[3 * i]!,
      repeatEnd: words[3 * i + 1]!,
      repeatCount: words[3 * i + 2]!,
    }));
    const layers = kind === 2 ? runsToLayers(triples) : rewriteExpand(
      40,
      triples.map((run) => ({
        i: run.repeatStart,
        j: run.repeatEnd,
        times: run.repeatCount - 1,
      })),
    );
    assertEquals(layers, plan.layers, spec);
  }
  assertEquals(kinds[1]! > 100 && kinds[2]! > 100, true, String(kinds));
});
