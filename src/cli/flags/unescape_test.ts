import { assertEquals } from "@std/assert";
import { unescapeText } from "./unescape.ts";

Deno.test("unescapeText() reads what llama.cpp reads", () => {
  assertEquals(unescapeText(String.raw`a\nb\tc\\n\"\'`), "a\nb\tc\\n\"'");
  assertEquals(unescapeText(String.raw`\x41\xe2\x82\xac`), "A€");
});

Deno.test("unescapeText() leaves the rest alone", () => {
  assertEquals(unescapeText(String.raw`\d \x4 \xzz 😀\\`), String.raw`\d \x4 \xzz 😀` + "\\");
  assertEquals(unescapeText("end\\"), "end\\");
  assertEquals(unescapeText("plain"), "plain");
});
