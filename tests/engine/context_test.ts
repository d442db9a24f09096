import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  type CacheType,
  EngineError,
  estimateCost,
  expandPlan,
  modelFacts,
  parsePlan,
  planHashHex,
  readModel,
} from "@rys/edge";
import { formsOf, randomPlan, seeded } from "../../src/plan/_testing.ts";
import { DEMO, greedy, pieces, SMALL, STORY, test } from "./_engine.ts";

const PLANS = ["none", "20,24", "18,22x2", "4,8;30,34"];

test("several contexts with different plans give at once what each gives alone", async (model) => {
  const alone: string[] = [];
  for (const repeatLayers of PLANS) {
    await using context = await model.createContext({ ...SMALL, repeatLayers });
    alone.push(await greedy(context, STORY, 16));
  }
  const contexts = await Promise.all(
    PLANS.map((repeatLayers) => model.createContext({ ...SMALL, repeatLayers })),
  );
  assertEquals(await Promise.all(contexts.map((context) => greedy(context, STORY, 16))), alone);
  await Promise.all(contexts.map((context) => context.dispose()));
});

test("several generations in one context give what each gives alone", async (model) => {
  const prompts = [
    STORY,
    "The cat",
    "A wolf is bigger than",
    "The capital of Norway",
    "Snow falls",
    "Two and two",
  ];
  await using one = await model.createContext({ ...SMALL, repeatLayers: "20,24" });
  const alone: string[] = [];
  for (const prompt of prompts) alone.push(await greedy(one, prompt, 12));
  await using many = await model.createContext({
    ...SMALL,
    nParallel: 3,
    nCtx: 1024,
    repeatLayers: "20,24",
  });
  const seen = new Map<string, number>();
  const running = prompts.map(async (prompt) => {
    let text = "";
    for await (
      const piece of many.generate(prompt, { maxTokens: 12, temperature: 0, ignoreEos: true })
    ) {
      seen.set(prompt, seen.get(prompt) ?? seen.size);
      text += piece.text;
    }
    return text;
  });
  assertEquals(await Promise.all(running), alone);
});

test("requests beyond nParallel run in the order they came", async (model) => {
  await using context = await model.createContext(SMALL);
  const ended: number[] = [];
  await Promise.all(Array.from({ length: 6 }, async (_, i) => {
    await greedy(context, STORY, 4);
    ended.push(i);
  }));
  assertEquals(ended, [0, 1, 2, 3, 4, 5]);
});

test("a hundred requests at once are all answered", async (model) => {
  await using context = await model.createContext({ ...SMALL, nParallel: 4 });
  const texts = await Promise.all(Array.from({ length: 100 }, () => greedy(context, STORY, 2)));
  assertEquals(new Set(texts).size, 1);
});

test("more than 4096 requests at once are refused, and those before them answered", async (model) => {
  await using context = await model.createContext(SMALL);
  const cancel = new AbortController();
  const outcomes = Array.from(
    { length: 4200 },
    () =>
      greedy(context, STORY, 1, { signal: cancel.signal }).then(
        () => "answered",
        (error) => error instanceof EngineError ? error.type : error.name,
      ),
  );
  const first = await outcomes[0];
  const last = await outcomes.at(-1);
  cancel.abort();
  const all = await Promise.all(outcomes);
  assertEquals([first, last], ["answered", "unavailable_error"]);
  assertEquals(all.filter((outcome) => outcome === "unavailable_error").length, 4200 - 4096);
  assertEquals((await greedy(context, STORY, 2)).length > 0, true);
});

test("every form of a plan gives the same context", async (model) => {
  const layers = model.expandPlan("20,24").layers;
  const forms = [
    "20,24",
    " 20 - 24 ",
    "20..23",
    layers,
    parsePlan("20,24"),
    { blocks: [[20, 24]] },
    { blocks: "20,24" },
    `slices:\n- sources:\n  - model: x\n    layer_range: [0, 24]\n- sources:\n  - model: x\n    layer_range: [20, 40]\n`,
    {
      rys_relayer: {
        source_num_layers: 40,
        target_num_layers: 44,
        layer_indices: layers,
      },
    },
  ];
  for (const repeatLayers of forms) {
    assertEquals(model.expandPlan(repeatLayers).layers, layers, JSON.stringify(repeatLayers));
    await using context = await model.createContext({ ...SMALL, repeatLayers });
    assertEquals(context.info.plan.layers, layers);
  }
});

test("what runs is what expandPlan() says, for random plans in every form", async (model) => {
  const random = seeded(23);
  const { nLayer } = model.info;
  const seen = new Set<string>();
  // The first has every form.
  const plans = [expandPlan("20,24", nLayer)];
  while (plans.length < 12) plans.push(randomPlan(random, nLayer, 80));
  for (const plan of plans) {
    for (const [form, repeatLayers] of Object.entries(formsOf(plan))) {
      assertEquals(model.expandPlan(repeatLayers).layers, plan.layers, form);
      // Each form with some of the plans: a context takes time.
      if (seen.has(form) && random() < 0.8) continue;
      seen.add(form);
      await using context = await model.createContext({ ...SMALL, nCtx: 256, repeatLayers });
      // The engine's own list and hash; a difference from what was asked for is an error of createContext().
      const { planHash } = context.info;
      assertEquals([form, planHash], [form, planHashHex(plan.layers)]);
    }
  }
  assertEquals([...seen].sort(), Object.keys(formsOf(plans[0]!)).sort());
});

test("a plan object runs by its blocks and layers, not by its text", async (model) => {
  const blocks = [{ repeatStart: 1, repeatEnd: 3, repeatCount: 2 }];
  for (
    const [repeatLayers, spec] of [
      [{ kind: "spec", spec: "26,34", blocks }, "1,3"],
      [{ kind: "path", spec: "", layers: [0, 1, 2, 3] }, "layers:0..3"],
    ] as const
  ) {
    await using context = await model.createContext({ ...SMALL, repeatLayers });
    const { layers } = expandPlan(repeatLayers, model.info.nLayer);
    assertEquals([context.info.plan.layers, context.info.plan.spec], [layers, spec]);
    assertEquals(context.info.planHash, planHashHex(layers));
  }
});

test("a context without a plan is one with the identity plan, bit for bit", async (model) => {
  const identity = Array.from({ length: model.info.nLayer }, (_, i) => i);
  const none = await model.logits(STORY, { threads: 1 });
  for (const repeatLayers of ["none", identity, "layers:0..39"]) {
    const { data } = await model.logits(STORY, { threads: 1, repeatLayers });
    assertEquals(new Uint8Array(data.buffer), new Uint8Array(none.data.buffer));
  }
  await using a = await model.createContext(SMALL);
  await using b = await model.createContext({ ...SMALL, repeatLayers: identity });
  assertEquals(a.info.planHash, b.info.planHash);
  assertEquals(await greedy(a, STORY, 24), await greedy(b, STORY, 24));
});

test("a plan changes the logits, and another plan changes them otherwise", async (model) => {
  const sets = await Promise.all(
    ["none", "20,24", "20,25", "20,24x2"].map(async (repeatLayers) =>
      (await model.logits(STORY, { threads: 1, repeatLayers })).data.join()
    ),
  );
  assertEquals(new Set(sets).size, 4);
});

test("logits() in small batches are those in one batch, nearly", async (model) => {
  const prompt = "The code of the fox is 48. The cat sat on the mat.";
  for (const repeatLayers of ["none", "20,24"]) {
    const whole = await model.logits(prompt, { threads: 1, repeatLayers });
    const parts = await model.logits(prompt, { threads: 1, repeatLayers, nBatch: 3, nUbatch: 3 });
    assertEquals(parts.tokens, whole.tokens);
    const worst = whole.data.reduce((w, x, i) => Math.max(w, Math.abs(x - parts.data[i]!)), 0);
    assert(worst < 0.05, `${worst}`);
  }
});

test("logits() does not depend on the number of threads", async (model) => {
  const one = await model.logits(STORY, { threads: 1, repeatLayers: "20,24" });
  const two = await model.logits(STORY, { threads: 2, repeatLayers: "20,24" });
  assertEquals(one.data, two.data);
});

test("logits() refuses what is not a prompt", async (model) => {
  await assertRejects(() => model.logits(""), RangeError, "no tokens");
  await assertRejects(() => model.logits([]), RangeError, "no tokens");
  await assertRejects(() => model.logits([model.info.nVocab]), RangeError, "token");
  await assertRejects(() => model.logits([-1]), RangeError, "token");
  await assertRejects(() => model.logits([0.5]), RangeError, "token");
  await assertRejects(() => model.logits(5 as unknown as string), TypeError);
});

test("logits() stops when its signal aborts", async (model) => {
  const cancel = new AbortController();
  const running = model.logits("word ".repeat(2000), { signal: cancel.signal, nBatch: 8 });
  await model.tokenize(STORY); // answered beside it, long before its end
  cancel.abort(new Error("enough"));
  await assertRejects(() => running, Error, "enough");
  assertEquals((await model.logits(STORY)).tokens.length, 4);
});

test("three contexts with plans take no byte more of weights", async (model) => {
  const bytes = new Set<number>();
  for (const repeatLayers of ["none", "20,24", "4,36"]) {
    await using context = await model.createContext({ ...SMALL, repeatLayers });
    bytes.add(context.info.modelBytes);
  }
  assertEquals(bytes.size, 1);
  // What each context takes is its caches and scratch, not the 3 MB of weights.
  const a = await Promise.all(
    ["none", "20,24", "4,36"].map((repeatLayers) =>
      model.createContext({ ...SMALL, repeatLayers })
    ),
  );
  assert(a[2]!.info.plan.nLayerEff === 72);
  assertEquals(a.map((context) => context.info.modelBytes), Array(3).fill([...bytes][0]));
  await Promise.all(a.map((context) => context.dispose()));
});

test("a context's caches are of the size that estimateCost() tells", async (model) => {
  const { header } = await readModel(DEMO);
  const facts = modelFacts(header);
  const cases: [string, number, number, CacheType, CacheType][] = [
    ["none", 512, 1, "f16", "f16"],
    ["20,24", 512, 1, "f16", "f16"],
    ["20,24", 700, 1, "q8_0", "q8_0"],
    ["4,36", 1024, 3, "q4_0", "q4_0"],
    ["20,24x3", 1000, 4, "f32", "f16"],
    ["20,24", 512, 2, "bf16", "f32"],
  ];
  for (const [repeatLayers, nCtx, nParallel, typeK, typeV] of cases) {
    await using context = await model.createContext({
      repeatLayers,
      nCtx,
      nParallel,
      threads: 1,
      cacheTypeK: typeK,
      cacheTypeV: typeV,
      swaFull: false,
    });
    const cost = estimateCost(facts, context.info.plan, {
      nCtx,
      nParallel,
      nBatch: 512,
      kvUnified: nParallel > 1,
      swaFull: false,
      cacheTypeK: typeK,
      cacheTypeV: typeV,
    });
    assertEquals(context.info.kvBytes, cost.plan.kvBytes, `${repeatLayers} ${nCtx} ${typeK}`);
    assertEquals(context.info.recurrentBytes, cost.plan.recurrentBytes);
    assertEquals(context.info.nCtx, cost.nCtx);
  }
});

test("quantised caches work with a plan", async (model) => {
  for (const type of ["q8_0", "q4_0"] as const) {
    await using context = await model.createContext({
      ...SMALL,
      repeatLayers: "20,24",
      cacheTypeK: type,
      cacheTypeV: type,
    });
    assert((await greedy(context, STORY, 8)).length > 0);
  }
});

test("a refused plan is an error that says why, and the model goes on", async (model) => {
  const wrong: [unknown, new (...args: never[]) => Error, string][] = [
    ["43,45", RangeError, "layer 43"],
    ["24,20", RangeError, "24"],
    ["20", SyntaxError, "20"],
    ["20,24;", SyntaxError, ""],
    ["1,39x20", RangeError, "512"],
    ["layers:1..39", RangeError, "0"],
    [[1, 2, 3], RangeError, "0"],
    [[0, "1"], TypeError, ""],
    [[0, NaN], TypeError, ""],
    [5, TypeError, ""],
    [null, TypeError, ""],
    [{}, TypeError, ""],
    [{ blocks: 5 }, TypeError, ""],
  ];
  for (const [plan, kind, part] of wrong) {
    const error = await assertRejects(() =>
      model.createContext({ ...SMALL, repeatLayers: plan as string })
    );
    assert(
      error instanceof kind || error instanceof TypeError || error instanceof RangeError,
      `${JSON.stringify(plan)}: ${error}`,
    );
    assert((error as Error).message.includes(part), `${JSON.stringify(plan)}: ${error}`);
  }
  await using context = await model.createContext(SMALL);
  assert((await greedy(context, STORY, 2)).length > 0);
});

test("createContext() refuses wrong options by name", async (model) => {
  const wrong: [Record<string, unknown>, string][] = [
    ...["nCtx", "nBatch", "nUbatch", "nParallel", "threads"].flatMap((name) =>
      [NaN, -1, 0, 1.5, 1e12, "8", null, Infinity].map((value) =>
        [{ [name]: value }, name] as [Record<string, unknown>, string]
      )
    ),
    [{ nParallel: 257 }, "nParallel"],
    [{ cacheTypeK: "q9" }, "cacheTypeK"],
    [{ cacheTypeV: 5 }, "cacheTypeV"],
    [{ flashAttention: true }, "flashAttention"],
    [{ swaFull: "yes" }, "swaFull"],
    [{ contextShift: 1 }, "contextShift"],
    [{ cacheRamMib: -2 }, "cacheRamMib"],
    [{ chatTemplate: 5 }, "chatTemplate"],
    [{ speculative: { type: "magic" } }, "speculative.type"],
    [{ speculative: { type: "draft" } }, "speculative.model"],
    [{ speculative: { type: "ngram", nMax: 0 } }, "speculative.nMax"],
    [{ speculative: "draft" }, "speculative"],
    [{ lora: [{ path: 5 }] }, "lora"],
    [{ lora: "x" }, "lora"],
    [{ lora: [{ path: "x", scale: NaN }] }, "lora"],
    [{ args: "x" }, "args"],
    [{ args: [5] }, "args"],
    [{ contextSize: 128 }, `"contextSize"; did you mean "nCtx"?`],
    [{ nctx: 128 }, `did you mean "nCtx"?`],
    [{ speculative: { type: "ngram", nmax: 2 } }, `did you mean "nMax"?`],
    [{ signal: undefined }, "signal"],
  ];
  for (const [options, name] of wrong) {
    const error = await assertRejects(() => model.createContext({ ...SMALL, ...options }));
    assert(
      error instanceof TypeError || error instanceof RangeError,
      `${JSON.stringify(options)}: ${error}`,
    );
    assert(error.message.includes(name), `${JSON.stringify(options)}: ${error.message}`);
  }
});

test("createContext() refuses flags that upstream does not know, and the engine lives", async (model) => {
  for (
    const args of [
      ["--nonsense"],
      ["-c"],
      ["-c", "many"],
      ["--rope-scaling", "sideways"],
      ["--help"],
      ["--version"],
      ["-m", "/x"],
      ["--list-devices"],
    ]
  ) {
    try {
      await using context = await model.createContext({ ...SMALL, args });
      assert(context.info.nCtx > 0);
    } catch (error) {
      assert(error instanceof EngineError && !error.fatal, `${args}: ${error}`);
    }
  }
  await using context = await model.createContext(SMALL);
  assert((await greedy(context, STORY, 2)).length > 0);
});

test("a context that does not fit into memory is an error, and the engine lives", async (model) => {
  for (const nCtx of [2 ** 31 - 1, 2 ** 22]) {
    const error = await assertRejects(
      () => model.createContext({ nCtx, threads: 1, cacheTypeK: "f32", cacheTypeV: "f32" }),
      EngineError,
    );
    assert(!error.fatal, error.message);
  }
  await using context = await model.createContext(SMALL);
  assert((await greedy(context, STORY, 2)).length > 0);
});

test("contextShift goes on where the context is full", async (model) => {
  await using context = await model.createContext({
    ...SMALL,
    nCtx: 256,
    repeatLayers: "20,24",
    contextShift: true,
  });
  const { nGenerated, finishReason } = await context.generate(STORY, {
    maxTokens: 300,
    temperature: 0,
    ignoreEos: true,
  }).completion();
  assertEquals([nGenerated, finishReason], [300, "length"]);
});

test("saveState() and loadState() go on as if nothing had been", async (model) => {
  const options = { ...SMALL, repeatLayers: "20,24" };
  const prompt = "The code of the fox is 48. The code of the cat is 12. What is";
  await using a = await model.createContext(options);
  const whole = await greedy(a, prompt, 12);
  const state = await a.saveState();
  assert(state.length > 1000);
  await using b = await model.createContext(options);
  await b.loadState(state);
  const again = await b.generate(prompt, { maxTokens: 12, temperature: 0, ignoreEos: true })
    .completion();
  assertEquals(again.text, whole);
  assert(again.timings.cachedTokens > 0, "the state was not used");
});

test("saveState() and loadState() go on with several slots, without naming one", async (model) => {
  const options = { nCtx: 512, threads: 1, repeatLayers: "20,24" };
  const prompt = "The code of the fox is 48. The code of the cat is 12. What is";
  await using a = await model.createContext(options);
  await assertRejects(() => a.saveState(), EngineError, "empty");
  const end = await a.generate(prompt, { maxTokens: 12, temperature: 0, ignoreEos: true })
    .completion();
  const state = await a.saveState();
  assertEquals(state, await a.saveState(end.slot));
  const other = (end.slot + 1) % 4;
  await assertRejects(() => a.saveState(other), EngineError, `Slot ${other} is empty`);

  for (const into of [undefined, 2]) {
    await using b = await model.createContext(options);
    await b.loadState(state, into);
    assertEquals((await b.saveState()).length, state.length);
    await b.generate("A day in winter", { maxTokens: 2 }).text(); // takes another slot
    const again = await b.generate(prompt + end.text, { maxTokens: 2 }).completion();
    assert(again.timings.cachedTokens > 20, `${again.timings.cachedTokens}`);
    assertEquals(again.slot, into ?? 0);
  }

  // A state that is less than a tenth of the prompt
  await using c = await model.createContext(options);
  await c.generate("The code", { maxTokens: 1 }).text();
  const short = await c.saveState();
  await using d = await model.createContext(options);
  await d.loadState(short);
  const long = "The code" + " of the fox and the cat and the dog and the wolf".repeat(6);
  const { timings } = await d.generate(long, { maxTokens: 1, slot: 0 }).completion();
  assert(timings.cachedTokens > 0, "the slot was not used");
});

test("loadState() refuses a state of another plan, form, or none, and the context goes on", async (model) => {
  const base = { ...SMALL, repeatLayers: "20,24" };
  await using source = await model.createContext(base);
  const text = await greedy(source, STORY, 8);
  const state = await source.saveState();
  const garbage = crypto.getRandomValues(new Uint8Array(4096));
  const flipped = state.slice();
  flipped.fill(0xff, 12, 64);
  const states: [string, Uint8Array][] = [
    ["empty", new Uint8Array()],
    ["garbage", garbage],
    ["magic only", state.slice(0, 8)],
    ["half", state.slice(0, state.length >> 1)],
    ["cut", state.slice(0, state.length - 5)],
    ["absurd counts", flipped],
  ];
  const refuse = async (context: typeof source, bytes: Uint8Array, what: string) => {
    const error = await assertRejects(() => context.loadState(bytes), EngineError);
    assert(!error.fatal, `${what}: ${error.message}`);
    assert(error.message.length > 0);
    assertEquals(await greedy(context, STORY, 8), await greedy(context, STORY, 8), what);
  };
  for (const [what, bytes] of states) await refuse(source, bytes, what);
  assertEquals(await greedy(source, STORY, 8), text);
  for (
    const other of [
      { ...base, repeatLayers: "21,25" },
      { ...base, repeatLayers: "none" },
      { ...base, cacheTypeK: "q8_0" as const },
    ]
  ) {
    await using context = await model.createContext(other);
    await refuse(context, state, JSON.stringify(other));
  }
  await assertRejects(() => source.saveState(1), RangeError, "slot");
  await assertRejects(() => source.loadState(state, -1), RangeError, "slot");
  await assertRejects(() => source.loadState("x" as unknown as Uint8Array), TypeError);
});

test("embed() gives vectors of length one, under the plan", async (model) => {
  await using none = await model.createContext(SMALL);
  await using plan = await model.createContext({ ...SMALL, repeatLayers: "20,24" });
  const [a, b] = await none.embed(["The cat sat.", "A wolf eats meat."]);
  assertEquals(a!.length, model.info.nEmbd);
  assert(Math.abs(Math.hypot(...a!) - 1) < 1e-4);
  assert(a!.join() !== b!.join());
  assertEquals((await none.embed("The cat sat."))[0], a);
  const [c] = await plan.embed("The cat sat.");
  assert(c!.join() !== a!.join());
  await assertRejects(() => none.embed([]), RangeError, "empty");
  await assertRejects(() => none.embed([5 as unknown as string]), TypeError, "Text 0");
  await assertRejects(() => none.embed("word ".repeat(3000)), EngineError);
  assertEquals((await none.embed("The cat sat."))[0], a);
});

test("tokenize() and detokenize() give any text back", async (model) => {
  for (
    const text of [
      "",
      " ",
      "Once upon a time",
      "\u00e9\u{1f999} \u65e5\u672c\n\t x",
      "<|im_start|>user",
      "a\0b",
      "a".repeat(5000),
    ]
  ) {
    const tokens = await model.tokenize(text, { addSpecial: false });
    assertEquals(await model.detokenize(tokens), text);
  }
  assertEquals(await model.tokenize("\ud800"), await model.tokenize("\ufffd"));
  const special = await model.tokenize("<|im_end|>", { parseSpecial: true });
  const plain = await model.tokenize("<|im_end|>", { parseSpecial: false });
  assertEquals(special, [model.info.eos!]);
  assert(plain.join() !== special.join());
  await assertRejects(() => model.tokenize(5 as unknown as string), TypeError);
});

test("detokenize() refuses tokens outside the vocabulary", async (model) => {
  for (const token of [-1, model.info.nVocab, 1e12, 0.5, NaN, "1"]) {
    await assertRejects(() => model.detokenize([token as number]), `${token}`);
  }
  assertEquals(await model.detokenize([]), "");
  // Bytes that are not text come out as U+FFFD.
  assertEquals(await model.detokenize([3 + 0xff]), "\ufffd");
});

test("request() answers as llama-server does", async (model) => {
  await using context = await model.createContext({ ...SMALL, nParallel: 2 });
  const json = async (path: string, body?: unknown) => {
    const response = await context.request(path, body);
    return { ...response, json: JSON.parse(new TextDecoder().decode(response.body)) };
  };
  assertEquals((await json("/health")).json, { status: "ok" });
  assertEquals((await json("/slots")).json.length, 2);
  assertEquals((await json("/v1/models")).json.data[0].object, "model");
  assertEquals(
    (await json("/tokenize", { content: STORY })).json.tokens,
    await model.tokenize(STORY),
  );
  const completion = await json("/completion", { prompt: STORY, n_predict: 3, temperature: 0 });
  assertEquals(completion.status, 200);
  assert(completion.contentType.startsWith("application/json"));
  assertEquals(
    completion.json.content,
    await context.generate(STORY, { maxTokens: 3, temperature: 0 }).text(),
  );
  const chat = await json("/v1/chat/completions", {
    messages: [{ role: "user", content: "Hi" }],
    max_tokens: 3,
  });
  assertEquals(chat.json.choices[0].message.role, "assistant");
});

test("request() streams what it answers at once", async (model) => {
  await using context = await model.createContext(SMALL);
  const parts: string[] = [];
  const decoder = new TextDecoder();
  const { status, contentType, body } = await context.request("/completion", {
    prompt: STORY,
    n_predict: 6,
    temperature: 0,
    stream: true,
  }, { onChunk: (bytes) => parts.push(decoder.decode(bytes, { stream: true })) });
  assertEquals([status, contentType, body.length], [200, "text/event-stream", 0]);
  const events = parts.join("").split("\n\n").filter((event) => event.startsWith("data: {"));
  const text = events.map((event) => JSON.parse(event.slice(6)).content).join("");
  assertEquals(text, await greedy(context, STORY, 6, { ignoreEos: false }));
});

test("request() gives llama-server's errors as answers", async (model) => {
  await using context = await model.createContext(SMALL);
  const error = async (path: string, body?: unknown) => {
    const response = await context.request(path, body);
    const { error } = JSON.parse(new TextDecoder().decode(response.body));
    assertEquals(error.code, response.status);
    return [response.status, error.type];
  };
  assertEquals(await error("/nowhere"), [404, "not_found_error"]);
  assertEquals(await error("/nowhere", {}), [404, "not_found_error"]);
  assertEquals(await error("/completion"), [404, "not_found_error"]);
  assertEquals(await error("/completion", {}), [400, "invalid_request_error"]);
  assertEquals(await error("/completion", 5), [400, "invalid_request_error"]);
  assertEquals(await error("/completion", { prompt: STORY, n_predict: "x" }), [
    400,
    "invalid_request_error",
  ]);
  assertEquals(await error("/completion", { prompt: "a ".repeat(900) }), [
    400,
    "exceed_context_size_error",
  ]);
  assertEquals(await error("/v1/chat/completions", { messages: "x" }), [
    400,
    "invalid_request_error",
  ]);
  assertEquals((await error("/slots/x?action=save", { filename: "x" }))[0], 400);
  assertEquals((await error("/embedding", { input: "x" }))[0], 501);
  assert((await greedy(context, STORY, 2)).length > 0);
});

test("request() fails with what onChunk throws, and the context goes on", async (model) => {
  await using context = await model.createContext(SMALL);
  await assertRejects(
    () =>
      context.request("/completion", { prompt: STORY, stream: true, n_predict: 100 }, {
        onChunk: () => {
          throw new Error("no more");
        },
      }),
    Error,
    "no more",
  );
  assert((await greedy(context, STORY, 2)).length > 0);
});

test("applyTemplate() refuses what is not a chat", async (model) => {
  await using context = await model.createContext(SMALL);
  for (const messages of [[], [{}], "x", [{ role: "user" }], null]) {
    try {
      await context.applyTemplate(messages as never);
    } catch (error) {
      assert(error instanceof EngineError || error instanceof TypeError, `${error}`);
      assert(!(error instanceof EngineError && error.fatal));
    }
  }
  assert((await context.applyTemplate([{ role: "user", content: "Hi" }])).includes("Hi"));
});

test("speculative decoding with n-grams gives the same text, with a plan", async (model) => {
  const prompt = "one two three four one two three four one two three four one";
  for (const repeatLayers of ["none", "20,24"]) {
    await using plain = await model.createContext({ ...SMALL, repeatLayers });
    await using drafted = await model.createContext({
      ...SMALL,
      repeatLayers,
      speculative: { type: "ngram" },
    });
    assertEquals(await greedy(drafted, prompt, 32), await greedy(plain, prompt, 32));
  }
});

test("speculative decoding with a draft model gives the same text, with a plan", async (model) => {
  for (const repeatLayers of ["none", "20,24"]) {
    await using plain = await model.createContext({ ...SMALL, repeatLayers });
    await using drafted = await model.createContext({
      ...SMALL,
      repeatLayers,
      speculative: { type: "draft", model: DEMO, nMax: 4 },
    });
    const { text, timings } = await drafted.generate(STORY, {
      maxTokens: 32,
      temperature: 0,
      ignoreEos: true,
    }).completion();
    assertEquals(text, await greedy(plain, STORY, 32));
    assert(timings.draftTokens! > 0);
    assertEquals(timings.draftAccepted! > 0, true);
  }
});

test("a draft model that is missing or no model is an error, and the engine lives", async (model) => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/text.gguf`, "this is not a model");
  for (const path of [`${folder}/missing.gguf`, `${folder}/text.gguf`]) {
    const error = await assertRejects(() =>
      model.createContext({ ...SMALL, speculative: { type: "draft", model: path } })
    ) as Error;
    assert(error.message.includes(path), error.message);
  }
  await Deno.remove(folder, { recursive: true });
  await using context = await model.createContext(SMALL);
  assert((await pieces(context, STORY, { maxTokens: 1 })).length > 0);
  assertThrows(() => context.generate(5 as unknown as string), TypeError);
});
