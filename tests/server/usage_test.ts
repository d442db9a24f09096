// What answers say of the tokens they took.

import { assert, assertEquals } from "@std/assert";
import { CHAT, events, type Json, json, refusal, send, shared, test } from "./_server.ts";

const GREEDY = { temperature: 0 } as const;
const PROMPTS = ["Once upon a time", "The cat sat"];

/** Tokens of texts. */
async function count(server: Parameters<typeof json>[0], texts: string[]): Promise<number> {
  let n = 0;
  for (const content of texts) {
    n += (await json(server, "/tokenize", { content, add_special: true })).tokens.length;
  }
  return n;
}

shared("several answers to a chat count all their tokens, and the prompt once", async (server) => {
  const one = await json(server, "/v1/chat/completions", { ...CHAT, ...GREEDY });
  const { choices, usage } = await json(server, "/v1/chat/completions", {
    ...CHAT,
    ...GREEDY,
    n: 2,
  });
  assertEquals(choices.length, 2);
  assertEquals(
    [usage.completion_tokens, usage.prompt_tokens, usage.total_tokens],
    [8, one.usage.prompt_tokens, 8 + one.usage.prompt_tokens],
  );
});

shared("several prompts count all their tokens", async (server) => {
  const ask = { ...GREEDY, prompt: PROMPTS, max_tokens: 3 };
  const { usage } = await json(server, "/v1/completions", ask);
  const nPrompt = await count(server, PROMPTS);
  assertEquals([usage.completion_tokens, usage.prompt_tokens], [6, nPrompt]);
});

shared(
  "a stream tells its usage once, at the end, whatever the number of answers",
  async (server) => {
    const options = { ...GREEDY, stream: true, stream_options: { include_usage: true } };
    for (
      const [path, body, nAnswers] of [
        ["/v1/chat/completions", CHAT, 1],
        ["/v1/chat/completions", { ...CHAT, n: 2 }, 2],
        ["/v1/completions", { prompt: PROMPTS[0], max_tokens: 4 }, 1],
        ["/v1/completions", { prompt: PROMPTS, max_tokens: 4 }, 2],
        ["/v1/completions", { prompt: PROMPTS[0], max_tokens: 4, n: 2 }, 2],
      ] as [string, Json, number][]
    ) {
      const whole = await json(server, path, { ...body, ...GREEDY });
      const list = await events(await send(server, path, { ...body, ...options }));
      assertEquals(list.pop(), "[DONE]");
      assert(list.every((event) => event !== null), `${path} has an empty event`);
      const told = list.filter(({ usage }) => usage);
      assertEquals(told, [list.at(-1)], path);
      const { completion_tokens: n, prompt_tokens: nPrompt } = told[0].usage;
      assertEquals([n, nPrompt], [4 * nAnswers, whole.usage.prompt_tokens], path);
    }
  },
);

shared("a chat's stream without include_usage has no usage", async (server) => {
  const list = await events(
    await send(server, "/v1/chat/completions", { ...CHAT, n: 2, stream: true }),
  );
  assert(list.every(({ usage }) => usage === undefined));
});

shared("Anthropic's usage has the counts of the cache, also in streams", async (server) => {
  const ask = { ...GREEDY, ...CHAT };
  await json(server, "/v1/messages", ask);
  const { usage } = await json(server, "/v1/messages", ask);
  assertEquals(usage.cache_creation_input_tokens, 0);
  assert(usage.cache_read_input_tokens > 0 && usage.input_tokens > 0);
  const list = await events(await send(server, "/v1/messages", { ...ask, stream: true }));
  const start = list.find(({ type }) => type === "message_start").message.usage;
  assertEquals(start, { ...usage, output_tokens: 0 });
  assertEquals(list.find(({ type }) => type === "message_delta").usage, usage);
});

shared("no tokens asked for are none: the prompt is evaluated, and told", async (server) => {
  for (
    const [path, body, read] of [
      [
        "/completion",
        { prompt: "Once upon a time", n_predict: 0 },
        (a: Json) => [a.content, a.tokens_predicted, a.tokens_evaluated, a.stop_type],
      ],
      [
        "/v1/completions",
        { prompt: "Once upon a time", max_tokens: 0 },
        (
          a: Json,
        ) => [
          a.choices[0].text,
          a.usage.completion_tokens,
          a.usage.prompt_tokens,
          a.choices[0].finish_reason,
        ],
      ],
      [
        "/v1/chat/completions",
        { ...CHAT, max_tokens: 0 },
        (
          a: Json,
        ) => [
          a.choices[0].message.content,
          a.usage.completion_tokens,
          a.usage.prompt_tokens,
          a.choices[0].finish_reason,
        ],
      ],
      [
        "/v1/chat/completions",
        { ...CHAT, max_tokens: undefined, max_completion_tokens: 0, n: 2 },
        (
          a: Json,
        ) => [
          a.choices[1].message.content,
          a.usage.completion_tokens,
          a.usage.prompt_tokens,
          a.choices[0].finish_reason,
        ],
      ],
      [
        "/v1/messages",
        { ...CHAT, max_tokens: 0 },
        ({ content, usage, stop_reason: reason }: Json) => [
          content.join(),
          usage.output_tokens,
          usage.input_tokens + usage.cache_read_input_tokens,
          reason === "max_tokens" ? "length" : reason,
        ],
      ],
      [
        "/v1/responses",
        { input: "Hello", max_output_tokens: 0 },
        (a: Json) => [a.output.join(), a.usage.output_tokens, a.usage.input_tokens, "length"],
      ],
    ] as [string, Json, (answer: Json) => [string, number, number, string]][]
  ) {
    const [text, n, nPrompt, reason] = read(await json(server, path, body));
    assertEquals([text, n], ["", 0], path);
    assert(nPrompt > 0, path);
    assert(["limit", "length"].includes(reason), `${path}: ${reason}`);
  }
});

shared("streams of no tokens begin and end as others do", async (server) => {
  const ask = { ...CHAT, max_tokens: 0, stream: true };
  const chat = await events(await send(server, "/v1/chat/completions", ask));
  assertEquals(chat.length, 3);
  assertEquals(chat[0].choices[0].delta.role, "assistant");
  assertEquals(chat[1].choices[0].finish_reason, "length");
  assertEquals(chat[2], "[DONE]");
  const messages = await events(await send(server, "/v1/messages", ask));
  assertEquals(messages.map(({ type }) => type), [
    "message_start",
    "message_delta",
    "message_stop",
  ]);
  const native = await events(
    await send(server, "/completion", { prompt: "Once", n_predict: 0, stream: true }),
  );
  assertEquals(native.map(({ content, stop }) => [content, stop]), [["", true]]);
});

shared("a slash at the end of a path is the same route", async (server) => {
  const ask = { ...CHAT, ...GREEDY };
  const { choices } = await json(server, "/v1/chat/completions", ask);
  const same = await json(server, "/v1/chat/completions/", ask);
  assertEquals(same.choices, choices);
  assertEquals((await json(server, "/v1/models/")).data.length, 1);
  assertEquals((await json(server, "/health/")).status, "ok");
  await refusal(server, 404, "/v1/chat/");
});

const lines: string[] = [];

test(
  "a context size that becomes another is told once",
  { nCtx: 1000, maxContexts: 2, onLog: (line) => lines.push(line) },
  async (server) => {
    assertEquals((await json(server, "/rys")).n_ctx, 1024);
    await json(server, "/v1/chat/completions", { ...CHAT, repeat_layers: "26,34" });
    assertEquals(
      lines.filter((line) => line.includes("1024")),
      ["warning: a context of 1000 tokens becomes one of 1024: sizes are multiples of 256"],
    );
  },
);
