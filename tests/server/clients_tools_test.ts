// Tool calls with real clients, through the three forms in which they ask for them.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { ADD, API_KEY, GREEDY, testsOn, TOOLS_SERVER } from "./_clients.ts";
import { Anthropic, OpenAI } from "./_npm.ts";

const test = testsOn(TOOLS_SERVER);

const openai = (origin: string) =>
  new OpenAI({ baseURL: `${origin}/v1`, apiKey: API_KEY, maxRetries: 0 });
const anthropic = (origin: string) =>
  new Anthropic({ baseURL: origin, apiKey: API_KEY, maxRetries: 0 });

const question = "What is 12 plus 7?";

/** Checks the arguments of a call of the tool. */
function checkArguments(json: string): void {
  const value = JSON.parse(json);
  assertEquals(Object.keys(value), ["a", "b"]);
  for (const n of [value.a, value.b]) assert(Number.isInteger(n) && n >= 0 && n <= 99, json);
}

const chat = {
  model: "deep",
  messages: [{ role: "user" as const, content: question }],
  tools: [{ type: "function" as const, function: ADD }],
  tool_choice: "required" as const,
  temperature: 0,
  max_tokens: 120,
};

test("OpenAI client: a tool call has a name, arguments of the schema, and an id", async (origin) => {
  const { choices } = await openai(origin).chat.completions.create(chat);
  const { message, finish_reason } = choices[0]!;
  assertEquals(finish_reason, "tool_calls");
  assert(!message.content);
  assertEquals(message.tool_calls!.length, 1);
  const [call] = message.tool_calls!;
  assert(call!.type === "function" && call!.id.length > 0);
  assertEquals(call!.function.name, "add");
  checkArguments(call!.function.arguments);
});

test("OpenAI client: a streamed tool call has the same arguments, in pieces", async (origin) => {
  const whole = await openai(origin).chat.completions.create(chat);
  const stream = await openai(origin).chat.completions.create({ ...chat, stream: true });
  let name = "";
  let args = "";
  let pieces = 0;
  const reasons = [];
  for await (const { choices } of stream) {
    for (const call of choices[0]?.delta.tool_calls ?? []) {
      assertEquals(call.index, 0);
      name += call.function?.name ?? "";
      args += call.function?.arguments ?? "";
      pieces++;
    }
    if (choices[0]?.finish_reason) reasons.push(choices[0].finish_reason);
  }
  const [call] = whole.choices[0]!.message.tool_calls!;
  assert(call!.type === "function");
  assertEquals([name, args], ["add", call!.function.arguments]);
  assert(pieces > 2, String(pieces));
  assertEquals(reasons, ["tool_calls"]);
});

test("OpenAI client: the tool's result goes into the next turn", async (origin) => {
  const first = await openai(origin).chat.completions.create(chat);
  const { message } = first.choices[0]!;
  const { choices, usage } = await openai(origin).chat.completions.create({
    ...chat,
    tool_choice: "none",
    max_tokens: 4,
    messages: [
      ...chat.messages,
      message,
      { role: "tool", tool_call_id: message.tool_calls![0]!.id, content: "19" },
    ],
  });
  assertEquals(choices[0]!.message.tool_calls, undefined);
  assert(usage!.prompt_tokens > first.usage!.prompt_tokens);
});

test("OpenAI client: the tool runner calls the function and goes on", async (origin) => {
  const calls: { a: number; b: number }[] = [];
  const runner = openai(origin).chat.completions.runTools({
    ...chat,
    tools: [{
      type: "function",
      function: {
        ...ADD,
        parameters: { ...ADD.parameters, required: [...ADD.parameters.required] },
        parse: JSON.parse,
        function(args: { a: number; b: number }) {
          calls.push(args);
          return String(args.a + args.b);
        },
      },
    }],
  }, { maxChatCompletions: 2 });
  await runner.done();
  assert(calls.length >= 1);
  for (const call of calls) checkArguments(JSON.stringify(call));
});

test("OpenAI client: tool_choice names the tool to call", async (origin) => {
  const other = { name: "other", parameters: { type: "object", properties: {} } };
  const request = {
    ...chat,
    tools: [{ type: "function" as const, function: other }, ...chat.tools],
  };
  const { choices } = await openai(origin).chat.completions.create({
    ...request,
    tool_choice: { type: "function", function: { name: "add" } },
  });
  const [call] = choices[0]!.message.tool_calls!;
  assert(call!.type === "function");
  assertEquals(call!.function.name, "add");
  await assertRejects(
    () =>
      openai(origin).chat.completions.create({
        ...request,
        tool_choice: { type: "function", function: { name: "missing" } },
      }),
    OpenAI.BadRequestError,
  );
});

test("OpenAI client: a tool call through the Responses API", async (origin) => {
  const { output } = await openai(origin).responses.create({
    model: "demo",
    input: question,
    temperature: 0,
    max_output_tokens: 120,
    tool_choice: "required",
    tools: [{ type: "function", strict: true, ...ADD }],
  });
  const calls = output.filter((item) => item.type === "function_call");
  assertEquals(calls.map(({ name, status }) => [name, status]), [["add", "completed"]]);
  checkArguments(calls[0]!.arguments);
  assert(calls[0]!.call_id.length > 0);
});

const message = {
  model: "deep",
  max_tokens: 120,
  ...GREEDY,
  messages: [{ role: "user" as const, content: question }],
  tools: [{
    name: ADD.name,
    description: ADD.description,
    input_schema: { ...ADD.parameters, required: [...ADD.parameters.required] },
  }],
  tool_choice: { type: "any" as const },
};

test("Anthropic client: a tool call is a tool_use block with its input", async (origin) => {
  const { content, stop_reason } = await anthropic(origin).messages.create(message);
  assertEquals(stop_reason, "tool_use");
  const [call] = content.filter((block) => block.type === "tool_use");
  assertEquals(call!.name, "add");
  assert(call!.id.length > 0);
  checkArguments(JSON.stringify(call!.input));
});

test("Anthropic client: a streamed tool call has the same input", async (origin) => {
  const whole = await anthropic(origin).messages.create(message);
  const stream = anthropic(origin).messages.stream(message);
  let json = "";
  stream.on("inputJson", (piece) => json += piece);
  const final = await stream.finalMessage();
  const input = (of: Anthropic.Message) =>
    of.content.filter((block) => block.type === "tool_use").map((block) => block.input);
  assertEquals(input(final), input(whole));
  checkArguments(json);
  assertEquals(final.stop_reason, "tool_use");
});

test("Anthropic client: the tool's result goes into the next turn", async (origin) => {
  const first = await anthropic(origin).messages.create(message);
  const [call] = first.content.filter((block) => block.type === "tool_use");
  const next = await anthropic(origin).messages.create({
    ...message,
    tool_choice: { type: "none" },
    max_tokens: 4,
    messages: [
      ...message.messages,
      { role: "assistant", content: first.content },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: call!.id, content: "19" },
          { type: "text", text: "So?" },
        ],
      },
    ],
  });
  assertEquals([next.type, next.role], ["message", "assistant"]);
  assert(next.usage.output_tokens > 0);
});
