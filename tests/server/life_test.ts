import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { loadModel, type Model } from "../../mod.ts";
import { EngineClient } from "../../src/engine/client.ts";
import { createServer } from "../../src/server/mod.ts";
import { loadedModelOf } from "../../src/server/server.ts";
import {
  busy,
  CHAT,
  DEMO,
  ENDLESS,
  events,
  json,
  metric,
  refusal,
  send,
  SMALL,
  test,
  until,
} from "./_server.ts";

/** A test without sanitizers, for servers whose life it leads itself. */
const plainTest = (name: string, fn: () => Promise<void>) =>
  Deno.test({ name, sanitizeOps: false, sanitizeResources: false, fn });

plainTest("a server answers before its model is loaded, and says when it is", async () => {
  await using server = createServer(SMALL);
  assertEquals(server.state, "loading");
  for (const path of ["/health", "/v1/health", "/ready"]) {
    const error = await refusal(server, 503, path);
    assertEquals([error.message, error.type], ["Loading model", "unavailable_error"]);
  }
  assertEquals((await send(server, "/ping")).status, 204);
  assertEquals((await send(server, "/v1/chat/completions", CHAT)).status, 503);
  assert(Number((await send(server, "/v1/models")).headers.get("retry-after")) > 0);
  await server.ready;
  assertEquals(server.state, "ready");
  for (const path of ["/health", "/v1/health", "/ready"]) {
    assertEquals(await json(server, path), { status: "ok" });
  }
  assertEquals((await send(server, "/ping")).status, 200);
  const head = await server.fetch(new Request("http://localhost/health", { method: "HEAD" }));
  assertEquals([head.status, await head.text()], [200, ""]);
});

plainTest(
  "a model that cannot be loaded is told once, and the server stays unhealthy",
  async () => {
    const server = createServer({ model: "no-such-file.gguf" });
    await assertRejects(() => server.ready, Error, "no-such-file.gguf");
    assertEquals(server.state, "failed");
    const error = await refusal(server, 503, "/health");
    assert(!error.message.includes("no-such-file"), error.message);
    assertEquals((await send(server, "/ping")).status, 503);
    await server.close();
  },
);

plainTest("wrong options are refused at once", async () => {
  for (
    const [options, part] of [
      [{ model: "" }, "model"],
      [{ model: 5 }, "model"],
      [{ nParallel: 0 }, "nParallel"],
      [{ maxContexts: 1.5 }, "maxContexts"],
      [{ requestTimeout: -1 }, "requestTimeout"],
      [{ apiKeys: "k" }, "apiKeys"],
      [{ apiKeys: ["a b"] }, "apiKeys"],
      [{ cors: ["example.com"] }, "cors"],
      [{ aliases: { "": "1,2" } }, "aliases"],
      [{ port: 80 }, `no option "port"`],
    ] as [Record<string, unknown>, string][]
  ) {
    assertThrows(() => createServer({ ...SMALL, ...options } as typeof SMALL), Error, part);
  }
  for (const options of [{ repeatLayers: "26,99" }, { aliases: { deep: "99,100" } }]) {
    const server = createServer({ ...SMALL, ...options });
    await assertRejects(() => server.ready, RangeError, "out of range");
    await server.close();
  }
});

plainTest("a model that was given loaded stays the caller's", async () => {
  await using model = await loadModel(DEMO);
  {
    await using server = createServer({ ...SMALL, model, modelName: "mine" });
    await server.ready;
    const { model: name, rys } = await json(server, "/v1/chat/completions", {
      ...CHAT,
      repeat_layers: "26,34",
    });
    assertEquals([name, rys.n_layer_eff], ["mine@26,34", 48]);
  }
  assertEquals(model.disposed, false);
  assertEquals(await model.detokenize(await model.tokenize("Hello")), "Hello");
});

plainTest("close() lets what runs end, and takes nothing new", async () => {
  const server = createServer({ ...SMALL, drainTimeout: 100 });
  await server.ready;
  const running = send(server, "/completion", { ...ENDLESS, n_predict: 60, stream: true });
  const response = await running;
  const closing = server.close();
  assertEquals(server.state, "draining");
  const error = await refusal(server, 503, "/v1/chat/completions", CHAT);
  assertEquals(error.message, "The server is shutting down");
  await refusal(server, 503, "/health");
  assertEquals((await send(server, "/ping")).status, 503);
  assertEquals((await events(response)).at(-1).tokens_predicted, 60);
  await closing;
  assertEquals(server.state, "closed");
  await server.close();
});

plainTest("close() stops what does not end in time", async () => {
  const server = createServer({ ...SMALL, nCtx: 2048, drainTimeout: 0.2 });
  await server.ready;
  const whole = send(server, "/completion", ENDLESS);
  const streamed = await send(server, "/completion", { ...ENDLESS, stream: true });
  const waiting = send(server, "/completion", { ...ENDLESS, repeat_layers: "26,34" });
  const read = events(streamed);
  await server.close();
  assertEquals((await whole).status, 503);
  assertEquals((await waiting).status, 503);
  assertEquals((await read).at(-1).error.code, 503);
});

plainTest("close() ends a server that still loads", async () => {
  const server = createServer(SMALL);
  await server.close();
  assertEquals(server.state, "closed");
});

test("more requests than may wait are refused, and those that wait are answered", {
  nParallel: 1,
  maxQueue: 2,
}, async (server) => {
  const ask = { ...ENDLESS, n_predict: 40 };
  const all = await Promise.all(Array.from({ length: 6 }, () => send(server, "/completion", ask)));
  const statuses = all.map(({ status }) => status);
  assertEquals(statuses.toSorted(), [200, 200, 200, 503, 503, 503]);
  const refused = all.find(({ status }) => status === 503)!;
  assert(Number(refused.headers.get("retry-after")) >= 1);
  assertEquals((await refused.json()).error.type, "unavailable_error");
  for (const response of all) if (!response.bodyUsed) await response.text();
  assertEquals((await json(server, "/completion", ask)).tokens_predicted, 40);
});

test(
  "a queue of none takes what can run at once",
  { nParallel: 2, maxQueue: 0 },
  async (server) => {
    const ask = { ...ENDLESS, n_predict: 20 };
    const all = await Promise.all([1, 2, 3].map(() => send(server, "/completion", ask)));
    assertEquals(all.map(({ status }) => status).toSorted(), [200, 200, 503]);
  },
);

test(
  "a request that takes too long is ended",
  { requestTimeout: 0.3, nCtx: 2048 },
  async (server) => {
    const error = await refusal(server, 504, "/completion", ENDLESS);
    assertEquals(error.type, "timeout_error");
    // On a loaded machine the first token may be too late as well: then it is an answer without a stream.
    const streamed = await send(server, "/completion", { ...ENDLESS, stream: true });
    if (streamed.status === 200) assertEquals((await events(streamed)).at(-1).error.code, 504);
    else assertEquals([streamed.status, await streamed.body?.cancel()], [504, undefined]);
    await until("no slot is at work", async () => await busy(server) === 0);
  },
);

test("a client that leaves stops its request: generating, streaming, in the prompt, in the line", {
  nParallel: 1,
  nCtx: 2048,
  context: { nBatch: 8, nUbatch: 8 },
}, async (server) => {
  // Generating, not streamed.
  const first = new AbortController();
  const whole = send(server, "/completion", ENDLESS, first);
  await until("it runs", async () => await busy(server) === 1);
  first.abort();
  assertEquals((await whole).status, 499);
  await until("the slot is free", async () => await busy(server) === 0);

  // Streaming: the reader leaves.
  const streamed = await send(server, "/completion", { ...ENDLESS, stream: true });
  const reader = streamed.body!.getReader();
  await reader.read();
  await reader.cancel();
  await until("the slot is free", async () => await busy(server) === 0 && server.inFlight === 0);

  // In the prompt.
  const second = new AbortController();
  const prompt = send(server, "/completion", { ...ENDLESS, prompt: "word ".repeat(380) }, second);
  await until("it runs", async () => await busy(server) === 1);
  second.abort();
  await prompt;
  await until("the slot is free", async () => await busy(server) === 0);

  // In the line.
  const third = new AbortController();
  const fourth = new AbortController();
  const running = send(server, "/completion", ENDLESS, third);
  await until("it runs", async () => await busy(server) === 1);
  const waiting = send(server, "/completion", { ...ENDLESS, prompt: "never" }, fourth);
  await until("it waits", async () => (await json(server, "/rys")).queued === 1);
  fourth.abort();
  assertEquals((await waiting).status, 499);
  assertEquals((await json(server, "/rys")).queued, 0);
  third.abort();
  await running;
  await until("nothing is in flight", () => server.inFlight === 0);
  assertEquals(await metric(server, "rys_requests_cancelled_total"), 5);
});

test(
  "one request's cancel touches no other, on its own plan or another",
  { nParallel: 3 },
  async (server) => {
    const ask = { prompt: "Once upon a time", n_predict: 30, temperature: 0, ignore_eos: true };
    const want = (await json(server, "/completion", ask)).content;
    const deep = (await json(server, "/completion", { ...ask, repeat_layers: "10,20" })).content;
    const cancel = new AbortController();
    const stopped = send(server, "/completion", { ...ENDLESS, prompt: "The cat" }, cancel);
    const others = [
      json(server, "/completion", ask),
      json(server, "/completion", { ...ask, repeat_layers: "10,20" }),
      json(server, "/completion", ask),
    ];
    until("some run", async () => await busy(server) > 0).finally(() => cancel.abort());
    assertEquals((await Promise.all(others)).map(({ content }) => content), [want, deep, want]);
    assertEquals((await stopped).status, 499);
    assertEquals((await json(server, "/completion", ask)).content, want);
  },
);

test("a reader that is too slow is given up, and its request ends", {
  readTimeout: 0.2,
  nCtx: 2048,
}, async (server) => {
  const response = await send(server, "/completion", { ...ENDLESS, stream: true });
  await until("the slot is free", async () => await busy(server) === 0 && server.inFlight === 0);
  await assertRejects(() => response.text(), Error, "too slow");
});

test(
  "an engine that computes on for a stopped request, and answers nothing, is loaded again",
  { stuckTimeout: 0.02, requestTimeout: 1 },
  async (server) => {
    const old = loadedModelOf(server);
    // Every "a" may be left out: a token takes seconds, and nothing in it looks at a stopped request.
    const grammar = `root ::= ${'"a"? '.repeat(999)}`;
    let first: number | undefined;
    await until("the model is loaded again", async () => {
      if (loadedModelOf(server) !== old) return true;
      // One that is stopped between two tokens leaves nothing behind: there is another.
      const stuck = await send(server, "/completion", { prompt: "x", n_predict: 100, grammar });
      await stuck.body?.cancel();
      first ??= stuck.status;
      return false;
    });
    assertEquals(first, 504);
    await until("it is ready", async () => (await send(server, "/health")).status === 200);
    // What is asked now may be too slow as well, but not for ever.
    await until("it answers", async () => {
      const response = await send(server, "/completion", { prompt: "x", n_predict: 1 });
      await response.body?.cancel();
      return response.status === 200;
    });
  },
);

/** Lets an assertion fail in a model's engine, which no request can do. */
function abortEngine(model: Model): void {
  const { call } = EngineClient.prototype;
  EngineClient.prototype.call = function (...args) {
    EngineClient.prototype.call = call;
    call.apply(this, [{ fn: "debug_abort" }]).catch(() => {});
    return call.apply(this, args);
  };
  model.tokenize("x").catch(() => {});
}

test(
  "an engine that ended is told to those that ran, and the model is loaded again",
  { nParallel: 3, nCtx: 2048 },
  async (server) => {
    const streamed = await send(server, "/completion", { ...ENDLESS, stream: true });
    const read = events(streamed);
    const whole = send(server, "/completion", ENDLESS);
    await until("both run", async () => await busy(server) === 2);
    abortEngine(loadedModelOf(server)!.model);
    const response = await whole;
    assertEquals(server.state, "loading");
    const { error } = await response.json();
    assertEquals([response.status, error.type], [500, "server_error"]);
    assert(!/rys\/up|GGML|\.cpp/.test(error.message), error.message);
    assertEquals((await read).at(-1).error.code, 500);
    await until("it is loaded again", () => server.state === "ready");
    assertEquals((await json(server, "/v1/chat/completions", CHAT)).choices.length, 1);
    assertEquals(await metric(server, "rys_reloads_total"), 1);
    assertEquals([await busy(server), server.inFlight], [0, 0]);
  },
);
