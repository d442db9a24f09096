import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { chainQuestions } from "./chains.ts";

/** Follows the links of a prompt from the name it asks for, as a reader would. */
function solve(prompt: string): string[] {
  const [, told, first] = /^(.+)\. Who is at the end of the line from the (\w+)\?$/.exec(prompt)!;
  const next = new Map(told!.split(", ").map((link) => link.split(" ") as [string, string]));
  const way = [first!];
  while (next.has(way.at(-1)!)) way.push(next.get(way.at(-1)!)!);
  return way;
}

Deno.test("a chain question's answer is where its links lead, in as many hops as asked for", () => {
  for (const links of [4, 7, 8]) {
    for (const hops of [1, 2, 3, 4]) {
      for (const { prompt, answer, way } of chainQuestions({ count: 200, hops, links, seed: 5 })) {
        assertEquals(solve(prompt), way);
        assertEquals(way.at(-1), answer);
        assertEquals(way.length, hops + 1);
        const told = prompt.slice(0, prompt.indexOf(".")).split(", ");
        assertEquals(told.length, links);
        for (const at of [0, 1]) { // nobody has two before or two behind
          assertEquals(new Set(told.map((link) => link.split(" ")[at])).size, links, prompt);
        }
      }
    }
  }
});

Deno.test("chain questions follow from their seed, and hardly repeat", () => {
  const ask = (seed: number) => chainQuestions({ count: 50, hops: 2, seed });
  assertEquals(ask(1), ask(1));
  assertNotEquals(ask(1), ask(2));
  assertEquals(new Set(ask(3).map(({ prompt }) => prompt)).size, 50);
  const ends = new Set(chainQuestions({ count: 400, hops: 2, seed: 4 }).map((q) => q.answer));
  assert(ends.size >= 35, `${ends.size} different answers`);
});

Deno.test("chainQuestions() refuses numbers out of range by name", () => {
  for (
    const [options, name] of [
      [{ count: 1, hops: 0, seed: 1 }, "hops"],
      [{ count: 1, hops: 5, seed: 1 }, "hops"],
      [{ count: 1, hops: 3, links: 2, seed: 1 }, "links"],
      [{ count: 1, hops: 3, links: 9, seed: 1 }, "links"],
      [{ count: -1, hops: 1, seed: 1 }, "count"],
      [{ count: 1, hops: 1, seed: 0.5 }, "seed"],
    ] as const
  ) assertThrows(() => chainQuestions(options), RangeError, name);
});
