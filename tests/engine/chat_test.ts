// Chats under templates of many kinds: system messages, tools, output that no parser reads.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { EngineError, type Model } from "../../src/engine/mod.ts";
import { SMALL, test } from "./_engine.ts";

const turn = `{{- "<|im_start|>" + m.role + "\\n" + m.content + "<|im_end|>\\n" }}`;
const end = `{%- if add_generation_prompt %}{{ "<|im_start|>assistant\\n" }}{%- endif %}`;

/** Templates that take one system message at most. */
const TEMPLATES = {
  refuses: `{%- for m in messages %}
{%- if m.role == "system" and not loop.first %}{{ raise_exception("The system message must be the first.") }}{%- endif %}
${turn}{%- endfor %}${end}`,
  leavesOut:
    `{%- if messages[0].role == "system" %}{{ "<s>" + messages[0].content + "</s>" }}{%- endif %}
{%- for m in messages %}{%- if m.role != "system" %}${turn}{%- endif %}{%- endfor %}${end}`,
  hasNone: `{%- for m in messages %}
{%- if m.role == "system" %}{{ raise_exception("There is no system role.") }}{%- endif %}
{%- if (m.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("Roles must alternate.") }}{%- endif %}
${turn}{%- endfor %}${end}`,
  takesAll: `{%- for m in messages %}${turn}{%- endfor %}${end}`,
} as const;

/** A chat's prompt under a template. */
async function prompt(
  model: Model,
  chatTemplate: string,
  messages: Parameters<Awaited<ReturnType<Model["createContext"]>>["applyTemplate"]>[0],
): Promise<string> {
  await using context = await model.createContext({ ...SMALL, chatTemplate });
  return await context.applyTemplate(messages);
}

const TWO = [
  { role: "system", content: "Be kind." },
  { role: "system", content: [{ type: "text", text: "Be brief." }] },
  { role: "user", content: "Hi" },
];
const MIDDLE = [
  { role: "system", content: "Be kind." },
  { role: "user", content: "Hi" },
  { role: "system", content: "Be brief." },
];

test("system messages that a template does not take become one at the start", async (model) => {
  const one = "<|im_start|>system\nBe kind.\n\nBe brief.<|im_end|>\n";
  const user = "<|im_start|>user\nHi<|im_end|>\n";
  const answer = "<|im_start|>assistant\n";
  for (const chat of [TWO, MIDDLE]) {
    assertEquals(await prompt(model, TEMPLATES.refuses, chat), one + user + answer);
    assertEquals(
      await prompt(model, TEMPLATES.leavesOut, chat),
      `<s>Be kind.\n\nBe brief.</s>${user}${answer}`,
    );
    assertEquals(
      await prompt(model, TEMPLATES.hasNone, chat),
      `<|im_start|>user\nBe kind.\n\nBe brief.\nHi<|im_end|>\n${answer}`,
    );
  }
});

test("system messages that a template takes stay where they are", async (model) => {
  const text = await prompt(model, TEMPLATES.takesAll, MIDDLE);
  assertEquals(text.match(/Be kind\.|Hi|Be brief\./g), ["Be kind.", "Hi", "Be brief."]);
  assertEquals(text.match(/system/g)!.length, 2);
});

test("a system message alone is a user's under a template without any", async (model) => {
  const text = await prompt(model, TEMPLATES.hasNone, [{ role: "system", content: "Be kind." }]);
  assert(text.startsWith("<|im_start|>user\nBe kind.<|im_end|>"), text);
});

test("what a template raises is a sentence without the template", async (model) => {
  const chat = [{ role: "user", content: "Hi" }, { role: "user", content: "you" }];
  const error = await assertRejects(() => prompt(model, TEMPLATES.hasNone, chat), EngineError);
  assertEquals(
    error.message,
    "The model's chat template refuses these messages: Roles must alternate.",
  );
  assertEquals(error.status, 400);
});

const TOOLS = [{
  type: "function",
  function: {
    name: "add",
    parameters: {
      type: "object",
      properties: { a: { type: "integer", minimum: 0, maximum: 9 } },
      required: ["a"],
      additionalProperties: false,
    },
  },
}];

/** A template with tools whose calls are written as `call` says. */
const withCalls = (call: string, before = "", after = "") =>
  `{%- if tools %}{{ "<|im_start|>system\\n" + (tools | tojson) + "<|im_end|>\\n" }}{%- endif %}
{%- for m in messages %}{{- "<|im_start|>" + m.role + "\\n" }}
{%- if m.content %}{{ m.content }}{%- endif %}
{%- if m.tool_calls %}${before}{%- for call in m.tool_calls %}${call}{%- endfor %}${after}{%- endif %}
{{- "<|im_end|>\\n" }}{%- endfor %}${end}`;

const json = (args: string) =>
  `'{"name": "' + call.function.name + '", "${args}": ' + (call.function.arguments | tojson) + '}'`;

const FORMS: Record<string, string> = {
  tag: withCalls(`{{- "<tool_call>\\n" + ${json("arguments")} + "\\n</tool_call>" }}`),
  list: withCalls(
    `{{- ${json("arguments")} }}{%- if not loop.last %}{{ ", " }}{%- endif %}`,
    `{{- "[TOOL_CALLS] [" }}`,
    `{{- "]" }}`,
  ),
  bare: withCalls(`{{- ${json("parameters")} }}`),
  tagged: withCalls(
    `{{- "<call><f=" + call.function.name + ">" }}
{%- for k, v in call.function.arguments.items() %}{{- "<a=" + k + ">" + (v | string) + "</a>" }}{%- endfor %}
{{- "</f></call>" }}`,
  ),
  // Tools are in the prompt, but the form of a call is nowhere to be seen.
  unknown:
    `{%- if tools %}{{ "<|im_start|>system\\n" + (tools | tojson) + "<|im_end|>\\n" }}{%- endif %}` +
    TEMPLATES.takesAll,
};

test("a call that is required is made, whatever form the template gives it", async (model) => {
  for (const [form, chatTemplate] of Object.entries(FORMS)) {
    await using context = await model.createContext({ ...SMALL, nCtx: 1024, chatTemplate });
    const { toolCalls, text } = await context.generate([{ role: "user", content: "Hello" }], {
      tools: TOOLS,
      toolChoice: "required",
      temperature: 0,
      maxTokens: 100,
      extra: { parallel_tool_calls: false },
    }).completion();
    assertEquals([text, toolCalls.length], ["", 1], form);
    const [call] = toolCalls as { id: string; function: { name: string; arguments: string } }[];
    assertEquals(call!.function.name, "add", form);
    const { a } = JSON.parse(call!.function.arguments);
    assert(Number.isInteger(a) && a >= 0 && a <= 9, form);
    assert(call!.id.length > 0, form);
  }
});

const SHOWS_CALLS = `{%- for m in messages %}{%- for call in m.tool_calls or [] %}
{{- "[" + call.id + " " + call.function.name + " " + (call.function.arguments | tojson) + "]" }}
{%- endfor %}{%- if m.role == "tool" %}{{- "[" + m.tool_call_id + " " + m.content + "]" }}{%- endif %}{%- endfor %}`;

test("calls without an id get one, their results the same, and empty arguments are {}", async (model) => {
  const call = (id: unknown, args: unknown, name = "add") => ({
    ...id === undefined ? {} : { id },
    type: "function",
    function: { name, ...args === undefined ? {} : { arguments: args } },
  });
  const text = await prompt(model, SHOWS_CALLS, [
    {
      role: "assistant",
      content: null,
      tool_calls: [call(null, ""), call("mine", '{"a": 1}'), call(undefined, undefined)],
    },
    { role: "tool", content: "one", tool_call_id: null },
    { role: "tool", content: "two", tool_call_id: "mine" },
    { role: "tool", content: "three" },
  ]);
  const parts = text.match(/\[[^\]]*\]/g)!;
  const [first, , third] = parts.map((part) => part.slice(1).split(" ")[0]!);
  assert(/^[a-z0-9]{9}$/.test(first!) && first !== third, text);
  assertEquals(parts, [
    `[${first} add {}]`,
    `[mine add {"a": 1}]`,
    `[${third} add {}]`,
    `[${first} one]`,
    `[mine two]`,
    `[${third} three]`,
  ]);
});

test("calls in a response's input need no id and no arguments", async (model) => {
  await using context = await model.createContext({ ...SMALL, chatTemplate: SHOWS_CALLS });
  for (const id of [null, undefined, ""]) {
    const { status, body } = await context.request("/v1/responses", {
      input: [
        { role: "user", content: "Hello" },
        { type: "function_call", call_id: id, name: "add", arguments: "" },
        { type: "function_call_output", call_id: id, output: "1" },
      ],
      max_output_tokens: 1,
    });
    assertEquals(status, 200, new TextDecoder().decode(body));
  }
});

/** Upstream reads answers under it as GigaChat's, which begin with another mark than its own. */
const UNREADABLE = `{#- <|role_sep|> <|message_sep|> -#}${TEMPLATES.takesAll}`;

test("output that the template's parser cannot read is text with a warning", async (model) => {
  await using context = await model.createContext({ ...SMALL, chatTemplate: UNREADABLE });
  await using plain = await model.createContext({ ...SMALL, chatTemplate: TEMPLATES.takesAll });
  const chat = [{ role: "user", content: "Hello" }];
  const options = { temperature: 0, maxTokens: 40 };
  const right = await plain.generate(chat, options).completion();
  const got = await context.generate(chat, options).completion();
  assertEquals([got.text, got.finishReason], [right.text, "stop"]);
  assertEquals([got.warnings?.length, right.warnings], [1, undefined]);
});

test("no tokens asked for are none", async (model) => {
  await using context = await model.createContext(SMALL);
  for (const prompt of ["Once upon a time", [{ role: "user", content: "Hello" }]]) {
    const got = await context.generate(prompt, { maxTokens: 0 }).completion();
    assertEquals([got.text, got.tokens, got.nGenerated, got.finishReason], ["", [], 0, "length"]);
    assertEquals(got.timings.predictedTokens, 0);
    assert(got.nPrompt > 0);
  }
});

test("a beginning in no form that the template has is continued as text", async (model) => {
  await using context = await model.createContext({
    ...SMALL,
    nCtx: 1024,
    chatTemplate: FORMS.tag!,
  });
  const ask = async (path: string, body: Record<string, unknown>) => {
    const { status, body: bytes } = await context.request(path, body);
    const text = new TextDecoder().decode(bytes);
    assertEquals(status, 200, text);
    return JSON.parse(text);
  };
  const messages = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: '<tool_call>\n{"name": "no such tool' },
  ];
  const body = { messages, tools: TOOLS, temperature: 0, max_tokens: 6 };
  const { choices, rys } = await ask("/v1/chat/completions", body);
  const [{ message, finish_reason: reason }] = choices;
  assert(message.content.length > 0 && message.tool_calls === undefined);
  assertEquals([reason, rys.warnings.length], ["length", 1]);
});
