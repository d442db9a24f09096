// The server with OpenAI's own client.

import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { API_KEY, CAPITAL, getJson, isBusy, listen, testsOn, until } from "./_clients.ts";
import { OpenAI } from "./_npm.ts";

const test = testsOn();

const client = (origin: string, options: { apiKey?: string; maxRetries?: number } = {}) =>
  new OpenAI({ baseURL: `${origin}/v1`, apiKey: API_KEY, maxRetries: 0, ...options });

const ask = (content: string) => [{ role: "user" as const, content }];

/** What the server adds to OpenAI's answers. */
const rys = (answer: object): { plan: string; n_layer_eff: number } =>
  (answer as unknown as { rys: { plan: string; n_layer_eff: number } }).rys;

test("OpenAI client: a chat completion has its text, its usage and its plan", async (origin) => {
  const answer = await client(origin).chat.completions.create({
    model: "demo",
    messages: ask(CAPITAL.question),
    temperature: 0,
  });
  const [choice] = answer.choices;
  assertEquals(choice!.message.content, CAPITAL.answer);
  assertEquals([choice!.message.role, choice!.finish_reason], ["assistant", "stop"]);
  assert(answer.id.startsWith("chatcmpl-"));
  assertEquals([answer.object, answer.model], ["chat.completion", "demo"]);
  const { prompt_tokens, completion_tokens, total_tokens } = answer.usage!;
  // The answer's seven tokens and the one that ends the turn.
  assertEquals([prompt_tokens, completion_tokens, total_tokens], [15, 8, 23]);
  assertEquals([rys(answer).plan, rys(answer).n_layer_eff], ["none", 40]);
});

test("OpenAI client: the model's name, an alias and a field choose the plan", async (origin) => {
  const plan = async (body: { model: string; repeat_layers?: string }) => {
    const answer = await client(origin).chat.completions.create({
      messages: ask("Tell me a story about a fox."),
      temperature: 0,
      max_completion_tokens: 40,
      ...body,
    });
    return {
      plan: rys(answer).plan,
      layers: rys(answer).n_layer_eff,
      model: answer.model,
      fingerprint: answer.system_fingerprint,
      text: answer.choices[0]!.message.content,
    };
  };
  const none = await plan({ model: "demo" });
  const byName = await plan({ model: "demo@26,34" });
  const byAlias = await plan({ model: "deep" });
  const byField = await plan({ model: "demo", repeat_layers: "26,34" });
  assertEquals([none.layers, byName.layers, byAlias.layers, byField.layers], [40, 48, 48, 48]);
  assertEquals([byName.model, byAlias.model], ["demo@26,34", "deep"]);
  assertEquals([byName.plan, byAlias.plan, byField.plan], ["26,34", "26,34", "26,34"]);
  assertEquals([byName.text, byAlias.text], [byField.text, byField.text]);
  assertEquals(byName.fingerprint, byField.fingerprint);
  assertNotEquals(none.text, byName.text);
  assertNotEquals(none.fingerprint, byName.fingerprint);
});

test("OpenAI client: the list of models has the model and the named plans", async (origin) => {
  const { data } = await client(origin).models.list();
  assertEquals(data.map(({ id }) => id), ["demo", "deep", "plain"]);
  const model = await client(origin).models.retrieve("deep");
  assertEquals([model.id, model.object], ["deep", "model"]);
});

test("OpenAI client: a stream has the same text, one id, and usage at the end", async (origin) => {
  const request = { model: "deep", messages: ask(CAPITAL.question), temperature: 0 };
  const whole = await client(origin).chat.completions.create(request);
  const stream = await client(origin).chat.completions.create({
    ...request,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = await Array.fromAsync(stream);
  const deltas = chunks.flatMap(({ choices }) => choices);
  assertEquals([deltas[0]!.delta.role, deltas[0]!.delta.content], ["assistant", null]);
  assertEquals(deltas.map(({ delta }) => delta.content ?? "").join(""), CAPITAL.answer);
  assertEquals(whole.choices[0]!.message.content, CAPITAL.answer);
  assertEquals(deltas.map(({ finish_reason }) => finish_reason).filter(Boolean), ["stop"]);
  assertEquals(new Set(chunks.map(({ id }) => id)).size, 1);
  assertEquals(new Set(chunks.map(({ model }) => model)), new Set(["deep"]));
  const last = chunks.at(-1)!;
  assertEquals(last.choices, []);
  assertEquals(last.usage!.completion_tokens, whole.usage!.completion_tokens);
  assertEquals(rys(last).plan, "26,34");
});

test("OpenAI client: the stream helper gathers the answer", async (origin) => {
  const stream = client(origin).chat.completions.stream({
    model: "demo",
    messages: ask(CAPITAL.question),
    temperature: 0,
  });
  assertEquals(await stream.finalContent(), CAPITAL.answer);
});

test("OpenAI client: several choices, each with its index", async (origin) => {
  const { choices } = await client(origin).chat.completions.create({
    model: "demo",
    messages: ask("Tell me a story about a fox."),
    n: 2,
    seed: 7,
    max_tokens: 12,
  });
  assertEquals(choices.map(({ index }) => index), [0, 1]);
  assertEquals(choices.map(({ finish_reason }) => finish_reason), ["length", "length"]);
});

test("OpenAI client: a seed repeats an answer, another gives another", async (origin) => {
  const text = async (seed: number) => {
    const { choices } = await client(origin).completions.create({
      model: "demo",
      prompt: "Once upon a time",
      max_tokens: 24,
      temperature: 1.5,
      seed,
    });
    return choices[0]!.text;
  };
  const first = await text(11);
  assertEquals(await text(11), first);
  assertNotEquals(await text(12), first);
});

test("OpenAI client: text completions, whole and streamed", async (origin) => {
  const request = { model: "demo", prompt: "12 plus 7 is", max_tokens: 3, temperature: 0 };
  const { choices, usage } = await client(origin).completions.create(request);
  assertEquals([choices[0]!.finish_reason, usage!.completion_tokens], ["length", 3]);
  const stream = await client(origin).completions.create({ ...request, stream: true });
  const chunks = await Array.fromAsync(stream);
  assertEquals(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join(""), choices[0]!.text);
});

test("OpenAI client: stop strings end the text before them, also across tokens", async (origin) => {
  const request = {
    model: "demo",
    messages: ask(CAPITAL.question),
    temperature: 0,
    stop: ["e is P"],
  };
  const { choices } = await client(origin).chat.completions.create(request);
  assertEquals(choices[0]!.message.content, "The capital of Franc");
  assertEquals(choices[0]!.finish_reason, "stop");
  const stream = await client(origin).chat.completions.create({ ...request, stream: true });
  const chunks = await Array.fromAsync(stream);
  assertEquals(
    chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""),
    "The capital of Franc",
  );
});

test("OpenAI client: log probabilities of each token, most likely first", async (origin) => {
  const request = {
    model: "demo",
    messages: ask(CAPITAL.question),
    temperature: 0,
    max_tokens: 5,
    logprobs: true,
    top_logprobs: 3,
  };
  const { choices } = await client(origin).chat.completions.create(request);
  const tokens = choices[0]!.logprobs!.content!;
  assertEquals(tokens.length, 5);
  assertEquals(tokens.map(({ token }) => token).join(""), choices[0]!.message.content);
  for (const { token, logprob, bytes, top_logprobs } of tokens) {
    assert(logprob <= 0);
    assertEquals(bytes, [...new TextEncoder().encode(token)]);
    assertEquals(top_logprobs.length, 3);
    // Greedy: what was taken is the likeliest.
    assertEquals(top_logprobs[0]!.token, token);
    assert(top_logprobs[0]!.logprob >= top_logprobs[1]!.logprob);
    assert(top_logprobs[1]!.logprob >= top_logprobs[2]!.logprob);
  }
  const stream = await client(origin).chat.completions.create({ ...request, stream: true });
  const chunks = await Array.fromAsync(stream);
  const streamed = chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
  assertEquals(streamed.map(({ token }) => token), tokens.map(({ token }) => token));
});

test("OpenAI client: structured output follows the schema", async (origin) => {
  const schema = {
    type: "object",
    properties: {
      city: { enum: ["Paris", "Oslo"] },
      people: { type: "integer", minimum: 1, maximum: 9 },
      tags: { type: "array", items: { const: "x" }, minItems: 2, maxItems: 2 },
    },
    required: ["city", "people", "tags"],
    additionalProperties: false,
  };
  const { choices } = await client(origin).chat.completions.parse({
    model: "demo",
    messages: ask(CAPITAL.question),
    temperature: 0,
    max_tokens: 200,
    response_format: { type: "json_schema", json_schema: { name: "city", strict: true, schema } },
  });
  const [choice] = choices;
  assertEquals(choice!.finish_reason, "stop");
  const value = JSON.parse(choice!.message.content!);
  assertEquals(Object.keys(value), ["city", "people", "tags"]);
  assert(["Paris", "Oslo"].includes(value.city));
  assert(Number.isInteger(value.people) && value.people >= 1 && value.people <= 9);
  assertEquals(value.tags, ["x", "x"]);
});

test("OpenAI client: a grammar holds the answer to its language", async (origin) => {
  const { choices } = await client(origin).chat.completions.create({
    model: "demo",
    messages: ask("Does it matter what I say?"),
    max_tokens: 20,
    ...{ grammar: 'root ::= "no "{3} "."' },
  });
  assertEquals(choices[0]!.message.content, "no no no .");
});

test("OpenAI client: logit_bias keeps a token out", async (origin) => {
  const { tokens } = await (await fetch(`${origin}/tokenize`, {
    method: "POST",
    headers: { authorization: `Bearer ${API_KEY}` },
    body: JSON.stringify({ content: " Paris" }),
  })).json();
  assertEquals(tokens.length, 1);
  const { choices } = await client(origin).chat.completions.create({
    model: "demo",
    messages: ask(CAPITAL.question),
    temperature: 0,
    max_tokens: 20,
    logit_bias: { [tokens[0]]: -100 },
  });
  const text = choices[0]!.message.content!;
  assert(text.startsWith("The capital of France is"), text);
  assert(!text.includes("Paris"), text);
});

test("OpenAI client: embeddings, one or many, of norm 1, also as base64", async (origin) => {
  const create = (input: string | string[], encoding_format?: "float" | "base64") =>
    client(origin).embeddings.create({
      model: "demo",
      input,
      ...(encoding_format ? { encoding_format } : {}),
    });
  const texts = ["The cat sat.", "A wolf eats meat."];
  // The client asks for base64 unless it is told otherwise, and gives numbers all the same.
  const { data, usage } = await create(texts);
  assertEquals(data.map(({ index }) => index), [0, 1]);
  assert(usage.prompt_tokens > 0);
  const plain = await create(texts[1]!, "float");
  assertEquals(plain.data.length, 1);
  for (const { embedding } of [...data, ...plain.data]) {
    assertEquals(embedding.length, 64);
    assert(Math.abs(Math.hypot(...embedding) - 1) < 1e-3);
  }
  const difference = plain.data[0]!.embedding.map((x, i) => x - data[1]!.embedding[i]!);
  assert(Math.hypot(...difference) < 1e-3);
});

test("OpenAI client: embeddings follow the plan", async (origin) => {
  const embed = async (model: string) => {
    const { data } = await client(origin).embeddings.create({ model, input: "The cat sat." });
    return data[0]!.embedding;
  };
  const none = await embed("demo");
  assertEquals(await embed("plain"), none);
  assertNotEquals(await embed("deep"), none);
});

test("OpenAI client: the Responses API, whole and streamed", async (origin) => {
  const request = {
    model: "deep",
    instructions: "Answer.",
    input: CAPITAL.question,
    temperature: 0,
    max_output_tokens: 20,
  };
  const answer = await client(origin).responses.create(request);
  assert(answer.id.startsWith("resp_"));
  assertEquals([answer.object, answer.status], ["response", "completed"]);
  const [item] = answer.output;
  assert(item!.id!.startsWith("msg_"));
  assert(answer.output_text.length > 0);
  assert(answer.usage!.input_tokens > 0 && answer.usage!.output_tokens > 0);

  let text = "";
  let id = "";
  const types = new Set<string>();
  for await (const event of await client(origin).responses.create({ ...request, stream: true })) {
    types.add(event.type);
    if (event.type === "response.created") id = event.response.id;
    if (event.type === "response.output_text.delta") text += event.delta;
    if (event.type === "response.completed") {
      assertEquals(event.response.id, id);
      const [message] = event.response.output;
      assert(message?.type === "message");
      const [part] = message.content;
      assert(part?.type === "output_text");
      assertEquals(part.text, text);
    }
  }
  assertEquals(text, answer.output_text);
  for (
    const type of [
      "response.created",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.completed",
    ]
  ) {
    assert(types.has(type), `${type} is missing: ${[...types].join(", ")}`);
  }
});

test("OpenAI client: input tokens are counted without an answer", async (origin) => {
  const { input_tokens } = await client(origin).responses.inputTokens.count({
    model: "demo",
    input: CAPITAL.question,
  });
  assert(input_tokens! > 5 && input_tokens! < 40, String(input_tokens));
});

test("OpenAI client: the prompt of a conversation is not computed again", async (origin) => {
  const first = { role: "user" as const, content: "Tell me a story about a quiet goose." };
  const turn = async (messages: OpenAI.ChatCompletionMessageParam[]) =>
    await client(origin).chat.completions.create({
      model: "demo",
      messages,
      temperature: 0,
      max_tokens: 16,
    });
  const one = await turn([first]);
  const two = await turn([first, one.choices[0]!.message, ...ask("What did it do?")]);
  assert(two.usage!.prompt_tokens_details!.cached_tokens! >= one.usage!.prompt_tokens);
});

const endless = {
  model: "demo",
  messages: ask("Tell me a story about a fox."),
  max_tokens: 900,
  ...{ ignore_eos: true },
};

test("OpenAI client: aborting a stream ends the generation, and nothing else", async (origin) => {
  const other = client(origin).chat.completions.create({ ...endless, max_tokens: 64 });
  const stream = await client(origin).chat.completions.create({ ...endless, stream: true });
  let chunks = 0;
  for await (const _ of stream) if (++chunks === 5) break;
  assert(stream.controller.signal.aborted);
  assertEquals((await other).usage!.completion_tokens, 64);
  await until("the slots are free", async () => !await isBusy(origin));
});

test("OpenAI client: aborting a request that is not streamed ends its generation", async (origin) => {
  await until("nothing else runs", async () => !await isBusy(origin));
  const abort = new AbortController();
  const answer = client(origin).chat.completions.create(endless, { signal: abort.signal });
  const rejected = assertRejects(() => answer, OpenAI.APIUserAbortError);
  await until("it runs", () => isBusy(origin));
  abort.abort();
  await rejected;
  await until("the slots are free", async () => !await isBusy(origin));
  const after = await client(origin).chat.completions.create({
    model: "demo",
    messages: ask(CAPITAL.question),
    temperature: 0,
  });
  assertEquals(after.choices[0]!.message.content, CAPITAL.answer);
});

test("OpenAI client: its own time-out ends the generation", async (origin) => {
  await assertRejects(
    () => client(origin).chat.completions.create(endless, { timeout: 150 }),
    OpenAI.APIConnectionTimeoutError,
  );
  await until("the slots are free", async () => !await isBusy(origin));
});

test("OpenAI client: a wrong plan is a BadRequestError with the parser's message", async (origin) => {
  for (
    const [body, message] of [
      [{ model: "demo@34,26" }, "34"],
      [{ model: "demo@26," }, "expected a layer index"],
      [{ model: "demo", repeat_layers: "30,99" }, "40"],
      [{ model: "demo", repeat_layers: 7 }, "repeat_layers"],
    ] as const
  ) {
    const error = await assertRejects(
      () =>
        client(origin).chat.completions.create(
          { messages: ask("Hello"), ...body } as OpenAI.ChatCompletionCreateParamsNonStreaming,
        ),
      OpenAI.BadRequestError,
      message,
    );
    assertEquals([error.status, error.type], [400, "invalid_request_error"]);
  }
});

test("OpenAI client: requests that make no sense are BadRequestErrors", async (origin) => {
  const bodies: Record<string, unknown>[] = [
    {},
    { messages: "text" },
    { messages: [123] },
    { messages: [{}] },
    { messages: [{ role: 1, content: "a" }] },
    { messages: ask("a"), grammar: "root ::= (not closed" },
    { messages: ask("a"), response_format: { type: "sound" } },
    { messages: ask("a"), response_format: { type: "json_object", schema: { type: "hiccup" } } },
    { messages: ask("a"), response_format: { type: "json_schema" } },
    { messages: ask("a"), temperature: "hot" },
    { messages: ask("a"), max_tokens: {} },
    { messages: ask("a"), n: 99 },
    { messages: ask("a"), stop: 7 },
    { messages: ask("a"), model: 7 },
    { messages: ask("a"), logprobs: true, top_logprobs: 3, stream: "yes" },
    { messages: ask("a"), logit_bias: "x" },
    { messages: ask("a"), tools: "add" },
    { messages: ask("a"), tools: [{}] },
    { messages: ask("a"), tools: [7] },
    { messages: ask("a"), tools: [{ type: "function" }] },
    { messages: ask("a"), tools: [{ type: "function", function: 7 }] },
    { messages: ask("a"), tool_choice: 7 },
    { messages: ask("a"), tool_choice: "sometimes" },
    { messages: ask("a"), tool_choice: { type: "function" } },
    { messages: ask("a"), tool_choice: { type: "function", function: { name: "add" } } },
  ];
  for (const body of bodies) {
    const error = await assertRejects(
      () => client(origin).post("/chat/completions", { body }),
      OpenAI.APIError,
      undefined,
      JSON.stringify(body),
    );
    assertEquals([error.status, JSON.stringify(body)], [400, JSON.stringify(body)]);
    assert(error instanceof OpenAI.BadRequestError);
  }
  for (
    const [path, input] of [["/embeddings", []], ["/embeddings", 7], ["/responses", []]] as const
  ) {
    const body = { model: "demo", input };
    await assertRejects(() => client(origin).post(path, { body }), OpenAI.BadRequestError);
  }
});

test("OpenAI client: a prompt that does not fit is a BadRequestError with both numbers", async (origin) => {
  for (const stream of [false, true]) {
    const error = await assertRejects(
      () =>
        client(origin).chat.completions.create({
          model: "demo",
          messages: ask("The capital of France is Paris. ".repeat(300)),
          stream,
        }),
      OpenAI.BadRequestError,
    );
    assertEquals(error.type, "exceed_context_size_error");
    const { n_prompt_tokens, n_ctx } = error.error as Record<string, number>;
    assert(n_prompt_tokens! > n_ctx!, JSON.stringify(error.error));
    assertEquals(n_ctx, 1024);
  }
});

test("OpenAI client: no key and a wrong key are AuthenticationErrors", async (origin) => {
  for (const apiKey of ["wrong", API_KEY.slice(0, -1), `${API_KEY}x`, " "]) {
    const error = await assertRejects(
      () => client(origin, { apiKey }).models.list(),
      OpenAI.AuthenticationError,
    );
    assertEquals(error.status, 401);
    assert(!error.message.includes(API_KEY));
  }
});

test("OpenAI client: a route that is not there is a NotFoundError", async (origin) => {
  const error = await assertRejects(
    () => client(origin).get("/fine_tuning/jobs"),
    OpenAI.NotFoundError,
  );
  assertEquals(error.status, 404);
});

Deno.test({
  name: "OpenAI client: an unknown model is a NotFoundError where names are strict",
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using server = await listen({ strictModels: true });
    const error = await assertRejects(
      () =>
        client(server.origin).chat.completions.create({
          model: "gpt-4.1",
          messages: ask("Hello"),
        }),
      OpenAI.NotFoundError,
      "gpt-4.1",
    );
    assertEquals(error.status, 404);
    const { choices } = await client(server.origin).chat.completions.create({
      model: "demo@26,34",
      messages: ask(CAPITAL.question),
      temperature: 0,
    });
    assertEquals(choices[0]!.message.content, CAPITAL.answer);
  },
});

Deno.test({
  name: "OpenAI client: a server that still loads is a 503 that the client tries again",
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using server = await listen({}, false);
    const error = await assertRejects(
      () => client(server.origin).models.list(),
      OpenAI.InternalServerError,
    );
    assertEquals(error.status, 503);
    assert(error.headers!.get("retry-after") !== null);
    const patient = client(server.origin, { maxRetries: 20 });
    const { choices } = await patient.chat.completions.create({
      model: "demo",
      messages: ask(CAPITAL.question),
      temperature: 0,
    });
    assertEquals(choices[0]!.message.content, CAPITAL.answer);
  },
});

Deno.test({
  name: "OpenAI client: a full queue is a 503 that the client tries again",
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using server = await listen({ nParallel: 1, maxQueue: 0 });
    const { origin } = server;
    const stream = await client(origin).chat.completions.create({ ...endless, stream: true });
    const error = await assertRejects(
      () => client(origin).chat.completions.create({ model: "demo", messages: ask("Hello") }),
      OpenAI.InternalServerError,
    );
    assertEquals(error.status, 503);
    assert(Number(error.headers!.get("retry-after")) > 0);
    const patient = client(origin, { maxRetries: 20 }).chat.completions.create({
      model: "demo",
      messages: ask(CAPITAL.question),
      temperature: 0,
    });
    stream.controller.abort();
    assertEquals((await patient).choices[0]!.message.content, CAPITAL.answer);
    assert((await getJson(origin, "/slots") as unknown[]).length >= 1);
  },
});
