import { assertEquals } from "@std/assert";
import { editDistance } from "./edit_distance.ts";

Deno.test("editDistance() counts insertions, deletions, replacements, swaps and wrong case", () => {
  for (
    const [a, b, distance] of [
      ["", "", 0],
      ["", "abc", 3],
      ["temp", "temp", 0],
      ["temp", "tmp", 1],
      ["tmep", "temp", 1],
      ["kitten", "sitting", 3],
      ["Temp", "temp", 0.25],
    ] as const
  ) {
    assertEquals(editDistance(a, b), distance, `${a} ${b}`);
    assertEquals(editDistance(b, a), distance, `${b} ${a}`);
  }
});
