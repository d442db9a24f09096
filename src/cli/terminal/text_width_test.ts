import { assertEquals } from "@std/assert";
import { columns, graphemes } from "./text_width.ts";

Deno.test("columns() is what a reader sees of each character", () => {
  const widths: [string, number[]][] = [
    ["ab↵", [1, 1, 1]],
    ["日本", [2, 2]],
    ["e\u0301", [1]],
    ["❤️", [2]],
    ["👩‍👩‍👧‍👦!", [2, 1]],
    ["🇳🇴", [2]],
    ["👍🏽", [2]],
  ];
  for (const [text, want] of widths) assertEquals(graphemes(text).map(columns), want, text);
});
