// A last message of the assistant's is continued: the answer is what was added to it, streamed and whole, on every route.

import { assert, assertEquals } from "@std/assert";
import { API_KEY, CAPITAL, GREEDY, testsOn, THINKING_SERVER } from "./_clients.ts";
import { Anthropic, OpenAI } from "./_npm.ts";

const test = testsOn();
const thinking = testsOn(THINKING_SERVER);

const openai = (origin: string) =>
  new OpenAI({ baseURL: `${origin}/v1`, apiKey: API_KEY, maxRetries: 0 });
const anthropic = (origin: string) =>
  new Anthropic({ baseURL: origin, apiKey: API_KEY, maxRetries: 0 });

/** The answer, as each route and way gives it. */
async function answers(origin: string, prefill: string, more: Record<string, unknown> = {}) {
  const messages = [
    { role: "user" as const, content: CAPITAL.question },
    { role: "assistant" as const, content: prefill },
  ];
  const chat = { model: "demo", messages, temperature: 0, max_tokens: 20, ...more };
  const asked = { ...chat, continue_final_message: true, add_generation_prompt: false };
  const message = { model: "demo", messages, ...GREEDY, max_tokens: 20, ...more };
  const response = {
    model: "demo",
    input: messages,
    temperature: 0,
    max_output_tokens: 20,
    ...more,
  };
  const textOf = ({ content }: Anthropic.Message) =>
    content.map((block) => block.type === "text" ? block.text : "").join("");
  const whole = async (body: typeof chat) =>
    (await openai(origin).chat.completions.create(body)).choices[0]!.message.content!;
  const streamed = async (body: typeof chat) => {
    let text = "";
    for await (
      const { choices } of await openai(origin).chat.completions.create({ ...body, stream: true })
    ) text += choices[0]?.delta.content ?? "";
    return text;
  };
  return {
    "chat": await whole(chat),
    "chat, streamed": await streamed(chat),
    "chat, asked for": await whole(asked),
    "chat, asked for, streamed": await streamed(asked),
    "message": textOf(await anthropic(origin).messages.create(message)),
    "message, streamed": textOf(await anthropic(origin).messages.stream(message).finalMessage()),
    "response": (await openai(origin).responses.create(response)).output_text,
    "response, streamed": (await openai(origin).responses.stream(response).finalResponse())
      .output_text,
  };
}

/** Checks that all of them are one. */
function same(all: Record<string, string>, text: string): void {
  assertEquals(all, Object.fromEntries(Object.keys(all).map((name) => [name, text])));
}

test("a continued message is what was added to it", async (origin) => {
  same(await answers(origin, "The capital"), " of France is Paris.");
});

test("a continued message that ends in a space, or is empty, is as well", async (origin) => {
  const all = await answers(origin, "The capital of ");
  assert(all.chat.length > 0 && !all.chat.includes("capital of "), all.chat);
  same(all, all.chat);
  same(await answers(origin, ""), CAPITAL.answer);
});

test("a continued message that ends at once has nothing in it", async (origin) => {
  same(await answers(origin, CAPITAL.answer), "");
});

test("echo gives the message from its beginning", async (origin) => {
  const all = await answers(origin, "The capital", { echo: true });
  for (const way of ["chat", "chat, streamed", "chat, asked for", "chat, asked for, streamed"]) {
    assertEquals([way, all[way as keyof typeof all]], [way, CAPITAL.answer]);
  }
});

thinking("a continued message has no thoughts before it", async (origin) => {
  const all = await answers(origin, "Paris it", { grammar: `root ::= " is"` });
  same(all, " is");
});
