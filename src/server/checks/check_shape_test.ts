import { assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../http/api_error.ts";
import { checkShape, chooseTool, leavesOutTools } from "./check_shape.ts";

const CHAT = "/v1/chat/completions";
const messages = [{ role: "user", content: "Hello" }];
const add = { type: "function", function: { name: "add", parameters: {} } };
const other = { type: "function", function: { name: "other" } };

/** The field that an error names. */
function param(use: () => void): unknown {
  const error = assertThrows(use, ApiError);
  assertEquals(error.status, 400);
  return error.more.fields?.param;
}

Deno.test("checkShape() lets through what the APIs allow", () => {
  const schema = { type: "object" };
  for (
    const body of [
      { messages },
      { messages, tools: null, logit_bias: null, response_format: null },
      { messages, tools: [], logit_bias: {} },
      { messages, tools: [add, { type: "custom", name: "x" }], logit_bias: [[1, 2]] },
      { messages, response_format: { type: "json_schema", json_schema: { name: "a", schema } } },
      { messages, response_format: { type: "json_schema", schema } },
      { messages, response_format: { type: "json_object" } },
    ]
  ) checkShape(CHAT, body);
  const tools = [{ name: "add", input_schema: {} }, { type: "web_search_20250305", name: "x" }];
  checkShape("/v1/messages", { messages, system: "Be brief.", tools });
  checkShape("/v1/messages", { messages, system: [{ type: "text", text: "Be brief." }] });
  checkShape("/v1/responses", { input: "Hello", tools: [{ type: "function", name: "add" }] });
  checkShape("/completion", { prompt: "Hello" });
});

Deno.test("checkShape() names the field that is wrong", () => {
  const wrong: [path: string, body: Record<string, unknown>, param: string][] = [
    [CHAT, {}, "messages"],
    [CHAT, { messages: "text" }, "messages"],
    [CHAT, { messages: [7] }, "messages[0]"],
    [CHAT, { messages: [...messages, { role: 1 }] }, "messages[1].role"],
    ["/v1/messages", { messages: null }, "messages"],
    ["/v1/messages/count_tokens", { messages: {} }, "messages"],
    ["/v1/messages", { messages, system: 7 }, "system"],
    [CHAT, { messages, tools: {} }, "tools"],
    [CHAT, { messages, tools: [null] }, "tools[0]"],
    [CHAT, { messages, tools: [add, {}] }, "tools[1]"],
    [CHAT, { messages, tools: [{ type: "function" }] }, "tools[0]"],
    [CHAT, { messages, tools: [{ type: "function", function: "add" }] }, "tools[0].function"],
    [CHAT, { messages, logit_bias: "x" }, "logit_bias"],
    [CHAT, { messages, response_format: { type: "json_schema" } }, "response_format"],
    [
      CHAT,
      { messages, response_format: { type: "json_schema", json_schema: { schema: 7 } } },
      "response_format",
    ],
    ["/v1/responses", { input: [] }, "input"],
  ];
  for (const [path, body, name] of wrong) assertEquals(param(() => checkShape(path, body)), name);
});

Deno.test("chooseTool() leaves one tool, and requires a call of it", () => {
  const chat = {
    tools: [other, add],
    tool_choice: { type: "function", function: { name: "add" } },
  };
  assertEquals(chooseTool(chat), { tools: [add], tool_choice: "required" });

  const tool = { type: "function", name: "add" };
  const responses = {
    tools: [{ type: "function", name: "other" }, tool],
    tool_choice: tool,
  };
  assertEquals(chooseTool(responses), { tools: [tool], tool_choice: "required" });

  const choice = { type: "tool", name: "add" };
  const anthropic = { tools: [{ name: "add" }, { name: "other" }], tool_choice: choice };
  assertEquals(chooseTool(anthropic), { tools: [{ name: "add" }] });
});

Deno.test("chooseTool() leaves other choices as they are", () => {
  for (
    const choice of [undefined, null, "none", "auto", "required", { type: "auto" }, { type: "any" }]
  ) {
    assertEquals(chooseTool({ tools: [add], tool_choice: choice }), {});
  }
});

Deno.test("chooseTool() refuses a tool that is not there, and what is not a choice", () => {
  for (
    const choice of [
      7,
      "sometimes",
      [],
      {},
      { type: "function" },
      { type: "function", function: { name: "missing" } },
      { type: "tool", name: "" },
    ]
  ) {
    assertEquals(param(() => chooseTool({ tools: [add], tool_choice: choice })), "tool_choice");
  }
  assertEquals(
    param(() => chooseTool({ tool_choice: { type: "tool", name: "add" } })),
    "tool_choice",
  );
});

Deno.test("chooseTool() refuses to require a call where there are no tools", () => {
  for (const choice of ["required", { type: "any" }]) {
    for (const tools of [undefined, null, []]) {
      assertEquals(param(() => chooseTool({ tools, tool_choice: choice })), "tool_choice");
    }
  }
});

Deno.test("leavesOutTools() refuses a call that is required, in each of the three forms", () => {
  for (
    const [path, choice] of [
      ["/v1/chat/completions", "required"],
      ["/chat/completions", "required"],
      ["/v1/responses", "required"],
      ["/v1/messages", { type: "any" }],
      ["/v1/messages", { type: "tool", name: "add" }],
    ] as const
  ) {
    const body = { tools: [add], tool_choice: choice };
    assertEquals(param(() => leavesOutTools(path, body)), "tool_choice", path);
  }
});

Deno.test("leavesOutTools() tells whether tools that are offered come to nothing", () => {
  const path = "/v1/chat/completions";
  assertEquals(leavesOutTools(path, { tools: [add] }), true);
  assertEquals(leavesOutTools(path, { tools: [add], tool_choice: "auto" }), true);
  assertEquals(
    leavesOutTools("/v1/messages", { tools: [add], tool_choice: { type: "auto" } }),
    true,
  );
  for (const body of [{}, { tools: [] }, { tools: [add], tool_choice: "none" }]) {
    assertEquals(leavesOutTools(path, body), false);
  }
  assertEquals(leavesOutTools("/completion", { tools: [add], tool_choice: "required" }), false);
});
