import { assertEquals } from "@std/assert";
import { SseParser } from "./sse.js";

function all(pieces: Uint8Array[]): [lines: string[], data: string | undefined][] {
  const parser = new SseParser();
  return [...pieces.flatMap((piece) => parser.take(piece)), ...parser.end()]
    .map(({ lines, data }) => [lines, data]);
}

const bytes = (text: string) => new TextEncoder().encode(text);

for (const [name, end] of [["LF", "\n"], ["CRLF", "\r\n"], ["CR", "\r"]] as const) {
  Deno.test(`SseParser reads lines that end with ${name}, wherever the stream is cut`, () => {
    const whole = bytes(
      [
        'data: {"a":"ü€😀"}',
        "",
        ": ping",
        "",
        "event: delta",
        "data: two",
        "data:  lines",
        "data",
        "",
        "",
        "data:[DONE]",
        "",
        "",
      ].join(end),
    );
    const expected: [string[], string | undefined][] = [
      [['data: {"a":"ü€😀"}'], '{"a":"ü€😀"}'],
      [[": ping"], undefined],
      [["event: delta", "data: two", "data:  lines", "data"], "two\n lines\n"],
      [["data:[DONE]"], "[DONE]"],
    ];
    assertEquals(all([whole]), expected);
    assertEquals(all([...whole].map((byte) => Uint8Array.of(byte))), expected);
    for (let at = 1; at < whole.length; at++) {
      assertEquals(all([whole.slice(0, at), whole.slice(at)]), expected);
    }
  });
}

Deno.test("SseParser gives an event as soon as its blank line is there", () => {
  const parser = new SseParser();
  assertEquals(parser.take(bytes("data: 1\r\r")).map(({ data }) => data), ["1"]);
  assertEquals(parser.take(bytes("\ndata: 2\n\n")).map(({ data }) => data), ["2"]);
});

Deno.test("SseParser gives what the end of the stream leaves, which may be nothing", () => {
  const parser = new SseParser();
  assertEquals(parser.take(bytes("data: 1\n\ndata: 2")).map(({ data }) => data), ["1"]);
  assertEquals(parser.end(), [{ lines: ["data: 2"], data: "2" }]);
  assertEquals(parser.end(), []);
  assertEquals(all([]), []);
});
