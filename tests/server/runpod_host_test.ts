// What the queue worker does when the host does something else than to hand out jobs. The server behind it is a few
// lines here, so that a job lasts as long as the test needs; runpod_test.ts has the real one.

import { assert, assertEquals } from "@std/assert";
import {
  reportUnhealthy,
  type RunpodQueue,
  type RunpodQueueOptions,
  runpodSettings,
  startRunpodQueue,
} from "../../src/server/runpod/mod.ts";
import { ControlPlane } from "./_runpod.ts";

const QUICK = { idleMs: 20, retryMs: 20, busyMs: 20, maxRetryMs: 100 };

/** A server whose answers last until `release` is called; `prompt: "now"` is answered at once. */
function slowServer() {
  const gate = Promise.withResolvers<void>();
  const aborted: string[] = [];
  const state = { running: 0, most: 0 };
  const fetch = async (request: Request): Promise<Response> => {
    const body = request.method === "GET" ? {} : await request.json();
    state.most = Math.max(state.most, ++state.running);
    try {
      if (body.prompt !== "now") {
        await new Promise<void>((resolve, reject) => {
          gate.promise.then(resolve);
          request.signal.addEventListener("abort", () => {
            aborted.push(body.prompt);
            reject(request.signal.reason);
          });
        });
      }
    } finally {
      state.running--;
    }
    return Response.json({ said: body.prompt });
  };
  return { fetch, aborted, state, release: () => gate.resolve() };
}

function start(host: ControlPlane, options: Partial<RunpodQueueOptions>): RunpodQueue {
  const { env } = host;
  return startRunpodQueue({
    settings: runpodSettings((name) => env[name]),
    fetch: slowServer().fetch,
    timing: QUICK,
    ...options,
  });
}

const NO_WORK = {
  taken: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  returned: 0,
  undelivered: 0,
};

Deno.test("a queue worker runs as many jobs at once as it has slots", async () => {
  await using host = new ControlPlane();
  const server = slowServer();
  const ids = [1, 2, 3, 4, 5].map((n) => host.submit({ prompt: `job ${n}` }));
  const worker = start(host, { fetch: server.fetch, slots: 3 });
  await host.until("three jobs at once", () => server.state.running === 3);
  await host.until(
    "a heartbeat with three jobs",
    () => host.pings.some(({ jobIds }) => jobIds.length === 3),
  );
  assertEquals([...host.jobs.values()].filter((job) => job.status === "IN_QUEUE").length, 2);
  server.release();
  for (const [i, id] of ids.entries()) {
    assertEquals((await host.ended(id)).result, { output: { said: `job ${i + 1}` } });
  }
  worker.stop();
  assertEquals(await worker.done, { ...NO_WORK, taken: 5, completed: 5 });
  assertEquals(server.state.most, 3);
  assertEquals(host.takes[0], { ...host.takes[0]!, count: 3, isBusy: false });
  assertEquals(host.violations, []);
});

Deno.test("a queue worker takes jobs again after 204, 400, 429 and 500", async () => {
  await using host = new ControlPlane();
  for (const status of [204, 400, 429, 500, 503, 403, 429]) {
    host.faults.push({
      route: "job-take",
      status,
      ...(status === 503 ? { headers: { "retry-after": "0.1" } } : {}),
    });
  }
  const lines: string[] = [];
  const worker = start(host, { log: (line) => lines.push(line) });
  const id = host.submit({ prompt: "now" });
  assertEquals((await host.ended(id)).result, { output: { said: "now" } });
  worker.stop();
  assertEquals((await worker.done).completed, 1);
  assertEquals(lines.filter((line) => line.includes("cannot take jobs: status 429")).length, 2);
  assert(lines.some((line) => line.includes("cannot take jobs: works again")), lines.join("\n"));
  assertEquals(host.violations, []);
});

Deno.test("a queue worker waits for a host that cannot be reached", async () => {
  const gone = new ControlPlane();
  const { env, port } = gone;
  await gone[Symbol.asyncDispose]();
  const lines: string[] = [];
  const tried = Promise.withResolvers<void>();
  const worker = startRunpodQueue({
    settings: runpodSettings((name) => env[name]),
    fetch: slowServer().fetch,
    timing: QUICK,
    log(line) {
      lines.push(line);
      if (line.includes("cannot take jobs")) tried.resolve();
    },
  });
  await tried.promise;
  await using host = new ControlPlane(1000, port);
  await host.ended(host.submit({ prompt: "now" }));
  worker.stop();
  assertEquals((await worker.done).completed, 1);
  assert(lines.some((line) => line.includes("cannot take jobs: works again")), lines.join("\n"));
});

Deno.test("a queue worker waits as long as Retry-After says", async () => {
  await using host = new ControlPlane();
  host.faults.push({ route: "job-take", status: 429, headers: { "retry-after": "1" } });
  const id = host.submit({ prompt: "now" });
  const worker = start(host, {});
  await host.ended(id);
  worker.stop();
  await worker.done;
  const [first, second] = host.takes;
  assert(second!.at - first!.at >= 950, `${second!.at - first!.at} ms`);
});

Deno.test("a queue worker sends a result until the host takes it", async () => {
  await using host = new ControlPlane();
  for (const status of [500, 429, 502]) host.faults.push({ route: "job-done", status });
  const id = host.submit({ prompt: "now" });
  const worker = start(host, {});
  assertEquals((await host.ended(id)).result, { output: { said: "now" } });
  worker.stop();
  assertEquals(await worker.done, { ...NO_WORK, taken: 1, completed: 1 });
  assertEquals(host.faults, []);
  assertEquals(host.violations, []);
});

Deno.test("a queue worker gives up on a result that the host refuses, and goes on", async () => {
  await using host = new ControlPlane();
  host.faults.push({ route: "job-done", status: 404 });
  host.submit({ prompt: "now" });
  const worker = start(host, {});
  await host.until("the refusal", () => host.faults.length === 0);
  const second = host.submit({ prompt: "now" });
  await host.ended(second);
  worker.stop();
  assertEquals(await worker.done, { ...NO_WORK, taken: 2, completed: 2, undelivered: 1 });
});

Deno.test("a queue worker says so where the host finds an answer too large", async () => {
  await using host = new ControlPlane();
  host.faults.push({ route: "job-done", status: 413 });
  const id = host.submit({ prompt: "now" });
  const worker = start(host, {});
  const { status, result } = await host.ended(id);
  assertEquals([status, JSON.parse(result!.error!).type], ["FAILED", "answer_too_large"]);
  worker.stop();
  await worker.done;
  assertEquals(host.violations, []);
});

Deno.test("a queue worker stops the job that the host cancels, and no other, and sends nothing for it", async () => {
  await using host = new ControlPlane();
  const server = slowServer();
  const cancelled = host.submit({ prompt: "cancelled" });
  const kept = host.submit({ prompt: "kept" });
  const worker = start(host, { fetch: server.fetch, slots: 2 });
  await host.until("both run", () => server.state.running === 2);
  host.cancel(cancelled);
  await host.until("the stop", () => server.aborted.length === 1);
  const next = host.submit({ prompt: "now" });
  await host.ended(next);
  server.release();
  assertEquals((await host.ended(kept)).result, { output: { said: "kept" } });
  worker.stop();
  assertEquals(await worker.done, { ...NO_WORK, taken: 3, completed: 2, cancelled: 1 });
  assertEquals(server.aborted, ["cancelled"]);
  assertEquals(host.jobs.get(cancelled)!.result, undefined);
  assertEquals(host.violations, []);
});

Deno.test("a stopped queue worker lets its jobs end and takes no more", async () => {
  await using host = new ControlPlane();
  const server = slowServer();
  const id = host.submit({ prompt: "running" });
  const worker = start(host, { fetch: server.fetch });
  await host.until("it runs", () => server.state.running === 1);
  worker.stop();
  worker.stop();
  const late = host.submit({ prompt: "now" });
  const pings = host.pings.length;
  await host.until("a heartbeat while it ends", () => host.pings.length > pings + 1);
  assertEquals(host.pings.at(-1)!.jobIds, [id]);
  server.release();
  assertEquals((await host.ended(id)).result, { output: { said: "running" } });
  assertEquals(await worker.done, { ...NO_WORK, taken: 1, completed: 1 });
  assertEquals(host.jobs.get(late)!.status, "IN_QUEUE");
  assertEquals(host.violations, []);
});

Deno.test("a stopped queue worker gives back what does not end in time", async () => {
  await using host = new ControlPlane();
  const server = slowServer();
  const id = host.submit({ prompt: "endless" });
  const worker = start(host, { fetch: server.fetch, graceMs: 200 });
  await host.until("it runs", () => server.state.running === 1);
  worker.stop();
  assertEquals(await worker.done, { ...NO_WORK, taken: 1, returned: 1 });
  const job = host.jobs.get(id)!;
  assertEquals([job.status, JSON.parse(job.result!.error!).type], ["FAILED", "worker_stopped"]);
  assertEquals(server.aborted, ["endless"]);
  assertEquals(host.violations, []);
});

Deno.test("a stopped queue worker ends while it waits for a job or for the host to be well", async () => {
  await using host = new ControlPlane(60_000);
  const idle = start(host, {});
  await host.until("it asks", () => host.takes.length === 1);
  idle.stop();
  assertEquals(await idle.done, NO_WORK);

  host.faults.push({ route: "job-take", status: 500 });
  const waiting = start(host, { timing: { ...QUICK, retryMs: 3_600_000, maxRetryMs: 3_600_000 } });
  await host.until("the failure", () => host.faults.length === 0);
  waiting.stop();
  assertEquals(await waiting.done, NO_WORK);
  // The job that comes now must not go to a worker that has left.
  const id = host.submit({ prompt: "now" });
  const next = start(host, {});
  await host.ended(id);
  assertEquals(host.jobs.get(id)!.handedOut, 1);
  next.stop();
  await next.done;
});

Deno.test("a queue worker answers a wrong input with an error, and goes on", async () => {
  await using host = new ControlPlane();
  const inputs = [undefined, null, "text", {}, { openai_route: "/slots", openai_input: {} }];
  const ids = inputs.map((input) => host.submit(input));
  const worker = start(host, { slots: 2 });
  for (const id of ids) {
    const { status, result } = await host.ended(id);
    const error = JSON.parse(result!.error!);
    assertEquals([status, error.code, error.type], ["FAILED", 400, "invalid_request_error"]);
  }
  worker.stop();
  assertEquals(await worker.done, { ...NO_WORK, taken: 5, failed: 5 });
  assertEquals(host.violations, []);
});

Deno.test("a queue worker asks a full server again, and fails the job where the server fails", async () => {
  await using host = new ControlPlane();
  let calls = 0;
  const worker = start(host, {
    fetch: () => {
      calls++;
      if (calls < 3) return new Response("", { status: 503, headers: { "retry-after": "0.02" } });
      if (calls === 3) return Response.json({ fine: true });
      throw new Error("broken");
    },
  });
  const first = await host.ended(host.submit({ prompt: "a" }));
  assertEquals(first.result, { output: { fine: true } });
  const second = await host.ended(host.submit({ prompt: "b" }));
  assertEquals(JSON.parse(second.result!.error!), {
    code: 500,
    message: "broken",
    type: "server_error",
  });
  worker.stop();
  await worker.done;
  assertEquals(calls, 4);
});

Deno.test("a queue worker's heartbeats go on while the host fails them", async () => {
  await using host = new ControlPlane();
  for (let i = 0; i < 3; i++) host.faults.push({ route: "ping", status: 500 });
  const lines: string[] = [];
  const worker = start(host, { log: (line) => lines.push(line) });
  await host.until("heartbeats", () => host.pings.length >= 2);
  worker.stop();
  await worker.done;
  assertEquals(lines.filter((line) => line.includes("heartbeat")), [
    "runpod queue: heartbeat failed: status 500",
    "runpod queue: heartbeat works again",
  ]);
});

Deno.test("reportUnhealthy() tells the host why, and is harmless where nobody listens", async () => {
  await using host = new ControlPlane();
  const { env } = host;
  await reportUnhealthy(runpodSettings((name) => env[name]), "model", "no such file é");
  const { query } = host.pings[0]!;
  assertEquals(
    [query.get("status"), query.get("check"), query.get("reason")],
    ["unhealthy", "model", "no such file é"],
  );
  const gone: Record<string, string> = { ...env, RUNPOD_WEBHOOK_PING: "http://127.0.0.1:1/ping" };
  await reportUnhealthy(runpodSettings((name) => gone[name]), "model", "x");
});
