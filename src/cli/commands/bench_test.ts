import { assertAlmostEquals, assertEquals } from "@std/assert";
import { ratioOf, statsOf } from "./bench.ts";

Deno.test("statsOf() gives mean and sample deviation", () => {
  const { mean, stddev } = statsOf([2, 4, 4, 4, 5, 5, 7, 9]);
  assertEquals(mean, 5);
  assertAlmostEquals(stddev, Math.sqrt(32 / 7), 1e-12);
  assertEquals(statsOf([3]), { mean: 3, stddev: 0 });
});

Deno.test("ratioOf() marks a ratio that the spread hides", () => {
  const steady = [100, 101, 99];
  const doubtful = (samples: number[], base: number[]) => ratioOf(samples, base).doubtful;
  assertEquals(doubtful([83, 84, 82], steady), false);
  assertEquals(doubtful([50, 51, 49], steady), false);
  assertEquals(ratioOf(steady, steady), { ratio: 1, stddev: 0, doubtful: false });
  assertEquals(doubtful([100.5, 100, 101], steady), false); // as fast as without, and it is known to be
  assertEquals(doubtful([98, 115, 85], steady), true); // a change of hundredths, a spread of tenths
  assertEquals(doubtful([83, 84, 82], [130, 40, 130]), true);
  assertEquals(doubtful([5, 50, 20], steady), true); // much slower, but how much?
  assertEquals(doubtful([83], [100]), false); // one sample says nothing of its spread
  assertEquals(doubtful([0, 0], [0, 0]), true);
  assertAlmostEquals(ratioOf([9, 11], [20, 20]).stddev, 0.5 * Math.SQRT2 / 10, 1e-12);
});
