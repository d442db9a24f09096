// The server with Anthropic's own client.

import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { API_KEY, CAPITAL, GREEDY, isBusy, listen, testsOn, until } from "./_clients.ts";
import { Anthropic } from "./_npm.ts";

const test = testsOn();

const client = (origin: string, options: { apiKey?: string; maxRetries?: number } = {}) =>
  new Anthropic({ baseURL: origin, apiKey: API_KEY, maxRetries: 0, ...options });

const ask = (content: string) => [{ role: "user" as const, content }];

const capital = {
  model: "demo",
  max_tokens: 20,
  ...GREEDY,
  messages: ask(CAPITAL.question),
};

const text = ({ content }: Anthropic.Message) =>
  content.map((block) => block.type === "text" ? block.text : "").join("");

test("Anthropic client: a message has its text, its usage and nothing of another API", async (origin) => {
  const message = await client(origin).messages.create(capital);
  assertEquals(text(message), CAPITAL.answer);
  assertEquals(message.content.map(({ type }) => type), ["text"]);
  assertEquals([message.type, message.role, message.stop_reason], [
    "message",
    "assistant",
    "end_turn",
  ]);
  assertEquals(message.model, "demo");
  const { input_tokens, cache_read_input_tokens, output_tokens } = message.usage;
  assertEquals([input_tokens + (cache_read_input_tokens ?? 0), output_tokens], [15, 8]);
  assert(!("timings" in message) && !("choices" in message));
});

test("Anthropic client: the model's name chooses the plan", async (origin) => {
  const story = async (model: string) => {
    const message = await client(origin).messages.create({
      model,
      max_tokens: 40,
      ...GREEDY,
      messages: ask("Tell me a story about a fox."),
    });
    const { rys } = message as unknown as { rys: { plan: string; n_layer_eff: number } };
    return [message.model, rys.plan, rys.n_layer_eff, text(message)] as const;
  };
  const none = await story("demo");
  const byName = await story("demo@26,34");
  const byAlias = await story("deep");
  assertEquals(none.slice(0, 3), ["demo", "none", 40]);
  assertEquals(byName.slice(0, 3), ["demo@26,34", "26,34", 48]);
  assertEquals(byAlias.slice(0, 3), ["deep", "26,34", 48]);
  assertEquals(byName[3], byAlias[3]);
  assertNotEquals(none[3], byName[3]);
});

test("Anthropic client: system text, blocks of text and earlier turns", async (origin) => {
  const message = await client(origin).messages.create({
    ...capital,
    system: [{ type: "text", text: "Answer in a sentence." }],
    messages: [
      ...ask("Hello"),
      { role: "assistant", content: "Hi there!" },
      {
        role: "user",
        content: [{ type: "text", text: "What is the capital" }, {
          type: "text",
          text: " of France?",
        }],
      },
    ],
  });
  assert(text(message).length > 0);
  const plain = await client(origin).messages.create(capital);
  const inputs = ({ usage }: Anthropic.Message) =>
    usage.input_tokens + (usage.cache_read_input_tokens ?? 0);
  assert(inputs(message) > inputs(plain));
});

test("Anthropic client: a stream has its events in their order", async (origin) => {
  const events = await Array.fromAsync(
    await client(origin).messages.create({ ...capital, model: "deep", stream: true }),
  );
  const types = events.map(({ type }) => type);
  assertEquals(types.filter((type, i) => type !== types[i - 1]), [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  let said = "";
  for (const event of events) {
    if (event.type === "message_start") {
      assertEquals([event.message.role, event.message.content], ["assistant", []]);
      assert(event.message.usage.input_tokens + event.message.usage.cache_read_input_tokens! > 0);
    }
    if (event.type === "content_block_delta" && event.delta.type === "text_delta") {
      assertEquals(event.index, 0);
      said += event.delta.text;
    }
    if (event.type === "message_delta") {
      assertEquals(event.delta.stop_reason, "end_turn");
      assert(event.usage.output_tokens > 0);
    }
  }
  assertEquals(said, CAPITAL.answer);
});

test("Anthropic client: the stream helper gathers the same message", async (origin) => {
  const final = await client(origin).messages.stream(capital).finalMessage();
  assertEquals([text(final), final.stop_reason], [CAPITAL.answer, "end_turn"]);
});

test("Anthropic client: max_tokens and stop_sequences end a message, and it says which", async (origin) => {
  const short = await client(origin).messages.create({ ...capital, max_tokens: 3 });
  assertEquals([text(short), short.stop_reason], ["The capital of", "max_tokens"]);
  assertEquals(short.usage.output_tokens, 3);
  const stopped = await client(origin).messages.create({
    ...capital,
    stop_sequences: [" is Par"],
  });
  assertEquals(text(stopped), "The capital of France");
  assertEquals([stopped.stop_reason, stopped.stop_sequence], ["stop_sequence", " is Par"]);
  const streamed = await client(origin).messages.stream({ ...capital, stop_sequences: [" is Par"] })
    .finalMessage();
  assertEquals([streamed.stop_reason, streamed.stop_sequence], ["stop_sequence", " is Par"]);
});

test("Anthropic client: tokens are counted as a message counts them", async (origin) => {
  const { messages, model } = capital;
  const count = await client(origin).messages.countTokens({ model, messages });
  assertEquals(count.input_tokens, 15);
  const more = await client(origin).messages.countTokens({
    model,
    messages,
    system: "Answer in a sentence.",
  });
  assert(more.input_tokens > 15);
});

test("Anthropic client: the list of models", async (origin) => {
  const { data } = await client(origin).models.list();
  assertEquals(data.map(({ id }) => id), ["demo", "deep", "plain"]);
});

const endless = {
  model: "demo",
  max_tokens: 900,
  messages: ask("Tell me a story about a fox."),
  ...{ ignore_eos: true },
};

test("Anthropic client: aborting a stream ends the generation", async (origin) => {
  const stream = client(origin).messages.stream(endless);
  let pieces = 0;
  stream.on("text", () => {
    if (++pieces === 5) stream.abort();
  });
  await assertRejects(() => stream.finalMessage(), Anthropic.APIUserAbortError);
  await until("the slots are free", async () => !await isBusy(origin));
});

test("Anthropic client: aborting a request that is not streamed ends its generation", async (origin) => {
  await until("nothing else runs", async () => !await isBusy(origin));
  const abort = new AbortController();
  const answer = client(origin).messages.create(endless, { signal: abort.signal });
  const rejected = assertRejects(() => answer, Anthropic.APIUserAbortError);
  await until("it runs", () => isBusy(origin));
  abort.abort();
  await rejected;
  await until("the slots are free", async () => !await isBusy(origin));
});

test("Anthropic client: wrong requests and plans are BadRequestErrors", async (origin) => {
  const bodies: Record<string, unknown>[] = [
    { ...capital, model: "demo@34,26" },
    { ...capital, repeat_layers: "26," },
    { ...capital, messages: "text" },
    { ...capital, messages: undefined },
    { ...capital, messages: [{ role: "user", content: 7 }] },
    { ...capital, system: 7 },
    { ...capital, tools: 7 },
    { ...capital, tools: [{}] },
    { ...capital, tool_choice: { type: "tool", name: "missing" } },
    { ...capital, temperature: "hot" },
    { ...capital, max_tokens: "many" },
  ];
  for (const body of bodies) {
    const error = await assertRejects(
      () => client(origin).post("/v1/messages", { body }),
      Anthropic.APIError,
      undefined,
      JSON.stringify(body),
    );
    assertEquals([error.status, JSON.stringify(body)], [400, JSON.stringify(body)]);
    assert(error instanceof Anthropic.BadRequestError);
  }
});

test("Anthropic client: a prompt that does not fit is a BadRequestError", async (origin) => {
  await assertRejects(
    () =>
      client(origin).messages.create({
        ...capital,
        messages: ask("The capital of France is Paris. ".repeat(300)),
      }),
    Anthropic.BadRequestError,
    "1024",
  );
});

test("Anthropic client: an image is refused in words where the model has no eyes", async (origin) => {
  const error = await assertRejects(
    () =>
      client(origin).messages.create({
        ...capital,
        messages: [{
          role: "user",
          content: [
            {
              type: "image",
              source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" },
            },
            { type: "text", text: "What is this?" },
          ],
        }],
      }),
    Anthropic.APIError,
    "image input is not",
  );
  assertEquals(error.status, 400);
});

test("Anthropic client: a wrong key is an AuthenticationError, a wrong route a NotFoundError", async (origin) => {
  await assertRejects(
    () => client(origin, { apiKey: "wrong" }).messages.create(capital),
    Anthropic.AuthenticationError,
  );
  await assertRejects(
    () => client(origin).get("/v1/organizations"),
    Anthropic.NotFoundError,
  );
});

Deno.test({
  name: "Anthropic client: a server that still loads is a 503 that the client tries again",
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using server = await listen({}, false);
    const error = await assertRejects(
      () => client(server.origin).messages.create(capital),
      Anthropic.InternalServerError,
    );
    assertEquals(error.status, 503);
    const patient = client(server.origin, { maxRetries: 20 });
    assertEquals(text(await patient.messages.create(capital)), CAPITAL.answer);
  },
});
