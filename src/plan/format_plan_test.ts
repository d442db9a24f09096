import { assertEquals } from "@std/assert";
import { formatPlan } from "./format_plan.ts";
import { parsePlan } from "./parse_plan.ts";

const CASES: [spec: string, formatted: string][] = [
  ["none", "none"],
  ["26 - 34", "26,34"],
  ["26..33x1", "26,34"],
  ["blocks:43,45; 28,34 x 3", "43,45;28,34x3"],
  ["layers:0,1,2,3,3,4", "layers:0..3,3..4"],
  ["layers:0..33,33,34..63", "layers:0..33,33..63"],
  ["layers:0,2,1", "layers:0,2,1"],
];

for (const [spec, formatted] of CASES) {
  Deno.test(`formatPlan() writes ${spec} as ${formatted}`, () => {
    assertEquals(formatPlan(parsePlan(spec)), formatted);
    assertEquals(formatPlan(parsePlan(formatted)), formatted);
  });
}
