import { assertEquals } from "@std/assert";
import { type SseEvent, sseEvents } from "./sse_events.ts";

async function events(pieces: readonly (string | Uint8Array)[]): Promise<SseEvent[]> {
  const encoder = new TextEncoder();
  const bytes = pieces.map((piece) => typeof piece === "string" ? encoder.encode(piece) : piece);
  return await Array.fromAsync(ReadableStream.from(bytes).pipeThrough(sseEvents()));
}

Deno.test("sseEvents() gives the same events wherever the stream is cut", async () => {
  const text =
    'data: {"a":1}\n\n: ping\n\nevent: delta\r\ndata: two\r\ndata:  lines\r\n\r\ndata: é\n\ndata: [DONE]\n\n';
  const expected = [
    { raw: 'data: {"a":1}\n\n', data: '{"a":1}' },
    { raw: "event: delta\ndata: two\ndata:  lines\n\n", data: "two\n lines" },
    { raw: "data: é\n\n", data: "é" },
    { raw: "data: [DONE]\n\n", data: "[DONE]" },
  ];
  const bytes = new TextEncoder().encode(text);
  assertEquals(await events([bytes]), expected);
  assertEquals(await events([...bytes].map((byte) => Uint8Array.of(byte))), expected);
  for (let at = 1; at < bytes.length; at++) {
    assertEquals(await events([bytes.slice(0, at), bytes.slice(at)]), expected);
  }
});

Deno.test("sseEvents() completes an event that is cut off at the end", async () => {
  assertEquals(await events(["data: 1\n\ndata: 2\n"]), [
    { raw: "data: 1\n\n", data: "1" },
    { raw: "data: 2\n\n", data: "2" },
  ]);
  assertEquals(await events([""]), []);
  assertEquals(await events([": only a comment\n\n"]), []);
});
