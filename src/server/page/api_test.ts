import { assertEquals } from "@std/assert";
import { errorText, events } from "./api.js";

function stream(text: string, size: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at += size));
    },
  });
}

async function all(text: string, size = 1000): Promise<string[]> {
  return await Array.fromAsync(events(stream(text, size)));
}

Deno.test("events() gives the same events however the bytes are cut", async () => {
  const text = ': ping\n\ndata: {"a":"ü€😀"}\n\ndata:two\n\n\ndata: three\ndata: lines\n\n';
  for (const size of [1, 2, 3, 5, 8, 100]) {
    assertEquals(await all(text, size), ['{"a":"ü€😀"}', "two", "three\nlines"], `${size}`);
  }
});

Deno.test("events() takes line ends of both kinds", async () => {
  assertEquals(await all("data: a\r\n\r\ndata: b\n\n", 1), ["a", "b"]);
});

Deno.test("events() ends at [DONE]", async () => {
  assertEquals(await all("data: a\n\ndata: [DONE]\n\ndata: b\n\n"), ["a"]);
});

Deno.test("events() leaves out an event that was cut off", async () => {
  assertEquals(await all("data: a\n\ndata: b"), ["a"]);
});

Deno.test("events() cancels the stream when its reader stops", async () => {
  let cancelled = false;
  const endless = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: x\n\n")),
    cancel: () => {
      cancelled = true;
    },
  });
  for await (const _ of events(endless)) break;
  assertEquals(cancelled, true);
});

Deno.test("errorText() finds the sentence", () => {
  assertEquals(
    errorText('{"error":{"code":400,"message":"no such layer","type":"x"}}'),
    "no such layer",
  );
  assertEquals(errorText('{"error":"plain"}'), "plain");
  assertEquals(errorText("<html>502</html>\n"), "<html>502</html>");
  assertEquals(errorText(""), "");
});
