import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { CHAT, events, json, metric, refusal, send, test, until } from "./_server.ts";

const GREEDY = { prompt: "Once upon a time", temperature: 0, n_predict: 12 } as const;
const ALIASES = { aliases: { deep: "26,34", plain: "none", again: undefined } };

test(
  "a request chooses its plan by an alias, by a name with a plan, and by a field",
  ALIASES,
  async (server) => {
    for (
      const [ask, name] of [
        [{ model: "deep" }, "deep"],
        [{ model: "demo@26,34" }, "demo@26,34"],
        [{ repeat_layers: "26,34" }, "demo@26,34"],
        // The plan that runs is not the alias's: the answer names the model.
        [{ model: "plain", repeat_layers: "26,34" }, "demo@26,34"],
        [{ model: "deep@26..33" }, "demo@26..33"],
        [{ model: "gpt-4o@26,34" }, "demo@26,34"],
        [{ model: "gpt-4o", repeat_layers: "26..33" }, "demo@26..33"],
      ] as const
    ) {
      const { rys, system_fingerprint: fingerprint, model } = await json(
        server,
        "/v1/chat/completions",
        { ...CHAT, ...ask },
      );
      assertEquals([rys.n_layer, rys.n_layer_eff], [40, 48], JSON.stringify(ask));
      assertEquals(model, name);
      assert(fingerprint.endsWith(` ${rys.plan}`), fingerprint);
    }
    for (
      const ask of [{}, { model: "plain" }, { model: "again" }, { model: "gpt-4o" }, {
        model: null,
      }]
    ) {
      const { rys } = await json(server, "/v1/chat/completions", { ...CHAT, ...ask });
      assertEquals([rys.plan, rys.n_layer_eff], ["none", 40], JSON.stringify(ask));
    }
    // Spellings of the same layers share a context.
    assertEquals(await metric(server, "rys_contexts"), 2);
  },
);

test("repeat_layers takes what readPlan() takes", {}, async (server) => {
  const all = Array.from({ length: 40 }, (_, i) => i);
  for (
    const plan of [
      [...all.slice(0, 34), ...all.slice(26)],
      { blocks: [[26, 34]] },
      { layers: "0..33,26..39" },
    ]
  ) {
    const { rys } = await json(server, "/completion", { ...GREEDY, repeat_layers: plan });
    assertEquals([rys.n_layer_eff, rys.plan_hash], [48, "5bfe3851a8f708c5"]);
  }
  assertEquals(await metric(server, "rys_contexts"), 2);
});

test("the plan that is named is the plan that runs", { maxContexts: 3 }, async (server) => {
  const text = async (repeat_layers?: string) =>
    (await json(server, "/completion", { ...GREEDY, ...repeat_layers ? { repeat_layers } : {} }))
      .content;
  const plain = await text();
  assertEquals(await text("none"), plain);
  const deep = await text("layers:0..19,10..39");
  assertNotEquals(deep, plain);
  // At once and in turn.
  const mixed = await Promise.all([text(), text("layers:0..19,10..39"), text(), text("10,20")]);
  assertEquals(mixed, [plain, deep, plain, deep]);
});

test("a wrong plan is refused with the parser's message", ALIASES, async (server) => {
  for (
    const [ask, part, param] of [
      [{ model: "demo@26,99" }, "out of range: the model has layers 0..39", "model"],
      [{ model: "demo@" }, "", "model"],
      [{ model: "deep@x" }, "Cannot parse", "model"],
      [{ repeat_layers: "34,26" }, "34,26", "repeat_layers"],
      [{ repeat_layers: "1,2x999" }, "512", "repeat_layers"],
      [{ repeat_layers: 26 }, "must be a plan", "repeat_layers"],
      [{ repeat_layers: ["a"] }, "layers[0]", "repeat_layers"],
      [{ repeat_layers: {} }, "expected text", "repeat_layers"],
      [{ repeat_layers: "1,2;".repeat(10_000) }, "characters", "repeat_layers"],
      [{ model: 5 }, `"model" must be a string`, undefined],
    ] as const
  ) {
    const error = await refusal(server, 400, "/v1/chat/completions", { ...CHAT, ...ask });
    assertEquals([error.type, error.param], ["invalid_request_error", param], error.message);
    assert(error.message.includes(part), error.message);
  }
  assertEquals(await metric(server, "rys_contexts"), 1);
});

test("names of models can be strict", { ...ALIASES, strictModels: true }, async (server) => {
  const error = await refusal(server, 404, "/v1/chat/completions", { ...CHAT, model: "gpt-4o" });
  assert(error.message.includes('"demo", "deep"'), error.message);
  await refusal(server, 404, "/v1/chat/completions", { ...CHAT, model: "gpt@26,34" });
  await json(server, "/v1/chat/completions", { ...CHAT, model: "deep" });
  await json(server, "/v1/chat/completions", { ...CHAT, model: "demo@26,34" });
});

test("/v1/models lists the names and their plans", ALIASES, async (server) => {
  const { data, rys } = await json(server, "/v1/models");
  assertEquals(
    data.map((one: { id: string; rys: { plan: string } }) => [one.id, one.rys.plan]),
    [["demo", "none"], ["deep", "26,34"], ["plain", "none"], ["again", "none"]],
  );
  assertEquals(data[0].meta.n_params, 1684992);
  assertEquals([rys.n_layer, rys.plan, rys.aliases.deep], [40, "none", "26,34"]);
  assertEquals((await json(server, "/v1/models/deep")).rys.n_layer_eff, 48);
  assertEquals((await json(server, "/v1/models/demo%4020,22")).rys.n_layer_eff, 42);
  await refusal(server, 404, "/v1/models/other");
});

test("a stream says which plan ran", {}, async (server) => {
  const model = "demo@26,34";
  const chat = await events(
    await send(server, "/v1/chat/completions", {
      ...CHAT,
      model,
      seed: 7,
      stream: true,
      stream_options: { include_usage: true },
    }),
  );
  assertEquals(chat.at(-1), "[DONE]");
  for (const chunk of chat.slice(0, -1)) {
    assertEquals(chunk.model, model);
    assert(chunk.system_fingerprint.endsWith(" 26,34"));
  }
  const { rys, usage } = chat.at(-2);
  assertEquals([rys.plan, rys.n_layer_eff, rys.seed, usage.completion_tokens], ["26,34", 48, 7, 4]);

  const native = await events(
    await send(server, "/completion", { ...GREEDY, model, stream: true }),
  );
  assertEquals([native.at(-1).stop, native.at(-1).rys.plan], [true, "26,34"]);
  const messages = await events(
    await send(server, "/v1/messages", { ...CHAT, model, stream: true }),
  );
  assertEquals([messages[0].message.model, messages[0].message.rys.plan], [model, "26,34"]);
  const responses = await events(
    await send(server, "/v1/responses", {
      input: "Hello",
      max_output_tokens: 3,
      ignore_eos: true,
      model,
      stream: true,
    }),
  );
  const last = responses.at(-1);
  assertEquals([last.type, last.response.rys.plan], ["response.incomplete", "26,34"]);
});

test("/rys/plan says what a plan is and costs, and makes no context", ALIASES, async (server) => {
  const plan = await json(server, "/rys/plan?spec=26,34");
  assertEquals([plan.n_layer_eff, plan.runs.length, plan.compute_ratio], [48, 3, 1.2]);
  assertEquals(plan.kv_bytes / plan.kv_bytes_base, 1.2);
  assert((await json(server, "/rys/plan?spec=0,2")).advisories.length > 0);
  assertEquals((await json(server, "/rys/plan?model=deep")).n_layer_eff, 48);
  assert((await refusal(server, 400, "/rys/plan?spec=26,99")).message.includes("out of range"));
  assertEquals(await metric(server, "rys_contexts"), 1);
});

test(
  "contexts of plans are reused, and the one idle for longest makes room",
  { maxContexts: 2 },
  async (server) => {
    const run = (repeat_layers: string) =>
      json(server, "/completion", { ...GREEDY, repeat_layers });
    const plans = async () =>
      (await json(server, "/rys")).contexts.map((one: { plan: string }) => one.plan).sort();
    await run("10,12");
    await run("10,12");
    assertEquals(await plans(), ["10,12", "none"]);
    await run("none");
    await run("20,22");
    assertEquals(await plans(), ["20,22", "none"]);
    assertEquals(
      [
        await metric(server, "rys_contexts_made_total"),
        await metric(server, "rys_contexts_freed_total"),
      ],
      [3, 1],
    );
  },
);

test("more plans than contexts are answered in turn", { maxContexts: 1 }, async (server) => {
  const plans = ["none", "10,12", "20,22", "none", "10,12", "26,34"];
  const answers = await Promise.all(
    plans.map((repeat_layers) =>
      json(server, "/completion", { ...GREEDY, n_predict: 3, repeat_layers })
    ),
  );
  assertEquals(answers.map(({ rys }) => rys.plan), plans);
  assertEquals(await metric(server, "rys_contexts"), 1);
});

test("a plan in constant use does not keep another one out", { maxContexts: 1 }, async (server) => {
  let done = false;
  const stream = async () => {
    while (!done) await json(server, "/completion", { ...GREEDY, n_predict: 4 });
  };
  const traffic = [stream(), stream(), stream()];
  const { rys } = await json(server, "/completion", { ...GREEDY, repeat_layers: "26,34" });
  assertEquals(rys.plan, "26,34");
  done = true;
  await Promise.all(traffic);
});

test("a context that the memory budget has no room for waits for others, or is refused", {
  // 40 layers of 512 cells of 64 f16 keys and values, and scratch: room for one such context, not for two.
  memoryBudget: 7 * 2 ** 20,
}, async (server) => {
  await json(server, "/completion", { ...GREEDY, repeat_layers: "26,34" });
  assertEquals((await json(server, "/rys")).contexts.length, 1);
  const error = await refusal(server, 400, "/completion", { ...GREEDY, repeat_layers: "0,40x4" });
  assert(/needs about \d+ MiB.* gives all contexts 7 MiB/.test(error.message), error.message);
});

test(
  "a request that waits for a context leaves the line when its client does",
  { maxContexts: 1 },
  async (server) => {
    const first = new AbortController();
    const running = send(
      server,
      "/completion",
      { ...GREEDY, n_predict: 400, ignore_eos: true },
      first,
    );
    await until("it runs", async () => (await json(server, "/rys")).running === 1);
    const second = new AbortController();
    const waiting = send(server, "/completion", { ...GREEDY, repeat_layers: "26,34" }, second);
    await until("it waits", async () => (await json(server, "/rys")).queued === 1);
    second.abort();
    assertEquals((await waiting).status, 499);
    assertEquals((await json(server, "/rys")).queued, 0);
    first.abort();
    await running;
    assertEquals(await metric(server, "rys_contexts_made_total"), 1);
    // The context that was to make room is in use again.
    await json(server, "/completion", GREEDY);
  },
);

const lines: string[] = [];
const SKIPPING = [0, 1, 2, 3, 2, 3];

test(
  "an answer has its plan's warnings, and the log has them once",
  { onLog: (line) => lines.push(line), aliases: { early: "0,2" } },
  async (server) => {
    const advice = "36 of 40 layers are skipped (4..39)";
    for (let i = 0; i < 2; i++) {
      const { rys } = await json(server, "/completion", { ...GREEDY, repeat_layers: SKIPPING });
      assertEquals(rys.n_layer_eff, 6);
      assert(rys.advisories.some((text: string) => text.includes(advice)), rys.advisories);
    }
    const stream = await send(server, "/completion", {
      ...GREEDY,
      repeat_layers: SKIPPING,
      stream: true,
    });
    assert((await events(stream)).at(-1).rys.advisories.join().includes(advice));
    assertEquals((await json(server, "/completion", GREEDY)).rys.advisories, []);
    assertEquals(lines.filter((line) => line.includes(advice)).length, 1, lines.join("\n"));
    // Those of plans that the server has names for come with its start.
    assertEquals(lines.filter((line) => line.startsWith("plan 0,2: ")).length, 1);
  },
);
