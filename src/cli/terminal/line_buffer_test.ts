import { assertEquals } from "@std/assert";
import { KeyReader, LineBuffer } from "./line_buffer.ts";
import { columns, graphemes } from "./text_width.ts";

function type(...parts: string[]): LineBuffer {
  const reader = new KeyReader();
  const line = new LineBuffer();
  line.clear();
  for (const part of parts) for (const key of reader.read(part)) line.apply(key);
  return line;
}

Deno.test("KeyReader names keys, also those that come in parts", () => {
  const reader = new KeyReader();
  assertEquals(reader.read("ab\x1b"), [{ name: "text", text: "ab" }]);
  assertEquals(reader.read("["), []);
  assertEquals(reader.read("A"), [{ name: "up" }]);
  assertEquals(reader.read("\x1bOH\x1b[3~\x1b[1;5D\x1bb"), [
    { name: "home" },
    { name: "delete" },
    { name: "word-left" },
    { name: "word-left" },
  ]);
  assertEquals(reader.read("\x03\x04\r\x7f\x00"), [
    { name: "interrupt" },
    { name: "end-of-file" },
    { name: "enter" },
    { name: "backspace" },
    { name: "unknown" },
  ]);
  assertEquals(reader.read("\x1b[99z"), [{ name: "unknown" }]);
});

Deno.test("KeyReader takes pasted text whole, newlines and all", () => {
  const reader = new KeyReader();
  assertEquals(reader.read("\x1b[200~one\r\ntw"), []);
  assertEquals(reader.read("o\x03\x1b[201~\r"), [
    { name: "text", text: "one\ntwo" },
    { name: "enter" },
  ]);
});

Deno.test("LineBuffer edits at the cursor", () => {
  assertEquals(type("helo", "\x1b[D", "l").text, "hello");
  assertEquals(type("abc", "\x01", "x", "\x05", "y").text, "xabcy");
  assertEquals(type("abc", "\x7f\x7f").text, "a");
  assertEquals(type("abc", "\x01", "\x1b[3~").text, "bc");
  assertEquals(type("one two three", "\x17").text, "one two ");
  assertEquals(type("one two", "\x1bb", "\x0b").text, "one ");
  assertEquals(type("one two", "\x1bb", "\x15").text, "two");
  assertEquals(type("\x7f\x1b[D\x1b[C\x17").text, "");
});

Deno.test("LineBuffer moves over whole characters", () => {
  assertEquals(type("👨‍👩‍👧é", "\x7f").text, "👨‍👩‍👧");
  assertEquals(type("👨‍👩‍👧é", "\x7f\x7f").text, "");
  const line = type("e", "\u0301");
  assertEquals([line.chars.length, line.cursor], [1, 1]);
});

Deno.test("LineBuffer calls lines back and keeps what was begun", () => {
  const line = new LineBuffer();
  const reader = new KeyReader();
  const press = (text: string) => {
    for (const key of reader.read(text)) line.apply(key);
    return line.text;
  };
  for (const text of ["first", "second", "second", " "]) line.remember(text);
  line.clear();
  press("dra");
  assertEquals(press("\x1b[A"), "second");
  assertEquals(press("\x1b[A"), "first");
  assertEquals(press("\x1b[A"), "first");
  assertEquals(press("\x1b[B"), "second");
  assertEquals(press("\x1b[B"), "dra");
  assertEquals(press("\x1b[B"), "dra");
});

Deno.test("columns() knows wide and combining characters", () => {
  assertEquals(graphemes("a漢é👨‍👩‍👧❤️한").map(columns), [1, 2, 1, 2, 2, 2]);
  assertEquals(columns("\u0301"), 0);
  assertEquals(columns("й"), 1);
});
