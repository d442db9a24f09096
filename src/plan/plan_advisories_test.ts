import { assertEquals } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";

const CASES: [spec: string, nLayer: number, advisories: number, includes: string][] = [
  ["26,34", 64, 0, ""],
  ["8,56", 64, 0, ""],
  ["7,9", 64, 1, "layer 7 is repeated, within the first 8 of 64 layers"],
  ["55,57", 64, 1, "layer 56 is repeated, within the last 8 of 64 layers"],
  ["0,3;3,4;6,7;61,64", 64, 2, "layers 0..3,6 are repeated"],
  ["2,3", 12, 1, "first 3 of 12"],
  ["3,9", 12, 0, ""],
  ["8,10", 12, 1, "layer 9 is"],
  ["none", 12, 0, ""],
  ["layers:0..5,9", 12, 1, "5 of 12 layers are skipped (6..8,10..11); leaving layers out"],
  ["layers:0..3,3,39", 40, 2, "35 of 40 layers are skipped (4..38)"],
  ["layers:0,1,1,2", 40, 2, "37 of 40 layers are skipped (3..39)"],
  ["layers:0..4,6..11", 12, 1, "1 of 12 layers is skipped (5)"],
  ["1,2", 4, 2, "layer 1 is repeated"],
];

for (const [spec, nLayer, advisories, includes] of CASES) {
  Deno.test(`planAdvisories() has ${advisories} warnings for ${spec} on ${nLayer} layers`, () => {
    const said = expandPlan(spec, nLayer).advisories;
    assertEquals(said.length, advisories);
    assertEquals(said.join("\n").includes(includes), true, said.join("\n"));
  });
}
