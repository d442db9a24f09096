import { assertEquals } from "@std/assert";
import { unicodeWidth } from "@std/cli/unicode-width";

Deno.test("unicodeWidth() counts columns", () => {
  const widths: [string, number][] = [
    ["", 0],
    ["hello world", 11],
    ["日本語", 6],
    ["한글", 4],
    ["ｆｕｌｌ", 8],
    ["a\u0301", 1],
    ["a\tb", 2],
    ["🦕", 2],
    ["🇳🇴", 2],
  ];
  for (const [text, width] of widths) assertEquals([text, unicodeWidth(text)], [text, width]);
});
