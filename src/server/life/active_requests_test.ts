import { assertEquals, assertThrows } from "@std/assert";
import { ApiError, ClientGone } from "../http/api_error.ts";
import { settings } from "../options.ts";
import { ActiveRequests } from "./active_requests.ts";

const requests = (maxBodyBytes?: number) =>
  new ActiveRequests(settings({ model: "x.gguf", maxBodyBytes }));

const never = () => new AbortController().signal;

Deno.test("ActiveRequests counts a request until its end, and is idle after the last", async () => {
  const all = requests();
  const [a, b] = [all.begin(never()), all.begin(never())];
  assertEquals(all.size, 2);
  let isIdle = false;
  const idle = all.idle(600_000).then(() => isIdle = true);
  a.end();
  a.end(); // harmless
  await Promise.resolve();
  assertEquals([all.size, isIdle], [1, false]);
  b.end();
  await idle;
  assertEquals(all.size, 0);
});

Deno.test("ActiveRequests gives back the bytes of a body at the request's end", () => {
  const all = requests(2 ** 30);
  const [a, b] = [all.begin(never()), all.begin(never())];
  a.takeBytes(2 ** 30);
  assertEquals(assertThrows(() => b.takeBytes(1), ApiError).status, 503);
  a.end();
  b.takeBytes(2 ** 30);
  b.end();
});

Deno.test("ActiveRequest stops when its client leaves, unless its answer is a stream, and when the server does", async () => {
  const all = requests();
  const client = new AbortController();
  const [whole, streaming] = [all.begin(client.signal), all.begin(client.signal)];
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  streaming.streamUntil(ended);
  client.abort();
  assertEquals(whole.signal.reason instanceof ClientGone, true);
  assertEquals([whole.clientHasGone, streaming.signal.aborted], [true, false]);
  all.stop(new Error("the end"));
  assertEquals(streaming.signal.reason.message, "the end");
  whole.end();
  assertEquals(all.size, 1);
  resolve();
  await all.idle(600_000);
});
