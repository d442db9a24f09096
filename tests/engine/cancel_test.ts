import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Context } from "@rys/edge";
import { greedy, SMALL, STORY, test } from "./_engine.ts";

const LONG = { maxTokens: 400, temperature: 0, ignoreEos: true } as const;

/** Slots that are at work. */
async function busy(context: Context): Promise<number> {
  const { body } = await context.request("/slots");
  const slots = JSON.parse(new TextDecoder().decode(body)) as { is_processing: boolean }[];
  return slots.filter((slot) => slot.is_processing).length;
}

/** Waits until no slot is at work; a token or a micro-batch may be under way when a cancel has returned. */
async function idle(context: Context): Promise<void> {
  for (let i = 0; await busy(context) > 0; i++) {
    assert(i < 10_000, "a slot is still at work");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("a signal stops a generation, and its reason is what is thrown", async (model) => {
  await using context = await model.createContext(SMALL);
  for (const prompt of [STORY, [{ role: "user", content: "Tell me a story." }]]) {
    const cancel = new AbortController();
    const reason = new Error("enough");
    let n = 0;
    const error = await assertRejects(async () => {
      for await (const _ of context.generate(prompt, { ...LONG, signal: cancel.signal })) {
        if (++n === 3) cancel.abort(reason);
      }
    });
    assertEquals(error, reason);
    assert(n < 100, `${n} pieces`);
    await idle(context);
  }
  assert((await greedy(context, STORY, 4)).length > 0);
});

test("a signal stops a prompt that is worked on", async (model) => {
  await using context = await model.createContext({ ...SMALL, nCtx: 2048, nBatch: 8, nUbatch: 8 });
  const cancel = new AbortController();
  const running = context.generate("word ".repeat(380), { ...LONG, signal: cancel.signal }).text();
  while (await busy(context) === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  cancel.abort();
  const error = await assertRejects(() => running) as DOMException;
  assertEquals(error.name, "AbortError");
  await idle(context);
  assert((await greedy(context, STORY, 4)).length > 0);
});

test("a signal takes a waiting request out of the queue, which never starts", async (model) => {
  await using context = await model.createContext(SMALL);
  const first = greedy(context, STORY, 60);
  const cancel = new AbortController();
  let pieces = 0;
  const second = (async () => {
    for await (const _ of context.generate("The cat", { ...LONG, signal: cancel.signal })) pieces++;
  })();
  const third = greedy(context, STORY, 60);
  cancel.abort();
  await assertRejects(() => second);
  assertEquals(pieces, 0);
  assertEquals(await first, await third);
});

test("a signal that has aborted already starts nothing", async (model) => {
  await using context = await model.createContext(SMALL);
  const signal = AbortSignal.abort(new Error("before"));
  await assertRejects(() => context.generate(STORY, { signal }).text(), Error, "before");
  await assertRejects(
    () => context.request("/completion", { prompt: STORY }, { signal }),
    Error,
    "before",
  );
  await assertRejects(() => model.logits(STORY, { signal }), Error, "before");
  assertEquals(await busy(context), 0);
});

test("a signal that aborts after the end changes nothing", async (model) => {
  await using context = await model.createContext(SMALL);
  const cancel = new AbortController();
  const text = await greedy(context, STORY, 4, { signal: cancel.signal });
  cancel.abort();
  assertEquals(await greedy(context, STORY, 4), text);
});

test("leaving the loop frees the slot", async (model) => {
  await using context = await model.createContext(SMALL);
  for (let i = 0; i < 5; i++) {
    for await (const _ of context.generate(STORY, LONG)) break;
  }
  await idle(context);
  assert((await greedy(context, STORY, 4)).length > 0);
});

test("throwing inside the loop frees the slot", async (model) => {
  await using context = await model.createContext(SMALL);
  await assertRejects(
    async () => {
      for await (const _ of context.generate(STORY, LONG)) throw new Error("mine");
    },
    Error,
    "mine",
  );
  await idle(context);
  assert((await greedy(context, STORY, 4)).length > 0);
});

test("cancelling one request touches no other", async (model) => {
  await using context = await model.createContext({ ...SMALL, nCtx: 1024, nParallel: 3 });
  const want = await greedy(context, STORY, 40);
  const cancel = new AbortController();
  const a = greedy(context, STORY, 40);
  const b = (async () => {
    const { signal } = cancel;
    for await (const _ of context.generate("The cat", { ...LONG, signal })) cancel.abort();
  })();
  const c = greedy(context, STORY, 40);
  await assertRejects(() => b);
  assertEquals([await a, await c], [want, want]);
  // The next ones as well: an abort does not stay.
  assertEquals(await greedy(context, STORY, 40), want);
});

test("one signal stops all requests that carry it", async (model) => {
  await using context = await model.createContext({ ...SMALL, nParallel: 2 });
  const cancel = new AbortController();
  const all = Array.from({ length: 8 }, async () => {
    // The first piece of any of them stops them all.
    const { signal } = cancel;
    for await (const _ of context.generate(STORY, { ...LONG, signal })) cancel.abort();
  });
  const outcomes = await Promise.allSettled(all);
  assertEquals(outcomes.map(({ status }) => status), Array(8).fill("rejected"));
  await idle(context);
});

test("a signal stops a request() that is not streamed", async (model) => {
  await using context = await model.createContext({ ...SMALL, nCtx: 2048 });
  const cancel = new AbortController();
  const running = context.request("/completion", {
    prompt: STORY,
    n_predict: 2000,
    ignore_eos: true,
  }, {
    signal: cancel.signal,
  });
  while (await busy(context) === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  cancel.abort(new Error("enough"));
  await assertRejects(() => running, Error, "enough");
  await idle(context);
});
