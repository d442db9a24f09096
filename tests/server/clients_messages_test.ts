// Fields of Anthropic's /v1/messages, with Anthropic's own client: what it has beside a chat, and what llama-server has.

import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import {
  ADD,
  API_KEY,
  CAPITAL,
  GREEDY,
  testsOn,
  THINKING_SERVER,
  THOUGHT,
  TOOLS_SERVER,
} from "./_clients.ts";
import { Anthropic, OpenAI } from "./_npm.ts";

const test = testsOn();
const tools = testsOn(TOOLS_SERVER);
const thinking = testsOn(THINKING_SERVER);

const client = (origin: string) =>
  new Anthropic({ baseURL: origin, apiKey: API_KEY, maxRetries: 0 });

type Request = Anthropic.MessageCreateParamsNonStreaming;

/** A message, and what the answer says of the run. */
async function create(origin: string, more: Partial<Request> & Record<string, unknown>) {
  const message = await client(origin).messages.create({
    model: "demo",
    max_tokens: 20,
    messages: [{ role: "user", content: CAPITAL.question }],
    ...more,
  });
  const { rys } = message as unknown as { rys: { seed: number } };
  const text = message.content.map((block) => block.type === "text" ? block.text : "").join("");
  return { message, text, seed: rys.seed };
}

test("Anthropic client: the seed that is told is the one that ran", async (origin) => {
  const story = (seed?: number) =>
    create(origin, {
      messages: [{ role: "user", content: "Tell me a story about a fox." }],
      max_tokens: 24,
      ...{ temperature: 1.5 },
      ...seed === undefined ? {} : { seed },
    });
  const one = await story(7);
  assertEquals(one.seed, 7);
  assertEquals((await story(7)).text, one.text);
  assertNotEquals((await story(8)).text, one.text);
  const any = await story();
  assertEquals((await story(any.seed)).text, any.text);
});

test("Anthropic client: llama-server's samplers reach a message", async (origin) => {
  const hot = { temperature: 2, seed: 3, max_tokens: 8 };
  assertEquals((await create(origin, { ...hot, min_p: 1 })).text, CAPITAL.answer);
  const banned = await create(origin, {
    ...GREEDY,
    logit_bias: [["Paris", false], [" Paris", false]],
  });
  assert(!banned.text.includes("Paris"), banned.text);
  const grammar = await create(origin, { ...GREEDY, grammar: `root ::= "no"` });
  assertEquals(grammar.text, "no");
});

test("Anthropic client: cache_prompt false computes the prompt anew", async (origin) => {
  await create(origin, GREEDY);
  const cached = await create(origin, GREEDY);
  assert(cached.message.usage.cache_read_input_tokens! > 0);
  const anew = await create(origin, { ...GREEDY, cache_prompt: false });
  assertEquals(anew.message.usage.cache_read_input_tokens, 0);
  assertEquals(anew.text, cached.text);
});

test("Anthropic client: output_config.format is kept to", async (origin) => {
  const format = { type: "json_schema" as const, schema: { const: "42" } };
  const asked = {
    messages: [{ role: "user" as const, content: "A cat" }],
    output_config: { format },
  };
  assertEquals((await create(origin, asked)).text, '"42"');
  const streamed = await client(origin).messages.stream({ model: "demo", max_tokens: 20, ...asked })
    .finalMessage();
  assertEquals(streamed.content.map((block) => block.type === "text" && block.text), ['"42"']);
  await assertRejects(
    () =>
      create(origin, { output_config: { format: { ...format, type: "xml" as "json_schema" } } }),
    Anthropic.BadRequestError,
    "output_config.format.type",
  );
});

const tool = {
  name: ADD.name,
  description: ADD.description,
  input_schema: { ...ADD.parameters, required: [...ADD.parameters.required] },
};

tools("Anthropic client: tool_choice none gives no tool call", async (origin) => {
  const ask = (type: "any" | "none") =>
    create(origin, {
      ...GREEDY,
      max_tokens: 60,
      messages: [{ role: "user", content: "What is 12 plus 7?" }],
      tools: [tool],
      tool_choice: { type },
    });
  const called = await ask("any");
  assertEquals(called.message.stop_reason, "tool_use");
  const none = await ask("none");
  assertEquals(none.message.content.filter(({ type }) => type === "tool_use"), []);
  assertNotEquals(none.message.stop_reason, "tool_use");
});

thinking(
  "Anthropic client: thoughts are a block, which ends before the text begins",
  async (origin) => {
    const request = {
      model: "demo",
      max_tokens: 40,
      ...GREEDY,
      ...{ grammar: THOUGHT.grammar },
      messages: [{ role: "user" as const, content: CAPITAL.question }],
    };
    const whole = await client(origin).messages.create(request);
    assertEquals(whole.content, [
      { type: "thinking", thinking: THOUGHT.reasoning, signature: "" },
      { type: "text", text: THOUGHT.answer },
      // deno-lint-ignore no-explicit-any -- what the types have beside it is not given
    ] as any);
    const seen: string[] = [];
    const blocks: unknown[] = [];
    const stream = client(origin).messages.stream(request);
    stream.on("streamEvent", (event) => {
      if (event.type.startsWith("content_block_") && "index" in event) {
        const name = `${event.type} ${event.index}`;
        if (seen.at(-1) !== name) seen.push(name);
      }
    });
    stream.on("contentBlock", (block) => blocks.push(block));
    const final = await stream.finalMessage();
    assertEquals(
      seen,
      [0, 1].flatMap((i) => [
        `content_block_start ${i}`,
        `content_block_delta ${i}`,
        `content_block_stop ${i}`,
      ]),
    );
    assertEquals(final.content, whole.content);
    assertEquals(blocks, whole.content);
  },
);

thinking("Anthropic client: thinking disabled reaches the template", async (origin) => {
  const count = async (thinking?: Anthropic.ThinkingConfigParam) =>
    (await create(origin, {
      ...GREEDY,
      ...{ grammar: `root ::= "It is asked</think>Paris it is" | "Paris"` },
      max_tokens: 40,
      ...thinking ? { thinking } : {},
    })).message;
  const off = await count({ type: "disabled" });
  assertEquals(off.content.filter(({ type }) => type === "thinking"), []);
  const { input_tokens: without } = await client(origin).messages.countTokens({
    model: "demo",
    messages: [{ role: "user", content: CAPITAL.question }],
    thinking: { type: "disabled" },
  });
  const { input_tokens: withThoughts } = await client(origin).messages.countTokens({
    model: "demo",
    messages: [{ role: "user", content: CAPITAL.question }],
  });
  assert(without > withThoughts, `${without} > ${withThoughts}`); // "</think>" closes what "<think>" opens
});

/** Two streams that do not end by themselves, for whose texts together the context is too small. */
const tight = testsOn({ nCtx: 256 });

tight(
  "errors in streams have the form of the stream, and the clients raise them",
  async (origin) => {
    const endless = { stream: true, ignore_eos: true };
    const messages = [{ role: "user" as const, content: "Tell me a story." }];
    const lastOf = async (path: string, body: unknown) => {
      const response = await fetch(`${origin}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${API_KEY}` },
        body: JSON.stringify(body),
      });
      const events = (await response.text()).trimEnd().split("\n\n");
      return events.map((event) => {
        const [name, data] = event.split("\n");
        return { name, data: JSON.parse(data!.slice("data: ".length)) };
      }).slice(-2);
    };
    const [ofMessage, ofResponse] = await Promise.all([
      lastOf("/v1/messages", { ...endless, model: "demo", max_tokens: 100_000, messages }),
      lastOf("/v1/responses", { ...endless, model: "demo", input: messages }),
    ]);
    for (const events of [ofMessage, ofResponse]) {
      assertEquals([events[1]!.name, events[1]!.data.type], ["event: error", "error"]);
      assert(/context size/i.test(events[1]!.data.error.message), JSON.stringify(events[1]));
    }
    const [before, error] = ofResponse!.map(({ data }) => data);
    assertEquals(error.sequence_number, before.sequence_number + 1);
    assertEquals([error.code, error.message], ["server_error", error.error.message]);
    const [one, two] = await Promise.allSettled([
      client(origin).messages.stream({
        model: "demo",
        max_tokens: 100_000,
        messages,
        ...{ ignore_eos: true },
      }).finalMessage(),
      new OpenAI({ baseURL: `${origin}/v1`, apiKey: API_KEY, maxRetries: 0 }).responses.stream({
        model: "demo",
        input: messages,
        ...{ ignore_eos: true },
      }).finalResponse(),
    ]);
    assert(
      one.status === "rejected" && one.reason instanceof Anthropic.APIError,
      String(one.status),
    );
    assert(two.status === "rejected" && two.reason instanceof OpenAI.APIError, String(two.status));
  },
);
