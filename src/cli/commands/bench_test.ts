import { assertAlmostEquals, assertEquals } from "@std/assert";
import { statsOf } from "./bench.ts";

Deno.test("statsOf() gives mean and sample deviation", () => {
  const { mean, stddev } = statsOf([2, 4, 4, 4, 5, 5, 7, 9]);
  assertEquals(mean, 5);
  assertAlmostEquals(stddev, Math.sqrt(32 / 7), 1e-12);
  assertEquals(statsOf([3]), { mean: 3, stddev: 0 });
});
