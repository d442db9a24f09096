import { assertEquals } from "@std/assert";
import { backoffMs, pause, retryAfterMs } from "./backoff.ts";

Deno.test("backoffMs() doubles up to its limit", () => {
  const waits = [1, 2, 3, 4, 5, 6, 60].map((failures) =>
    backoffMs({ firstMs: 1000, maxMs: 30_000 }, failures, 0)
  );
  assertEquals(waits, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

Deno.test("backoffMs() is up to a half shorter by chance", () => {
  assertEquals(backoffMs({ firstMs: 1000, maxMs: 30_000 }, 2, 1), 1000);
});

Deno.test("retryAfterMs() reads seconds and dates", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  assertEquals(retryAfterMs("3", now), 3000);
  assertEquals(retryAfterMs("0", now), 0);
  assertEquals(retryAfterMs("Thu, 01 Jan 2026 00:00:09 GMT", now), 9000);
  assertEquals(retryAfterMs("Wed, 31 Dec 2025 23:00:00 GMT", now), 0);
});

Deno.test("retryAfterMs() says nothing where the header does not", () => {
  assertEquals(retryAfterMs(null, 0), undefined);
  assertEquals(retryAfterMs("soon", 0), undefined);
});

Deno.test("pause() ends when it is told to", async () => {
  const abort = new AbortController();
  const long = pause(3_600_000, abort.signal);
  abort.abort();
  await long;
  await pause(3_600_000, abort.signal);
});
