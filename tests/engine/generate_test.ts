import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { EngineError, Generation, type GenerationEnd, type Piece } from "@rys/edge";
import { always, byteToken, greedy, pieces, SMALL, STORY, test } from "./_engine.ts";

const joined = (parts: Piece[]) => parts.map((piece) => piece.text).join("");

test("generate() streams what completion() returns", async (model) => {
  await using context = await model.createContext(SMALL);
  const options = { maxTokens: 24, temperature: 0 };
  const parts = await pieces(context, STORY, options);
  const whole = await context.generate(STORY, options).completion();
  assertEquals(joined(parts), whole.text);
  assertEquals(parts.flatMap((piece) => piece.tokens), whole.tokens);
  const end = parts.at(-1)!.end!;
  assertEquals(end.nGenerated, whole.tokens.length);
  assertEquals(end.nPrompt, (await model.tokenize(STORY)).length);
  assertEquals(end.timings.predictedTokens, end.nGenerated);
  assert(parts.slice(0, -1).every((piece) => piece.end === undefined && !piece.finishReason));
  assertEquals(await model.detokenize(whole.tokens), whole.text);
});

test("generate() takes tokens as it takes their text", async (model) => {
  await using context = await model.createContext(SMALL);
  const tokens = await model.tokenize(STORY);
  assertEquals(await greedy(context, tokens, 12), await greedy(context, STORY, 12));
});

test("generate() applies the chat template to messages", async (model) => {
  await using context = await model.createContext(SMALL);
  const chat = [{ role: "user", content: "What is the capital of Norway?" }];
  const options = { maxTokens: 12, temperature: 0, cachePrompt: false };
  const answer = await context.generate(chat, options).completion();
  const prompt = await context.applyTemplate(chat);
  assert(prompt.includes("What is the capital of Norway?"), prompt);
  const plain = await context.generate(prompt, options).completion();
  assertEquals(answer.text, plain.text);
  assertEquals(answer.nPrompt, plain.nPrompt);
  assertEquals(await model.detokenize(answer.tokens, { special: false }), answer.text);
});

test("generate() gives the same tokens in chat mode piece by piece and as a whole", async (model) => {
  await using context = await model.createContext(SMALL);
  const chat = [{ role: "user", content: "Tell me a story." }];
  const parts = await pieces(context, chat, { maxTokens: 16, temperature: 0, ignoreEos: true });
  assertEquals(parts.flatMap((piece) => piece.tokens).length, 16);
  assertEquals(parts.at(-1)!.finishReason, "length");
  assertEquals(parts.at(-1)!.end!.nGenerated, 16);
});

test("generate() holds a character back until all its bytes are there", async (model) => {
  await using context = await model.createContext(SMALL);
  const parts = await pieces(context, STORY, {
    maxTokens: 64,
    temperature: 0,
    grammar: `root ::= "\u00e9\u{1f999}\u65e5\u672c \u{1f468}\u200d\u{1f469}!"`,
  });
  assertEquals(joined(parts), "\u00e9\u{1f999}\u65e5\u672c \u{1f468}\u200d\u{1f469}!");
  for (const piece of parts) {
    assert(piece.text.isWellFormed() && !piece.text.includes("\ufffd"), JSON.stringify(piece.text));
  }
  // Every byte is a token, and each is given once.
  assertEquals(
    await model.detokenize(parts.flatMap((piece) => piece.tokens), { special: false }),
    joined(parts),
  );
});

for (const [what, maxTokens] of [["two", 2], ["three", 3]] as const) {
  test(`generate() ends a character cut after ${what} bytes with U+FFFD`, async (model) => {
    await using context = await model.createContext(SMALL);
    const options = { maxTokens: 1 + maxTokens, temperature: 0, grammar: `root ::= "a\u{1f999}b"` };
    const parts = await pieces(context, STORY, options);
    assertEquals(joined(parts), "a\ufffd");
    assertEquals(parts.at(-1)!.finishReason, "length");
    assertEquals(parts.flatMap((piece) => piece.tokens).length, 1 + maxTokens);
  });
}

for (
  const [byte, what] of [[0xff, "that never occurs"], [0x80, "that continues"], [
    0xf0,
    "that begins",
  ]] as const
) {
  test(`generate() makes U+FFFD of a byte ${what} a character, for ever`, async (model) => {
    await using context = await model.createContext(SMALL);
    for (const prompt of [STORY, [{ role: "user", content: "Hi" }]]) {
      const options = { maxTokens: 5, temperature: 0, extra: always(byteToken(byte)) };
      const parts = await pieces(context, prompt, options);
      assert(/^\ufffd{1,5}$/.test(joined(parts)), JSON.stringify(joined(parts)));
      assertEquals(parts.at(-1)!.end!.nGenerated, 5);
    }
    assert((await greedy(context, STORY, 4)).length > 0);
  });
}

test("generate() gives logprobs for a text", async (model) => {
  await using context = await model.createContext(SMALL);
  const { logprobs, tokens } = await context.generate(STORY, {
    maxTokens: 6,
    temperature: 0,
    logprobs: 3,
    ignoreEos: true,
  }).completion();
  assertEquals(logprobs!.map(({ id }) => id), tokens);
  for (const { id, logprob, top } of logprobs!) {
    assert(logprob <= 0);
    assertEquals(top!.length, 3);
    assertEquals(top![0]!.id, id);
    assertEquals(top!.map((t) => t.logprob), top!.map((t) => t.logprob).toSorted((a, b) => b - a));
  }
});

test("generate() gives logprobs for a chat", async (model) => {
  await using context = await model.createContext(SMALL);
  const { logprobs, tokens } = await context.generate([{ role: "user", content: "Hello" }], {
    maxTokens: 6,
    temperature: 0,
    logprobs: 2,
    ignoreEos: true,
  }).completion();
  assertEquals(logprobs!.map(({ id }) => id), tokens);
  assert(logprobs!.every(({ top, logprob }) => top!.length === 2 && logprob <= 0));
});

test("generate() gives logprobs that logits() gives as well", async (model) => {
  await using context = await model.createContext(SMALL);
  const tokens = await model.tokenize(STORY);
  const { logprobs } = await context.generate(tokens, { maxTokens: 1, temperature: 0, logprobs: 1 })
    .completion();
  const { data, nVocab } = await context.logits(tokens);
  const row = data.subarray((tokens.length - 1) * nVocab);
  const max = row.reduce((a, b) => Math.max(a, b));
  const sum = row.reduce((a, b) => a + Math.exp(b - max), 0);
  const { id, logprob } = logprobs![0]!;
  assertEquals(row[id], max);
  assert(Math.abs(logprob - -Math.log(sum)) < 1e-3, `${logprob} ${-Math.log(sum)}`);
});

test("generate() stops at the model's end token", async (model) => {
  await using context = await model.createContext(SMALL);
  const end = await context.generate(STORY, {
    maxTokens: 20,
    temperature: 0,
    extra: always(model.info.eos!),
  }).completion();
  assertEquals([end.finishReason, end.text, end.stoppingWord], ["stop", "", ""]);
});

test("generate() reports length where the model never ends", async (model) => {
  await using context = await model.createContext({ ...SMALL, nCtx: 256 });
  const { finishReason, nGenerated, nPrompt } = await context.generate(STORY, {
    temperature: 0,
    extra: always(byteToken(0x61)),
  }).completion();
  assertEquals(finishReason, "length");
  assert(nGenerated + nPrompt >= 255 && nGenerated + nPrompt <= 257, `${nGenerated} + ${nPrompt}`);
});

test("generate() stops at a stop string that spans tokens", async (model) => {
  await using context = await model.createContext(SMALL);
  const grammar = `root ::= "The red fox ran home today."`;
  for (
    const [stop, want] of [
      ["fox ran", "The red "],
      ["d f", "The re"],
      ["an home", "The red fox r"],
      ["today.", "The red fox ran home "],
      ["T", ""],
      [["nowhere", "home", "ran h"], "The red fox "],
    ] as const
  ) {
    const options = { maxTokens: 64, temperature: 0, grammar, stop: stop as string | string[] };
    const parts = await pieces(context, STORY, options);
    assertEquals(joined(parts), want, `stop ${JSON.stringify(stop)}`);
    assertEquals(parts.at(-1)!.finishReason, "stop");
    assertEquals((await context.generate(STORY, options).completion()).text, want);
  }
});

test("generate() names the stop string that ended it", async (model) => {
  await using context = await model.createContext(SMALL);
  const { stoppingWord, text } = await context.generate(STORY, {
    maxTokens: 64,
    temperature: 0,
    grammar: `root ::= "one two three"`,
    stop: ["three", "two"],
  }).completion();
  assertEquals([text, stoppingWord], ["one ", "two"]);
});

test("generate() gives back text that only looked like a stop string", async (model) => {
  await using context = await model.createContext(SMALL);
  const options = {
    maxTokens: 64,
    temperature: 0,
    grammar: `root ::= "abcab abcabd"`,
    stop: ["abcabe", "bdd", "d!"],
  };
  const parts = await pieces(context, STORY, options);
  assertEquals(joined(parts), "abcab abcabd");
});

test("generate() stops at a stop string in a chat as in a text", async (model) => {
  await using context = await model.createContext(SMALL);
  const { text, finishReason } = await context.generate([{ role: "user", content: "Hi" }], {
    maxTokens: 64,
    temperature: 0,
    grammar: `root ::= "The red fox ran home today."`,
    stop: "fox ran",
  }).completion();
  assertEquals([text.trimEnd(), finishReason], ["The red", "stop"]);
});

test("generate() follows a grammar", async (model) => {
  await using context = await model.createContext(SMALL);
  for (const temperature of [0, 1.5]) {
    const { text } = await context.generate(STORY, {
      maxTokens: 32,
      temperature,
      seed: 5,
      grammar: `root ::= ("yes" | "no") " " [0-9] [0-9]`,
    }).completion();
    assert(/^(yes|no) \d\d$/.test(text), text);
  }
});

test("generate() follows a JSON schema", async (model) => {
  await using context = await model.createContext(SMALL);
  const jsonSchema = {
    type: "object",
    properties: { n: { type: "integer", minimum: 0, maximum: 99 }, ok: { type: "boolean" } },
    required: ["n", "ok"],
    additionalProperties: false,
  };
  for (const prompt of [STORY, [{ role: "user", content: "A number?" }]]) {
    const text = await greedy(context, prompt, 64, { jsonSchema, ignoreEos: false });
    const object = JSON.parse(text);
    assertEquals(Object.keys(object).sort(), ["n", "ok"]);
    assert(Number.isInteger(object.n) && typeof object.ok === "boolean", text);
  }
});

test("generate() refuses a wrong grammar and goes on", async (model) => {
  await using context = await model.createContext(SMALL);
  const wrong = [
    { grammar: "root ::= (" },
    { grammar: "no root here" },
    { grammar: "root ::= other" },
    { jsonSchema: { type: "nonsense" } },
    { jsonSchema: { $ref: "#/definitions/missing" } },
  ];
  for (const options of wrong) {
    for (const prompt of [STORY, [{ role: "user", content: "Hi" }]]) {
      const error = await assertRejects(
        () => context.generate(prompt, { maxTokens: 4, ...options }).text(),
        EngineError,
      );
      assert(!error.fatal && error.message.length > 0, error.message);
    }
  }
  assert((await greedy(context, STORY, 4)).length > 0);
});

test("generate() refuses grammar and schema together", async (model) => {
  await using context = await model.createContext(SMALL);
  assertThrows(() => context.generate("a", { grammar: "x", jsonSchema: {} }), TypeError);
});

test("generate() with a seed is the same again, with one thread and with two", async (model) => {
  const texts: string[] = [];
  for (const threads of [1, 2]) {
    await using context = await model.createContext({ ...SMALL, threads });
    const run = (seed: number) =>
      context.generate(STORY, { maxTokens: 16, temperature: 1.2, seed, ignoreEos: true }).text();
    texts.push(await run(42), await run(42));
    assert(await run(43) !== texts[0]);
  }
  assertEquals(new Set(texts).size, 1);
});

test("generate() tells the seed it drew, and that seed gives the text again", async (model) => {
  await using context = await model.createContext(SMALL);
  const options = { maxTokens: 16, temperature: 1.2, ignoreEos: true };
  const first = await context.generate(STORY, options).completion();
  assertEquals(await context.generate(STORY, { ...options, seed: first.seed }).text(), first.text);
  assert((await context.generate(STORY, options).completion()).seed !== first.seed);
});

test("generate() at temperature 0 does not depend on the seed", async (model) => {
  await using context = await model.createContext(SMALL);
  assertEquals(
    await greedy(context, STORY, 16, { seed: 1 }),
    await greedy(context, STORY, 16, { seed: 2 }),
  );
});

// Qwen's and Hermes' form, in short.
const TOOL_TEMPLATE =
  `{%- if tools %}<|im_start|>system\nTools:{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}<|im_end|>\n{% endif -%}
{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or "" }}
{%- if m.tool_calls %}{% for call in m.tool_calls %}\n<tool_call>\n{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>{% endfor %}{% endif %}<|im_end|>\n{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}`;

const TOOLS = [{
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a city",
    parameters: {
      type: "object",
      properties: { city: { enum: ["Oslo", "Rome"] } },
      required: ["city"],
    },
  },
}];

test("generate() shows tools to a template that knows them", async (model) => {
  await using context = await model.createContext({
    ...SMALL,
    nCtx: 1024,
    chatTemplate: TOOL_TEMPLATE,
  });
  const chat = [{ role: "user", content: "What is the weather in Oslo?" }];
  const prompt = await context.applyTemplate(chat, { tools: TOOLS });
  assert(prompt.includes("The weather of a city"), prompt);
  const end = await context.generate(chat, {
    maxTokens: 4,
    tools: TOOLS,
    toolChoice: "auto",
    ignoreEos: true,
  }).completion();
  assertEquals(end.nPrompt, (await model.tokenize(prompt)).length);
  assertEquals(end.toolCalls, []);
});

Deno.test("completion() joins the parts of tool calls", async () => {
  const end: GenerationEnd = {
    finishReason: "tool_calls",
    stoppingWord: "",
    nPrompt: 1,
    nGenerated: 5,
    seed: 1,
    slot: 0,
    timings: {
      promptTokens: 1,
      cachedTokens: 0,
      promptMs: 1,
      promptPerSecond: 1,
      predictedTokens: 5,
      predictedMs: 1,
      predictedPerSecond: 1,
    },
  };
  const call = (index: number, id: string, name: string) => ({
    index,
    id,
    type: "function",
    function: { name, arguments: "" },
  });
  const more = (index: number, text: string) => ({ index, function: { arguments: text } });
  const deltas = [
    call(0, "a", "weather"),
    more(0, '{"city"'),
    more(0, ':"Oslo"}'),
    call(1, "b", "time"),
  ];
  const generation = new Generation(async function* () {
    for (const delta of deltas) yield { text: "", tokens: [1], toolCalls: [delta] };
    yield { text: "", tokens: [1], toolCalls: [more(1, "{}")], finishReason: "tool_calls", end };
  });
  const { toolCalls, finishReason } = await generation.completion();
  assertEquals(finishReason, "tool_calls");
  assertEquals(toolCalls, [
    { id: "a", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } },
    { id: "b", type: "function", function: { name: "time", arguments: "{}" } },
  ]);
});

test("generate() refuses a prompt longer than the context, with both numbers", async (model) => {
  await using context = await model.createContext({ ...SMALL, nCtx: 256 });
  for (const prompt of ["a ".repeat(400), [{ role: "user", content: "a ".repeat(400) }]]) {
    const error = await assertRejects(() => context.generate(prompt).text(), EngineError);
    assertEquals(error.type, "exceed_context_size_error");
    assertEquals(error.status, 400);
    assertEquals(error.details!.n_ctx, 256);
    assert(Number(error.details!.n_prompt_tokens) >= 400);
  }
  assert((await greedy(context, STORY, 4)).length > 0);
});

test("generate() takes a prompt longer than the batch", async (model) => {
  const prompt = "The cat sat on the mat. ".repeat(20);
  await using narrow = await model.createContext({ ...SMALL, nBatch: 16, nUbatch: 16 });
  await using wide = await model.createContext(SMALL);
  const options = { maxTokens: 12, temperature: 0, ignoreEos: true };
  const a = await narrow.generate(prompt, options).completion();
  const b = await wide.generate(prompt, options).completion();
  assert(a.nPrompt > 100);
  assertEquals(a.text, b.text);
});

test("generate() answers an empty prompt with an error or a text, and goes on", async (model) => {
  await using context = await model.createContext(SMALL);
  for (const prompt of ["", []]) {
    try {
      const { nGenerated } = await context.generate(prompt, { maxTokens: 4 }).completion();
      assert(nGenerated <= 4);
    } catch (error) {
      assert(error instanceof EngineError && !error.fatal, String(error));
    }
  }
  assert((await greedy(context, STORY, 4)).length > 0);
});

test("generate() takes text of any script, and text that is no Unicode", async (model) => {
  await using context = await model.createContext(SMALL);
  for (
    const prompt of [
      "\u65e5\u672c\u8a9e",
      "\u0645\u0631\u062d\u0628\u0627",
      "\u{1f999}\u200d\u{1f525}",
      "a\0b",
      "\ud800",
      "\udc00x",
      "<|im_end|>",
    ]
  ) {
    for (const form of [prompt, [{ role: "user", content: prompt }]]) {
      const { nGenerated } = await context.generate(form, { maxTokens: 2, ignoreEos: true })
        .completion();
      assertEquals(nGenerated, 2, JSON.stringify(prompt));
    }
  }
});

test("generate() with maxTokens 0 generates nothing", async (model) => {
  await using context = await model.createContext(SMALL);
  const end = await context.generate(STORY, { maxTokens: 0 }).completion();
  assertEquals([end.text, end.finishReason, end.tokens], ["", "length", []]);
  assertEquals([end.nGenerated, end.timings.predictedTokens], [0, 0]);
  assert(end.timings.promptTokens > 0);
});

test("generate() runs in the slot that is asked for, and tells it", async (model) => {
  await using context = await model.createContext({ ...SMALL, nParallel: 3 });
  const chat = [{ role: "user", content: "Hello" }];
  for (const prompt of [STORY, chat]) {
    for (const slot of [1, 0, 2]) {
      const end = await context.generate(prompt, { maxTokens: 2, slot }).completion();
      assertEquals(end.slot, slot);
    }
  }
  const both = await Promise.all(
    [1, 1].map((slot) => context.generate(STORY, { maxTokens: 4, slot }).completion()),
  );
  assertEquals(both.map(({ slot }) => slot), [1, 1]);
  for (const slot of [3, -1, 0.5]) {
    assertThrows(() => context.generate(STORY, { slot }), RangeError, "slot");
  }
});

test("generate() refuses images by name", async (model) => {
  await using context = await model.createContext(SMALL);
  const part = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
  const chat = [{ role: "user", content: [{ type: "text", text: "What is it?" }, part] }];
  const error = assertThrows(() => context.generate(chat), EngineError, "image input");
  assertEquals([error.status, error.type], [400, "invalid_request_error"]);
  await assertRejects(() => context.applyTemplate(chat), EngineError, "image input");
  const text = [{ role: "user", content: [{ type: "text", text: "Hello" }] }];
  assertEquals((await context.generate(text, { maxTokens: 1 }).completion()).nGenerated, 1);
});

test("generate() says when requests together do not fit into the context", async (model) => {
  await using context = await model.createContext({ nCtx: 256, nParallel: 4, threads: 1 });
  const options = { maxTokens: 200, ignoreEos: true };
  const ends = await Promise.allSettled(
    [1, 2, 3, 4].map((seed) => context.generate(STORY, { ...options, seed }).text()),
  );
  const errors = ends.flatMap((end) => end.status === "rejected" ? [end.reason] : []);
  assert(errors.length > 0);
  for (const error of errors) {
    assert(error instanceof EngineError && error.message.includes("256"), String(error));
    assertEquals([error.type, error.status], ["exceed_context_size_error", 400]);
    assertEquals(error.details, { n_ctx: 256 });
  }
  assert((await greedy(context, STORY, 4)).length > 0);
});

test("generate() can be iterated once only", async (model) => {
  await using context = await model.createContext(SMALL);
  const generation = context.generate(STORY, { maxTokens: 1 });
  await generation.text();
  await assertRejects(() => generation.text(), TypeError, "once");
});

test("generate() reuses the prompt's beginning, with the same text", async (model) => {
  await using context = await model.createContext({ ...SMALL, repeatLayers: "20,24" });
  const prompt = "The code of the fox is 48. The code of the cat is 12. ".repeat(4);
  const options = { maxTokens: 8, temperature: 0, ignoreEos: true };
  const cold = await context.generate(prompt + "What", { ...options, cachePrompt: false })
    .completion();
  const warm = await context.generate(prompt + "What", options).completion();
  assert(warm.timings.cachedTokens > 40, `${warm.timings.cachedTokens}`);
  assertEquals(warm.text, cold.text);
});

test("generate() refuses wrong options by name", async (model) => {
  await using context = await model.createContext(SMALL);
  const wrong: [Record<string, unknown>, string][] = [
    [{ maxTokens: NaN }, "maxTokens"],
    [{ maxTokens: -2 }, "maxTokens"],
    [{ maxTokens: 1.5 }, "maxTokens"],
    [{ maxTokens: "8" }, "maxTokens"],
    [{ maxTokens: 1e12 }, "maxTokens"],
    [{ temperature: NaN }, "temperature"],
    [{ temperature: -1 }, "temperature"],
    [{ temperature: "hot" }, "temperature"],
    [{ temperature: Infinity }, "temperature"],
    [{ seed: -7 }, "seed"],
    [{ seed: 1e12 }, "seed"],
    [{ seed: 0.5 }, "seed"],
    [{ seed: "1" }, "seed"],
    [{ topK: -3 }, "topK"],
    [{ topK: 1e12 }, "topK"],
    [{ topP: NaN }, "topP"],
    [{ topP: -1 }, "topP"],
    [{ minP: "x" }, "minP"],
    [{ repeatPenalty: NaN }, "repeatPenalty"],
    [{ repeatLastN: 1e12 }, "repeatLastN"],
    [{ presencePenalty: NaN }, "presencePenalty"],
    [{ frequencyPenalty: "1" }, "frequencyPenalty"],
    [{ logprobs: -1 }, "logprobs"],
    [{ logprobs: 1e12 }, "logprobs"],
    [{ logprobs: true }, "logprobs"],
    [{ stop: 5 }, "stop"],
    [{ stop: ["a", null] }, "stop"],
    [{ grammar: 5 }, "grammar"],
    [{ jsonSchema: "{}" }, "jsonSchema"],
    [{ ignoreEos: "no" }, "ignoreEos"],
    [{ cachePrompt: 1 }, "cachePrompt"],
    [{ tools: {} }, "tools"],
    [{ extra: 5 }, "extra"],
    [{ signal: "x" }, "signal"],
    [{ slot: "1" }, "slot"],
    [{ max_tokens: 5 }, `"max_tokens"; did you mean "maxTokens"?`],
    [{ temprature: 0 }, `did you mean "temperature"?`],
    [{ qqqq: 0 }, "there are maxTokens, "],
  ];
  for (const [options, name] of wrong) {
    const error = assertThrows(() => context.generate(STORY, options));
    assert(
      error instanceof TypeError || error instanceof RangeError,
      `${JSON.stringify(options)}: ${error}`,
    );
    assert(error.message.includes(name), error.message);
  }
  for (
    const prompt of [5, null, undefined, {}, [1, "a"], [-1], [1e9], [0.5], [{ role: 5 }], [{}], [
      null,
    ]]
  ) {
    const run = async () => await context.generate(prompt as string, { maxTokens: 1 }).text();
    const error = await assertRejects(run);
    assert(
      error instanceof TypeError || error instanceof RangeError || error instanceof EngineError,
      `${JSON.stringify(prompt)}: ${error}`,
    );
  }
  assert((await greedy(context, STORY, 4)).length > 0);
});
