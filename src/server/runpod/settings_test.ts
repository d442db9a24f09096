import { assertEquals, assertThrows } from "@std/assert";
import { runpodSettings } from "./settings.ts";

const NEEDED: Record<string, string> = {
  RUNPOD_WEBHOOK_GET_JOB: "https://host.example/v2/e/job-take/$ID?gpu=A40",
  RUNPOD_WEBHOOK_POST_OUTPUT: "https://host.example/v2/e/job-done/$RUNPOD_POD_ID/$ID?gpu=A40",
};

const read = (variables: Record<string, string>) =>
  runpodSettings((name) => ({ ...NEEDED, ...variables })[name]);

Deno.test("runpodSettings() puts names into addresses, as one part of the path", () => {
  const settings = read({
    RUNPOD_POD_ID: "w/1",
    RUNPOD_AI_API_KEY: "key",
    RUNPOD_WEBHOOK_POST_STREAM: "https://host.example/v2/e/job-stream/$RUNPOD_POD_ID/$ID",
    RUNPOD_WEBHOOK_PING: "https://host.example/v2/e/ping/$RUNPOD_POD_ID",
    RUNPOD_PING_INTERVAL: "4000",
  });
  assertEquals(settings.takeUrl, "https://host.example/v2/e/job-take/w%2F1?gpu=A40");
  assertEquals(settings.stopUrl, "https://host.example/v2/e/job-stop/w%2F1?gpu=A40");
  assertEquals(settings.pingUrl, "https://host.example/v2/e/ping/w%2F1");
  assertEquals(settings.pingIntervalMs, 4000);
  assertEquals(
    settings.doneUrl("$&/../x?a=1"),
    "https://host.example/v2/e/job-done/w%2F1/%24%26%2F..%2Fx%3Fa%3D1?gpu=A40",
  );
  assertEquals(
    settings.streamUrl("sync-1-u1"),
    "https://host.example/v2/e/job-stream/w%2F1/sync-1-u1",
  );
});

Deno.test("runpodSettings() does without what a host leaves out", () => {
  const settings = read({ RUNPOD_WEBHOOK_GET_JOB: "http://127.0.0.1:8000/take" });
  assertEquals(settings.workerId.length > 0, true);
  assertEquals(
    [settings.apiKey, settings.stopUrl, settings.pingUrl, settings.streamUrl("1")],
    ["", undefined, undefined, undefined],
  );
  assertEquals(settings.pingIntervalMs, 10_000);
});

Deno.test("runpodSettings() sends no heartbeats without a key", () => {
  assertEquals(read({ RUNPOD_WEBHOOK_PING: "http://host.example/ping" }).pingUrl, undefined);
});

Deno.test("runpodSettings() names the variable that is missing or wrong", () => {
  assertThrows(
    () => read({ RUNPOD_WEBHOOK_GET_JOB: "" }),
    TypeError,
    "RUNPOD_WEBHOOK_GET_JOB is not set",
  );
  assertThrows(
    () => read({ RUNPOD_WEBHOOK_POST_OUTPUT: "" }),
    TypeError,
    "RUNPOD_WEBHOOK_POST_OUTPUT is not set",
  );
  for (const address of ["host.example/take", "file:///etc/passwd", "not an address"]) {
    assertThrows(
      () => read({ RUNPOD_WEBHOOK_GET_JOB: address }),
      TypeError,
      `RUNPOD_WEBHOOK_GET_JOB must be an http or https address, not "${address}"`,
    );
  }
  for (const interval of ["soon", "0", "-5"]) {
    assertThrows(
      () => read({ RUNPOD_PING_INTERVAL: interval }),
      TypeError,
      "RUNPOD_PING_INTERVAL must be a number of milliseconds",
    );
  }
});
