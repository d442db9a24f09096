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
  ["layers:0..5,9", 12, 0, ""],
  ["1,2", 4, 2, "layer 1 is repeated"],
];

for (const [spec, nLayer, advisories, includes] of CASES) {
  Deno.test(`planAdvisories() has ${advisories} warnings for ${spec} on ${nLayer} layers`, () => {
    const said = expandPlan(spec, nLayer).advisories;
    assertEquals(said.length, advisories);
    assertEquals(said.join("\n").includes(includes), true, said.join("\n"));
  });
}
