import { assertEquals, assertRejects } from "@std/assert";
import { Outgoing } from "./outgoing.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("Outgoing gives what was written, in order, and ends", async () => {
  const out = new Outgoing(10, () => {});
  out.write(bytes("a"));
  const text = new Response(out.stream).text();
  out.write(bytes("b"));
  await Promise.resolve();
  out.write(bytes(""));
  out.write(bytes("c"));
  out.end();
  out.write(bytes("late"));
  assertEquals(await text, "abc");
});

Deno.test("Outgoing tells of a reader that leaves", async () => {
  const told: string[] = [];
  const out = new Outgoing(10, (why) => told.push(why));
  out.write(bytes("a"));
  const reader = out.stream.getReader();
  await reader.read();
  await reader.cancel();
  assertEquals(told, ["the client is gone"]);
});

Deno.test("Outgoing gives up a reader that reads nothing, and waits for one that has read all", async () => {
  const told: string[] = [];
  const slow = new Outgoing(0.05, (why) => told.push(`slow: ${why}`));
  const patient = new Outgoing(0.05, (why) => told.push(`patient: ${why}`));
  slow.write(bytes("a"));
  const reader = patient.stream.getReader();
  const read = reader.read();
  for (let i = 0; i < 6000 && told.length === 0; i++) await new Promise((r) => setTimeout(r, 10));
  assertEquals(told, ["slow: the reader is too slow"]);
  await assertRejects(() => new Response(slow.stream).text());
  patient.write(bytes("b"));
  assertEquals((await read).value, bytes("b"));
  patient.end();
  assertEquals((await reader.read()).done, true);
});
