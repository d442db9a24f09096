import { assertEquals } from "@std/assert";
import { sseParser } from "./sse.ts";

Deno.test("sseParser() gives the same objects however the bytes are cut", () => {
  const text =
    ': ping\n\ndata: {"a":"\u00e9\u{1f999}"}\n\ndata: [1,\ndata: 2]\n\nevent: x\ndata: {"b":2}\n\n' +
    "data: [DONE]\n\n";
  const bytes = new TextEncoder().encode(text);
  const want = [{ a: "\u00e9\u{1f999}" }, [1, 2], { b: 2 }];
  for (let size = 1; size <= bytes.length; size++) {
    const parse = sseParser();
    const got: unknown[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      got.push(...parse(bytes.subarray(at, at + size)));
    }
    assertEquals(got, want, `pieces of ${size}`);
  }
});

Deno.test("sseParser() keeps an event that has not ended", () => {
  const parse = sseParser();
  assertEquals(parse(new TextEncoder().encode('data: {"a":1}\n')), []);
  assertEquals(parse(new TextEncoder().encode("\n")), [{ a: 1 }]);
});
