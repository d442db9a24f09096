import { stretches } from "./_stretches.ts";
import type { Plan } from "./types.ts";

/**
 * Writes a plan in the grammar of {@linkcode parsePlan}, in one spelling.
 *
 * @param plan The plan; its `spec` is not looked at.
 * @returns The text, such as `43,45;28,34x2` or `layers:0..33,33,34..63`.
 *
 * @example
 * ```ts
 * import { formatPlan, parsePlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(formatPlan(parsePlan(" 26 .. 33 x 2")), "26,34x2");
 * assertEquals(formatPlan(parsePlan("layers: 0, 1, 2, 2")), "layers:0..2,2");
 * ```
 */
export function formatPlan(plan: Plan): string {
  switch (plan.kind) {
    case "none":
      return "none";
    case "spec":
      return plan.blocks
        .map(({ repeatStart, repeatEnd, repeatCount }) =>
          `${repeatStart},${repeatEnd}${repeatCount > 2 ? `x${repeatCount - 1}` : ""}`
        )
        .join(";");
    case "path":
      return "layers:" +
        stretches(plan.layers)
          .map(([start, end]) => end - start > 1 ? `${start}..${end - 1}` : `${start}`)
          .join(",");
  }
}
