import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Context, EngineError, loadModel } from "@rys/edge";
import { child, DEMO, greedy, SMALL, STORY } from "./_engine.ts";

// With Deno's sanitizers on: a Worker or a timer that stays fails the test.

Deno.test("dispose() twice is harmless, in any order", async () => {
  const model = await loadModel(DEMO);
  const a = await model.createContext(SMALL);
  const b = await model.createContext(SMALL);
  await Promise.all([a.dispose(), a.dispose()]);
  await a.dispose();
  assert(a.disposed && !b.disposed);
  assert((await greedy(b, STORY, 2)).length > 0);
  await Promise.all([model.dispose(), model.dispose(), b.dispose()]);
  await model.dispose();
  await b.dispose();
  assert(model.disposed && b.disposed);
});

Deno.test("dispose() during a generation waits, and the generation ends with an error", async () => {
  await using model = await loadModel(DEMO);
  const context = await model.createContext(SMALL);
  const running = greedy(context, STORY, 400);
  const waiting = greedy(context, STORY, 400);
  await greedyStarted(context);
  const [, first, second] = await Promise.allSettled([context.dispose(), running, waiting]);
  for (const outcome of [first, second]) {
    assert(outcome.status === "rejected" && outcome.reason instanceof EngineError);
    assert(outcome.reason.message.includes("disposed"), outcome.reason.message);
    assertEquals(outcome.reason.fatal, false);
  }
  await assertRejects(() => greedy(context, STORY, 1), EngineError, "disposed");
  await assertRejects(() => context.request("/health"), EngineError, "disposed");
  await assertRejects(() => context.saveState(), EngineError, "disposed");
  const logits = context.logits(STORY); // rejects and does not throw
  await assertRejects(() => logits, EngineError, "The context is disposed");
  await using other = await model.createContext(SMALL);
  assert((await greedy(other, STORY, 2)).length > 0);
});

Deno.test("requests and embeddings that dispose() overtakes reject, and those before it are right", async () => {
  await using model = await loadModel(DEMO);
  const outcomes: string[] = [];
  for (let round = 0; round < 12; round++) {
    const context = await model.createContext(SMALL);
    if (round % 3 === 0) await context.embed("x"); // else dispose() comes while the embeddings' context is made
    const body = { prompt: STORY, n_predict: 2 };
    const calls = [
      context.request("/health"),
      context.request("/slots"),
      context.request("/tokenize", { content: STORY }),
      context.request("/completion", body),
      context.request("/completion", { ...body, stream: true }),
      context.embed(STORY),
      context.logits(STORY),
    ];
    for (let turn = 0; turn < round; turn++) await new Promise((resolve) => setTimeout(resolve));
    const disposed = context.dispose();
    for (const outcome of await Promise.allSettled(calls)) {
      if (outcome.status === "rejected") {
        assertEquals(outcome.reason.message, "The context is disposed");
        outcomes.push("rejected");
        continue;
      }
      const { value } = outcome;
      if (typeof value === "object" && "status" in value) {
        assert(value.body.length > 0, `status ${value.status} without a body`);
        assert(value.status === 200 || value.status === 404, `status ${value.status}`);
      }
    }
    await disposed;
  }
  assert(outcomes.length > 0);
});

async function greedyStarted(context: Context): Promise<void> {
  while (true) {
    const { body } = await context.request("/slots");
    if (new TextDecoder().decode(body).includes('"is_processing":true')) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

Deno.test("a model disposed of during generations, prompts and new contexts ends them", async () => {
  const model = await loadModel(DEMO);
  const context = await model.createContext(SMALL);
  const calls = [
    greedy(context, STORY, 400),
    model.logits("word ".repeat(1500), { nBatch: 8 }),
    model.createContext(SMALL),
    context.embed("The cat"),
    model.tokenize("The cat"),
  ];
  const settled = Promise.allSettled(calls);
  await greedyStarted(context);
  await model.dispose();
  const outcomes = await settled;
  assertEquals(outcomes[0]!.status, "rejected");
  for (const outcome of outcomes) {
    if (outcome.status === "rejected") {
      assert(outcome.reason instanceof EngineError, String(outcome.reason));
    }
  }
  await assertRejects(() => model.tokenize("x"), EngineError, "disposed");
  await assertRejects(() => model.createContext(SMALL), EngineError, "disposed");
  await assertRejects(() => model.heapBytes(), EngineError, "disposed");
});

Deno.test("await using works in any order", async () => {
  let context;
  {
    await using model = await loadModel(DEMO);
    await using a = await model.createContext(SMALL);
    context = await model.createContext(SMALL);
    assert((await greedy(a, STORY, 2)).length > 0);
  }
  assert(context.disposed);
  await context.dispose();
});

Deno.test("a context made and disposed of at once leaves nothing", async () => {
  await using model = await loadModel(DEMO);
  for (let i = 0; i < 5; i++) await (await model.createContext(SMALL)).dispose();
});

Deno.test("contexts made and disposed of again and again take no more memory", async () => {
  await using model = await loadModel(DEMO);
  const round = async () => {
    await using context = await model.createContext({ ...SMALL, nCtx: 2048, repeatLayers: "4,36" });
    await greedy(context, STORY, 2);
  };
  for (let i = 0; i < 3; i++) await round();
  const before = await model.heapBytes();
  for (let i = 0; i < 12; i++) await round();
  assertEquals(await model.heapBytes(), before);
});

Deno.test("a model is loaded and disposed of ten times", async () => {
  for (let i = 0; i < 10; i++) await (await loadModel(DEMO)).dispose();
});

Deno.test("a signal stops the loading, at any time, and leaves nothing", async () => {
  for (const at of [0, 1, 500, 900]) {
    const cancel = new AbortController();
    const loading = loadModel(DEMO, {
      signal: cancel.signal,
      onProgress: (fraction) => fraction * 1000 >= at && cancel.abort(new Error("enough")),
    });
    await assertRejects(() => loading, Error, "enough");
  }
  const signal = AbortSignal.abort(new Error("before"));
  await assertRejects(() => loadModel(DEMO, { signal }), Error, "before");
  const soon = new AbortController();
  const loading = loadModel(DEMO, { signal: soon.signal });
  soon.abort(new Error("at once"));
  await assertRejects(() => loading, Error, "at once");
});

Deno.test("a process that loads a model and does not dispose of it can be ended by Deno.exit()", async () => {
  const code = `
    import { loadModel } from "${new URL("../../mod.ts", import.meta.url)}";
    const model = await loadModel(${JSON.stringify(DEMO)});
    const context = await model.createContext({ nCtx: 256, nParallel: 1 });
    for await (const piece of context.generate("Once")) { console.log("one"); Deno.exit(7); }`;
  const { code: exit, stdout } = await child(code);
  assertEquals([exit, stdout], [7, "one\n"]);
});

Deno.test("a process ends by itself while a model is loaded, but not before what it waits for", async () => {
  for (
    const source of [JSON.stringify(DEMO), `new Blob([Deno.readFileSync(${JSON.stringify(DEMO)})])`]
  ) {
    const code = `
      import { loadModel } from "${new URL("../../mod.ts", import.meta.url)}";
      const model = await loadModel(${source});
      const context = await model.createContext({ nCtx: 256 });
      await context.generate("Once", { maxTokens: 3 }).text();
      await model.heapBytes();
      await context.saveState();
      for await (const _ of context.generate("Once")) break;
      context.generate("Once", { maxTokens: 20 }).text().then(() => console.log("done"));`;
    const { code: exit, stdout } = await child(code);
    assertEquals([exit, stdout], [0, "done\n"]);
  }
});

Deno.test("a process ends by itself once its model is disposed of", async () => {
  const code = `
    import { loadModel } from "${new URL("../../mod.ts", import.meta.url)}";
    const model = await loadModel(${JSON.stringify(DEMO)});
    const context = await model.createContext({ nCtx: 256 });
    await context.generate("Once", { maxTokens: 3 }).text();
    await model.dispose();
    console.log("done");`;
  const { code: exit, stdout } = await child(code);
  assertEquals([exit, stdout], [0, "done\n"]);
});
