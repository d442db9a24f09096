// Answers that the chat template's parser cannot read, and requests that name the field that is wrong.

import { assert, assertEquals } from "@std/assert";
import { events, type Json, json, refusal, send, shared, test } from "./_server.ts";

/** Upstream reads answers under it as GigaChat's, which begin with another mark than its own. */
const UNREADABLE = `{#- <|role_sep|> <|message_sep|> -#}
{%- for m in messages %}{{- "<|im_start|>" + m.role + "\\n" + m.content + "<|im_end|>\\n" }}{%- endfor %}
{%- if add_generation_prompt %}{{ "<|im_start|>assistant\\n" }}{%- endif %}`;

const ASK = { messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 40 };

test(
  "an answer that no parser reads is text, with a warning, on every route",
  { context: { chatTemplate: UNREADABLE } },
  async (server) => {
    const plain = await json(server, "/completion", {
      prompt: "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
      temperature: 0,
      n_predict: 40,
    });
    const text = plain.content;
    assert(text.length > 0 && plain.stop_type === "eos");
    const warned = ({ rys }: Json) => assertEquals(rys.warnings.length, 1);

    const chat = await json(server, "/v1/chat/completions", ASK);
    const [{ message, finish_reason: reason }] = chat.choices;
    assertEquals([message.content, reason], [text, "stop"]);
    warned(chat);
    const chunks = await events(
      await send(server, "/v1/chat/completions", { ...ASK, stream: true }),
    );
    assertEquals(chunks.pop(), "[DONE]");
    assertEquals(chunks.map(({ choices }) => choices[0].delta.content ?? "").join(""), text);
    assertEquals(chunks.at(-1).choices[0].finish_reason, "stop");
    warned(chunks.at(-1));

    const whole = await json(server, "/v1/messages", ASK);
    assertEquals([whole.content, whole.stop_reason], [[{ type: "text", text }], "end_turn"]);
    warned(whole);
    const parts = await events(await send(server, "/v1/messages", { ...ASK, stream: true }));
    assertEquals(parts.map(({ delta }) => delta?.text ?? "").join(""), text);
    const end = parts.find(({ type }) => type === "message_delta");
    assertEquals(end.delta.stop_reason, "end_turn");
    warned(end);

    const ask = { input: "Hello", temperature: 0, max_output_tokens: 40 };
    const response = await json(server, "/v1/responses", ask);
    assertEquals(response.output[0].content[0].text, text);
    warned(response);
    const list = await events(await send(server, "/v1/responses", { ...ask, stream: true }));
    const last = list.at(-1).response;
    assertEquals([last.status, last.output[0].content[0].text], ["completed", text]);
    warned(last);
  },
);

shared("an answer that is read has no warnings", async (server) => {
  assertEquals((await json(server, "/v1/chat/completions", ASK)).rys.warnings, undefined);
});

shared("a field of a wrong type is named", async (server) => {
  const call = { type: "function", function: { name: "f", arguments: "{}" } };
  const message = (more: Json) => ({ messages: [{ role: "user", content: "x", ...more }] });
  for (
    const [path, body, param] of [
      ["/v1/chat/completions", { ...ASK, stream: "yes" }, "stream"],
      ["/v1/chat/completions", { ...ASK, parallel_tool_calls: 1 }, "parallel_tool_calls"],
      ["/v1/chat/completions", { ...ASK, reasoning_format: 5 }, "reasoning_format"],
      ["/v1/chat/completions", { ...ASK, stream_options: true }, "stream_options"],
      ["/v1/chat/completions", message({ role: 5 }), "messages[0].role"],
      [
        "/v1/chat/completions",
        message({ content: [{ type: "text", text: 1 }] }),
        "messages[0].content[0].text",
      ],
      [
        "/v1/chat/completions",
        message({ tool_calls: [{ ...call, id: 1 }] }),
        "messages[0].tool_calls[0].id",
      ],
      ["/v1/chat/completions", message({ tool_call_id: {} }), "messages[0].tool_call_id"],
      ["/v1/messages", message({ content: [{ type: "text" }] }), "messages[0].content[0].text"],
      ["/completion", { prompt: "x", cache_prompt: "no" }, "cache_prompt"],
      ["/tokenize", { content: "x", with_pieces: 1 }, "with_pieces"],
    ] as [string, Json, string][]
  ) {
    const error = await refusal(server, 400, path, body);
    assertEquals(error.param, param);
    assert(error.message.includes(`"${param}"`), error.message);
  }
});
