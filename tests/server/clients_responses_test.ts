// OpenAI's /v1/responses with the two clients that check its events: OpenAI's stream helper, which refuses one that is out
// of order or lacks an index, and the AI SDK's provider.

import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  ADD,
  API_KEY,
  CAPITAL,
  testsOn,
  THINKING_SERVER,
  THOUGHT,
  TOOLS_SERVER,
} from "./_clients.ts";
import {
  createOpenAI,
  generateText,
  jsonSchema,
  OpenAI,
  Output,
  stepCountIs,
  streamText,
  tool,
} from "./_npm.ts";

const test = testsOn();
const tools = testsOn(TOOLS_SERVER);
const thinking = testsOn(THINKING_SERVER);

const openai = (origin: string) =>
  new OpenAI({ baseURL: `${origin}/v1`, apiKey: API_KEY, maxRetries: 0 });
const ai = (origin: string) =>
  createOpenAI({ baseURL: `${origin}/v1`, apiKey: API_KEY }).responses("demo");

type Event = OpenAI.Responses.ResponseStreamEvent;

const capital = {
  model: "demo",
  input: CAPITAL.question,
  temperature: 0,
  max_output_tokens: 20,
};

/** Streams a request; gives its events and what the helper gathered. */
async function gather(origin: string, request: Parameters<OpenAI["responses"]["stream"]>[0]) {
  const stream = openai(origin).responses.stream(request);
  const events: Event[] = [];
  for await (const event of stream) events.push(event);
  assertEquals(events.map(({ sequence_number }) => sequence_number), events.map((_, i) => i));
  return {
    events,
    types: once(events.map(({ type }) => type)),
    final: await stream.finalResponse(),
  };
}

/** A list without what repeats its neighbour. */
const once = (list: string[]) => list.filter((one, i) => one !== list[i - 1]);

/** A response without what differs between two of the same request. */
function comparable({ output, status, incomplete_details, usage }: OpenAI.Responses.Response) {
  const items = JSON.parse(
    JSON.stringify(output),
    (name, value) =>
      ["id", "call_id", "parsed", "parsed_arguments"].includes(name) ? undefined : value,
  );
  return { items, status, incomplete_details, output_tokens: usage!.output_tokens };
}

test("OpenAI client: responses.stream() has all events of a text, with their indices", async (origin) => {
  const { events, types, final } = await gather(origin, capital);
  assertEquals(types, [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  const [item] = final.output;
  for (const event of events) {
    if ("output_index" in event) assertEquals(event.output_index, 0);
    if ("content_index" in event) assertEquals(event.content_index, 0);
    if ("item_id" in event) assertEquals(event.item_id, item!.id);
  }
  assertEquals([final.output_text, final.status], [CAPITAL.answer, "completed"]);
  const whole = await openai(origin).responses.create(capital);
  assertEquals(comparable(final), comparable(whole));
});

test("OpenAI client: a response repeats what was asked for", async (origin) => {
  const answer = await openai(origin).responses.create({ ...capital, metadata: { a: "b" } });
  assertEquals([answer.temperature, answer.max_output_tokens, answer.metadata], [0, 20, {
    a: "b",
  }]);
  assertEquals([answer.tools, answer.tool_choice, answer.error, answer.incomplete_details], [
    [],
    "auto",
    null,
    null,
  ]);
  const { input_tokens, output_tokens, total_tokens, output_tokens_details } = answer.usage!;
  assertEquals([output_tokens, total_tokens], [8, input_tokens + 8]);
  assertEquals(output_tokens_details.reasoning_tokens, 0);
});

test("OpenAI client: a response that the limit cuts is incomplete, and says why", async (origin) => {
  const request = { ...capital, max_output_tokens: 3 };
  const { types, final } = await gather(origin, request);
  assertEquals(types.at(-1), "response.incomplete");
  const whole = await openai(origin).responses.create(request);
  for (const answer of [final, whole]) {
    assertEquals([answer.status, answer.incomplete_details], ["incomplete", {
      reason: "max_output_tokens",
    }]);
    const [item] = answer.output;
    assert(item?.type === "message");
    assertEquals([item.status, answer.output_text], ["incomplete", "The capital of"]);
  }
});

test("OpenAI client: text.format is kept to", async (origin) => {
  const format = { type: "json_schema" as const, name: "x", schema: { const: "42" } };
  const request = { model: "demo", input: "A cat", text: { format } };
  const whole = await openai(origin).responses.create(request);
  assertEquals([whole.output_text, whole.text?.format], ['"42"', format]);
  const { final } = await gather(origin, request);
  assertEquals(final.output_text, '"42"');
  const object = await openai(origin).responses.create({
    model: "demo",
    input: "A cat as JSON",
    temperature: 0,
    max_output_tokens: 50,
    text: { format: { type: "json_object" } },
  });
  assert(/^\{\s*["}]/.test(object.output_text), object.output_text);
  await assertRejects(
    () =>
      openai(origin).responses.create({
        ...request,
        // deno-lint-ignore no-explicit-any -- what the types do not allow
        text: { format: { type: "xml" } as any },
      }),
    OpenAI.BadRequestError,
    "text.format.type",
  );
});

test("OpenAI client: items may lack a type, a text or a content", async (origin) => {
  const user = (content: string) => ({ role: "user" as const, content });
  const count = async (input: OpenAI.Responses.ResponseInput) =>
    (await openai(origin).responses.create({ ...capital, input, max_output_tokens: 1 })).usage!
      .input_tokens;
  const plain = await count([user("Hello"), user(CAPITAL.question)]);
  const turn = [
    user("Hello"),
    { role: "assistant" as const, content: "yo" },
    user(CAPITAL.question),
  ];
  const more = await count(turn);
  assert(more > plain, `${more} > ${plain}`);
  const message = (content: OpenAI.Responses.ResponseOutputMessage["content"]) => ({
    type: "message" as const,
    id: "msg_1",
    role: "assistant" as const,
    status: "completed" as const,
    content,
  });
  const text = { type: "output_text" as const, text: "yo", annotations: [] };
  for (const content of [[text], [{ type: "refusal" as const, refusal: "yo" }]]) {
    assertEquals(await count([turn[0]!, message(content), turn[2]!]), more);
  }
  const empty = { type: "reasoning" as const, id: "rs_1", summary: [] };
  assertEquals(await count([turn[0]!, empty, turn[1]!, turn[2]!]), more);
});

test("OpenAI client: what needs a server that keeps responses is refused", async (origin) => {
  for (const more of [{ previous_response_id: "resp_1" }, { background: true }]) {
    const error = await assertRejects(
      () => openai(origin).responses.create({ ...capital, ...more }),
      OpenAI.BadRequestError,
    );
    assertEquals(error.param, Object.keys(more)[0]);
  }
});

const add = {
  model: "demo",
  input: "What is 12 plus 7?",
  temperature: 0,
  max_output_tokens: 120,
  tool_choice: "required" as const,
  tools: [{ type: "function" as const, strict: true, ...ADD }],
};

tools("OpenAI client: responses.stream() has all events of a tool call", async (origin) => {
  const { events, types, final } = await gather(origin, add);
  assertEquals(types, [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
    "response.completed",
  ]);
  const [call] = final.output;
  assert(call?.type === "function_call");
  assertEquals([call.name, call.status], ["add", "completed"]);
  assertEquals(Object.keys(JSON.parse(call.arguments)), ["a", "b"]);
  let pieces = "";
  for (const event of events) {
    if (event.type === "response.function_call_arguments.delta") pieces += event.delta;
    if (event.type === "response.function_call_arguments.done") {
      assertEquals(event.arguments, call.arguments);
    }
    if ("item_id" in event) assertEquals(event.item_id, call.id);
  }
  assertEquals(pieces, call.arguments);
  assertEquals(comparable(final), comparable(await openai(origin).responses.create(add)));
});

tools(
  "OpenAI client: tools that are no functions are left out, and the answer says so",
  async (origin) => {
    const answer = await openai(origin).responses.create({
      ...add,
      tools: [{ type: "web_search" }, ...add.tools],
    });
    assertEquals(answer.output.map(({ type }) => type), ["function_call"]);
    const { warnings } = (answer as unknown as { rys: { warnings: string[] } }).rys;
    assert(warnings[0]!.includes(`"web_search"`), JSON.stringify(warnings));
  },
);

tools("OpenAI client: a tool's output may be a list of texts", async (origin) => {
  const { output, usage } = await openai(origin).responses.create(add);
  const [call] = output;
  assert(call?.type === "function_call");
  const next = async (of: unknown) => {
    const answer = await openai(origin).responses.create({
      ...add,
      tool_choice: "none",
      max_output_tokens: 4,
      input: [
        { role: "user", content: add.input },
        call,
        // deno-lint-ignore no-explicit-any -- parts that the types do not allow
        { type: "function_call_output", call_id: call.call_id, output: of as any },
      ],
    });
    assertEquals(answer.output.filter(({ type }) => type === "function_call"), []);
    return answer.usage!.input_tokens;
  };
  const plain = await next("19");
  assert(plain > usage!.input_tokens);
  assertEquals(await next([{ type: "input_text", text: "19" }]), plain);
  assertEquals(await next([{ type: "output_text", text: "19", annotations: [] }]), plain);
});

thinking("OpenAI client: thoughts are a reasoning item before the message", async (origin) => {
  const request = { ...capital, max_output_tokens: 40, ...{ grammar: THOUGHT.grammar } };
  const { events, types, final } = await gather(origin, request);
  assertEquals(types, [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  const indices = events.flatMap((event) => "output_index" in event ? [event.output_index] : []);
  assertEquals(once(indices.map(String)), ["0", "1"]);
  const whole = await openai(origin).responses.create(request);
  assertEquals(comparable(final), comparable(whole));
  const [thought, message] = whole.output;
  assert(thought?.type === "reasoning" && message?.type === "message");
  assertEquals(thought.content, [{ type: "reasoning_text", text: THOUGHT.reasoning }]);
  assertEquals(whole.output_text, THOUGHT.answer);
  assert(whole.usage!.output_tokens_details.reasoning_tokens > 0);
  // and back: the items of an answer are items of the next input
  const next = await openai(origin).responses.create({
    ...request,
    input: [
      { role: "user", content: CAPITAL.question },
      thought,
      message,
      { role: "user", content: "Sure?" },
    ],
  });
  assertEquals(next.output_text, THOUGHT.answer);
});

test("AI SDK: openai.responses generates and streams a text", async (origin) => {
  const ask = { prompt: CAPITAL.question, temperature: 0, maxOutputTokens: 20 };
  const whole = await generateText({ model: ai(origin), ...ask });
  assertEquals([whole.text, whole.finishReason], [CAPITAL.answer, "stop"]);
  assertEquals(whole.usage.outputTokens, 8);
  const stream = streamText({ model: ai(origin), ...ask });
  const pieces = await Array.fromAsync(stream.textStream);
  assert(pieces.length > 2);
  assertEquals([pieces.join(""), await stream.finishReason], [CAPITAL.answer, "stop"]);
  assertEquals((await stream.usage).outputTokens, 8);
  const cut = await generateText({ model: ai(origin), ...ask, maxOutputTokens: 3 });
  assertEquals([cut.text, cut.finishReason], ["The capital of", "length"]);
});

test("AI SDK: openai.responses generates an object of a schema", async (origin) => {
  const { output } = await generateText({
    model: ai(origin),
    prompt: "A cat",
    output: Output.object({
      schema: jsonSchema<{ ok: boolean; n: number }>({
        type: "object",
        properties: { ok: { type: "boolean" }, n: { enum: [1, 2] } },
        required: ["ok", "n"],
        additionalProperties: false,
      }),
    }),
  });
  assertEquals([typeof output.ok, [1, 2].includes(output.n)], ["boolean", true]);
});

tools("AI SDK: openai.responses calls a tool, streamed and whole", async (origin) => {
  const calls: { a: number; b: number }[] = [];
  const ask = () => ({
    model: ai(origin),
    prompt: add.input,
    temperature: 0,
    maxOutputTokens: 120,
    toolChoice: "required" as const,
    stopWhen: stepCountIs(2),
    tools: {
      add: tool({
        description: ADD.description,
        inputSchema: jsonSchema<{ a: number; b: number }>(structuredClone(ADD.parameters) as never),
        execute: ({ a, b }: { a: number; b: number }) => {
          calls.push({ a, b });
          return String(a + b);
        },
      }),
    },
  });
  const whole = await generateText(ask());
  assertEquals(whole.steps.length, 2);
  assertEquals(calls.length, 2);
  const stream = streamText(ask());
  await stream.consumeStream();
  assertEquals((await stream.steps).length, 2);
  assertEquals(calls.slice(2), calls.slice(0, 2));
});

test("AI SDK: an answer goes back as a reference to its item, or as itself", async (origin) => {
  const sent: { input: { type?: string }[] }[] = [];
  const provider = createOpenAI({
    baseURL: `${origin}/v1`,
    apiKey: API_KEY,
    fetch: (url, init) => {
      sent.push(JSON.parse(String(init!.body)));
      return fetch(url, init);
    },
  });
  const ask = { model: provider.responses("demo"), temperature: 0, maxOutputTokens: 4 };
  const first = { role: "user" as const, content: CAPITAL.question };
  const next = { role: "user" as const, content: "Sure?" };
  const inputs = [];
  for (const store of [true, false]) {
    const providerOptions = { openai: { store } };
    const one = await generateText({ ...ask, messages: [first], providerOptions });
    const messages = [first, ...one.response.messages, next];
    const two = await generateText({ ...ask, messages, providerOptions });
    assertEquals(sent.at(-1)!.input.some(({ type }) => type === "item_reference"), store);
    inputs.push(two.usage.inputTokens);
  }
  assertEquals(inputs[0], inputs[1]);
  const error = await assertRejects(
    () =>
      openai(origin).responses.create({
        ...capital,
        input: [first, { type: "item_reference", id: "msg_unknown" }, next],
      }),
    OpenAI.BadRequestError,
    "msg_unknown",
  );
  assertEquals(error.param, "input[1]");
});
