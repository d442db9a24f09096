import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { CHAT, events, type Json, json, refusal, send, shared, test } from "./_server.ts";

const GREEDY = { temperature: 0 } as const;
const STORY = { ...GREEDY, prompt: "Once upon a time", n_predict: 16 } as const;

shared("chat completions are OpenAI's, streamed and whole alike", async (server) => {
  const ask = { ...CHAT, ...GREEDY, max_tokens: 8 };
  const whole = await json(server, "/v1/chat/completions", ask);
  assertEquals(whole.object, "chat.completion");
  const { message, finish_reason: reason } = whole.choices[0];
  assertEquals([message.role, reason], ["assistant", "length"]);
  assertEquals(whole.usage.completion_tokens, 8);

  const response = await send(server, "/v1/chat/completions", { ...ask, stream: true });
  assertEquals(response.headers.get("content-type"), "text/event-stream");
  const chunks = await events(response);
  assertEquals(chunks.pop(), "[DONE]");
  const text = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  assertEquals(text, message.content);
  assertEquals(chunks.findLast(({ choices }) => choices[0])?.choices[0].finish_reason, "length");
});

shared("completions of both forms agree", async (server) => {
  const native = await json(server, "/completion", STORY);
  assertEquals([native.stop, native.stop_type, native.tokens_predicted], [true, "limit", 16]);
  const oai = await json(server, "/v1/completions", {
    ...GREEDY,
    prompt: STORY.prompt,
    max_tokens: 16,
  });
  assertEquals([oai.object, oai.choices[0].text], ["text_completion", native.content]);
  const streamed = await events(await send(server, "/completion", { ...STORY, stream: true }));
  assertEquals(streamed.map(({ content }) => content).join(""), native.content);
});

shared("a seed that is returned gives the same text again", async (server) => {
  const first = await json(server, "/completion", { ...STORY, temperature: 1.5 });
  const { seed } = first.rys;
  assert(Number.isInteger(seed));
  assertEquals(first.generation_settings.seed, seed);
  const again = await json(server, "/completion", { ...STORY, temperature: 1.5, seed });
  assertEquals([again.content, again.rys.seed], [first.content, seed]);
  const other = await json(server, "/completion", { ...STORY, temperature: 1.5, seed: -1 });
  assertNotEquals(other.rys.seed, seed);
});

shared("n gives so many choices", async (server) => {
  const { choices } = await json(server, "/v1/chat/completions", { ...CHAT, n: 2 });
  assertEquals(choices.map(({ index }: Json) => index), [0, 1]);
  const error = await refusal(server, 400, "/v1/chat/completions", { ...CHAT, n: 3 });
  assert(error.message.includes("2"), error.message);
});

shared("several prompts are answered in their order", async (server) => {
  const prompts = ["Once upon a time", "The code of", "Two plus"];
  const { choices } = await json(server, "/v1/completions", {
    ...GREEDY,
    prompt: prompts,
    max_tokens: 4,
  });
  for (const [i, prompt] of prompts.entries()) {
    const alone = await json(server, "/v1/completions", { ...GREEDY, prompt, max_tokens: 4 });
    assertEquals(choices[i].text, alone.choices[0].text);
  }
});

shared("a prompt that begins like the last one is taken from the cache", async (server) => {
  const prompt = "Once upon a time there was a girl who lived in a house near the mill";
  await json(server, "/completion", { ...STORY, prompt });
  const { timings } = await json(server, "/completion", { ...STORY, prompt: `${prompt} and` });
  assert(timings.cache_n > 8, String(timings.cache_n));
  const fresh = await json(server, "/completion", { ...STORY, prompt, cache_prompt: false });
  assertEquals(fresh.timings.cache_n, 0);
});

shared("stop strings end an answer and are not part of it", async (server) => {
  const { content } = await json(server, "/completion", STORY);
  const stop = content.slice(6, 10);
  const cut = await json(server, "/completion", { ...STORY, stop: [stop] });
  assertEquals([cut.content, cut.stopping_word], [content.slice(0, content.indexOf(stop)), stop]);
  for (const empty of ["", ["x", ""]]) {
    const { param } = await refusal(server, 400, "/completion", { ...STORY, stop: empty });
    assertEquals(param, "stop");
  }
  const messages = { ...CHAT, stop_sequences: [""] };
  assertEquals(
    (await refusal(server, 400, "/v1/messages", messages)).param,
    "stop_sequences",
  );
});

shared("answers follow a grammar and a JSON schema", async (server) => {
  const grammar = await json(server, "/completion", {
    ...STORY,
    grammar: 'root ::= ("ab" | "ba")+',
  });
  assert(/^(?:ab|ba)*[ab]?$/.test(grammar.content), grammar.content);
  const { choices } = await json(server, "/v1/chat/completions", {
    ...CHAT,
    ...GREEDY,
    max_tokens: 60,
    response_format: {
      type: "json_schema",
      json_schema: {
        schema: {
          type: "object",
          properties: { ok: { type: "boolean" }, n: { enum: [1, 2] } },
          required: ["ok", "n"],
          additionalProperties: false,
        },
      },
    },
  });
  const object = JSON.parse(choices[0].message.content);
  assertEquals([typeof object.ok, [1, 2].includes(object.n)], ["boolean", true]);
});

shared("log probabilities are given", async (server) => {
  const { choices } = await json(server, "/v1/chat/completions", {
    ...CHAT,
    ...GREEDY,
    logprobs: true,
    top_logprobs: 3,
  });
  const list = choices[0].logprobs.content;
  assertEquals([list.length, list[0].top_logprobs.length], [4, 3]);
  assert(list.every(({ logprob }: Json) => logprob <= 0));
  // More than there are tokens is all of them.
  const { completion_probabilities: all } = await json(server, "/completion", {
    ...STORY,
    n_predict: 1,
    n_probs: 2 ** 31 - 1,
  });
  assertEquals(all[0].top_logprobs.length, 3167);
});

shared(
  "Anthropic's messages and OpenAI's responses are answered in their forms",
  async (server) => {
    const message = await json(server, "/v1/messages", { ...CHAT, ...GREEDY });
    assertEquals([message.type, message.stop_reason, message.content[0].type], [
      "message",
      "max_tokens",
      "text",
    ]);
    const response = await json(server, "/v1/responses", {
      ...GREEDY,
      input: "Hello",
      max_output_tokens: 4,
    });
    assertEquals([response.object, response.output[0].content[0].type], [
      "response",
      "output_text",
    ]);
    assertEquals(response.output[0].content[0].text, message.content[0].text);

    const { status, body } = await send(server, "/v1/messages", { max_tokens: 4 })
      .then(async (r) => ({ status: r.status, body: await r.json() }));
    assertEquals([status, body.type, body.error.type], [400, "error", "invalid_request_error"]);
  },
);

shared("texts are embedded, under each plan in its own way", async (server) => {
  const embed = async (input: unknown, more: Record<string, unknown> = {}) =>
    (await json(server, "/v1/embeddings", { input, ...more })).data.map((d: Json) => d.embedding);
  const [a, b] = await embed(["The cat sat.", "A wolf eats meat."]);
  assertEquals([a.length, b.length], [64, 64]);
  assert(Math.abs(Math.hypot(...a) - 1) < 1e-4);
  const [alone] = await embed("The cat sat.");
  assert(alone.every((x: number, i: number) => Math.abs(x - a[i]) < 1e-3));
  const [deep] = await embed("The cat sat.", { model: "demo@26,34" });
  assert(deep.some((x: number, i: number) => Math.abs(x - a[i]) > 1e-3));
  const base64 = await json(server, "/v1/embeddings", { input: "x", encoding_format: "base64" });
  assertEquals(typeof base64.data[0].embedding, "string");
  const native = await json(server, "/embedding", { content: "The cat sat." });
  assertEquals(native[0].rys.plan, "none");
  assertEquals(native[0].embedding[0].length, 64);
  for (const input of ["", 5, {}, [{}], [[5, 99_999]], undefined]) {
    await refusal(server, 400, "/v1/embeddings", { input });
  }
});

test("an embedding may be longer than a batch of text", { nCtx: 2048 }, async (server) => {
  const { usage } = await json(server, "/v1/embeddings", { input: "the cat sat ".repeat(250) });
  assert(usage.prompt_tokens > 700, String(usage.prompt_tokens));
});

shared("tokens and templates", async (server) => {
  const { tokens } = await json(server, "/tokenize", { content: "Hello you" });
  assertEquals((await json(server, "/detokenize", { tokens })).content, "Hello you");
  const pieces = await json(server, "/tokenize", { content: "Hi é", with_pieces: true });
  assert(pieces.tokens.every((one: Json) => Number.isInteger(one.id)));
  const { prompt } = await json(server, "/apply-template", CHAT);
  assert(prompt.includes("user\nHello"), prompt);
  assertEquals(
    (await json(server, "/v1/messages/count_tokens", CHAT)).input_tokens,
    (await json(server, "/v1/chat/completions/input_tokens", CHAT)).input_tokens,
  );
  for (const wrong of [[99_999], [-1], [0.5], [2 ** 40]]) {
    const error = await refusal(server, 400, "/detokenize", { tokens: wrong });
    assert(error.message.includes("0..3166"), error.message);
  }
});

shared("what the model cannot do is said", async (server) => {
  const rerank = await refusal(server, 501, "/rerank", { query: "a", documents: ["b"] });
  assertEquals(rerank.type, "not_supported_error");
  assert(rerank.message.includes("reranking model"), rerank.message);
  await refusal(server, 501, "/infill", { input_prefix: "a", input_suffix: "b" });
  await refusal(server, 501, "/props", {});
  await refusal(server, 501, "/slots/0?action=save", { filename: "x" });
  await refusal(server, 404, "/tools");
  await refusal(server, 404, "/v1/audio/transcriptions", {});
  const { status, headers } = await send(server, "/tokenize");
  assertEquals([status, headers.get("allow")], [405, "POST"]);
});

test(
  "/props, /slots and /metrics tell of the server",
  { aliases: { deep: "26,34" } },
  async (server) => {
    await json(server, "/completion", { ...STORY, model: "deep" });
    const props = await json(server, "/props");
    assertEquals([props.total_slots, props.model_path, props.model_alias], [2, "demo", "demo"]);
    assertEquals([props.rys.n_layer, props.rys.aliases.deep, props.rys.device], [
      40,
      "26,34",
      "cpu",
    ]);
    assert(props.rys.boot.load_ms > 0);
    const slots = await json(server, "/slots");
    assertEquals(slots.map((one: Json) => one.rys.plan), ["none", "none", "26,34", "26,34"]);
    assertEquals(await json(server, "/slots/1?action=erase", {}), { id_slot: 1, n_erased: 0 });
    await refusal(server, 400, "/slots/2?action=erase", {});
    const metrics = await (await send(server, "/metrics")).text();
    assert(
      metrics.includes('llamacpp:tokens_predicted_total{plan="26,34",kind="text"} 16\n'),
      metrics,
    );
    assert(metrics.includes("\nrys_queue_depth 0\n"));
    assertEquals(metrics.match(/^# TYPE llamacpp:tokens_predicted_total /gm)?.length, 1);
  },
);

test("a prompt that does not fit is refused with both numbers", { nCtx: 256 }, async (server) => {
  for (const stream of [false, true]) {
    const error = await refusal(server, 400, "/completion", {
      prompt: "word ".repeat(400),
      stream,
    });
    assertEquals([error.type, error.n_ctx], ["exceed_context_size_error", 256]);
    assert(error.n_prompt_tokens > 256);
  }
});

shared("text that is no Unicode is replaced, never thrown", async (server) => {
  const bytes = new TextEncoder().encode('{"content":"a\u{fffd}b"}');
  bytes.set([0xff, 0xfe, 0x80], bytes.indexOf(0xef));
  const response = await server.fetch(
    new Request("http://localhost/tokenize", { method: "POST", body: bytes }),
  );
  const { tokens } = await response.json();
  assertEquals(
    (await json(server, "/detokenize", { tokens })).content,
    "a\u{fffd}\u{fffd}\u{fffd}b",
  );
  await json(server, "/completion", { ...STORY, prompt: "\ud800 lone" });
});

shared("a field that is missing or cannot be parsed is named", async (server) => {
  const schema = { type: "foo" };
  const chat = { response_format: { type: "json_schema", json_schema: { schema } } };
  for (
    const [path, body, param, part] of [
      ["/completion", {}, "prompt", '"prompt" is missing'],
      ["/v1/completions", { prompt: null }, "prompt", '"prompt" is missing'],
      ["/completion", { ...STORY, json_schema: schema }, "json_schema", "type foo"],
      ["/v1/chat/completions", { ...CHAT, ...chat }, "response_format", "type foo"],
      ["/completion", { ...STORY, grammar: "root ::= (" }, "grammar", "could not be parsed"],
      ["/completion", { ...STORY, grammar: "x", stream: true }, "grammar", "could not be parsed"],
    ] as const
  ) {
    const error = await refusal(server, 400, path, body);
    assertEquals(error.param, param);
    assert(error.message.startsWith(`"${param}"`) && error.message.includes(part), error.message);
  }
});

const lines: string[] = [];

test(
  "a call of a tool cannot be required where the chat template has no tools",
  { onLog: (line) => lines.push(line) },
  async (server) => {
    const parameters = { type: "object", properties: {} };
    const tools = [{ type: "function", function: { name: "add", parameters } }];
    const flat = [{ type: "function", name: "add", parameters }];
    const ours = [{ name: "add", input_schema: parameters }];
    for (
      const [path, body] of [
        ["/v1/chat/completions", { ...CHAT, tools, tool_choice: "required" }],
        ["/v1/chat/completions", {
          ...CHAT,
          tools,
          tool_choice: { type: "function", function: { name: "add" } },
        }],
        ["/v1/responses", { input: "Hello", tools: flat, tool_choice: "required" }],
        ["/v1/messages", { ...CHAT, tools: ours, tool_choice: { type: "any" } }],
        ["/v1/messages", { ...CHAT, tools: ours, tool_choice: { type: "tool", name: "add" } }],
      ] as const
    ) {
      const error = await refusal(server, 400, path, body);
      assertEquals(error.param, "tool_choice");
      assert(error.message.includes("chat template has no tools"), error.message);
    }
    for (const tool_choice of ["auto", undefined]) {
      const { choices } = await json(server, "/v1/chat/completions", {
        ...CHAT,
        tools,
        tool_choice,
      });
      assertEquals(choices[0].message.role, "assistant");
    }
    assertEquals(lines.filter((line) => line.includes("left out")).length, 1, lines.join("\n"));
  },
);
