import { assertThrows } from "@std/assert";
import { ApiError } from "../http/api_error.ts";
import { checkFormats } from "./check_formats.ts";

const SCHEMA = { type: "json_schema", name: "x", schema: { type: "object" } };

Deno.test("checkFormats() takes what can be had", () => {
  for (const format of [{ type: "text" }, { type: "json_object" }, SCHEMA, null, undefined]) {
    checkFormats("/v1/responses", { text: { format } });
  }
  checkFormats("/v1/responses", {
    input: [
      { role: "user", content: "Hello" },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "yo" }] },
      { type: "reasoning", id: "rs_1", summary: [] },
      { type: "function_call", call_id: "call_1", name: "add", arguments: "" },
      { type: "function_call_output", call_id: "call_1", output: "19" },
      { type: "function_call_output", call_id: "call_1", output: [] },
    ],
  });
  checkFormats("/v1/responses", { text: null, previous_response_id: null, background: false });
  checkFormats("/v1/messages", { output_config: { format: SCHEMA, effort: "low" } });
  checkFormats("/v1/messages", { output_config: null, n: 1 });
  checkFormats("/v1/chat/completions", { n: 2, prompt: "x", conversation: "y" });
});

Deno.test("checkFormats() refuses the rest by name", () => {
  const cases: [path: string, body: Record<string, unknown>, says: string][] = [
    ["/v1/responses", { text: "x" }, `"text" must be an object`],
    ["/v1/responses", { text: { format: "json" } }, `"text.format" must be an object`],
    ["/v1/responses", { text: { format: { type: "xml" } } }, `"text.format.type" must be "text"`],
    ["/responses", { text: { format: { type: "json_schema" } } }, "needs a schema"],
    ["/v1/responses", { previous_response_id: "resp_1" }, `"previous_response_id" cannot be used`],
    ["/v1/responses", { conversation: {} }, `"conversation" cannot be used`],
    ["/v1/responses", { prompt: { id: "x" } }, `"prompt" cannot be used`],
    ["/v1/responses", { background: true }, `"background" must be false`],
    [
      "/v1/responses",
      { tool_choice: "required", tools: [{ type: "web_search" }] },
      `"tool_choice" requires a call of a tool, but none is of type "function"`,
    ],
    ["/v1/responses", { input: ["x"] }, `"input[0]" must be an object`],
    ["/v1/responses", { input: [{ content: "x" }] }, `"input[0].role" must be "user"`],
    ["/v1/responses", { input: [{ role: "user" }] }, `"input[0].content" must be text or a list`],
    [
      "/v1/responses",
      { input: [{ role: "user", content: "" }, { type: "web_search_call" }] },
      `"input[1].type" must be "message", "reasoning", "function_call" or "function_call_output"`,
    ],
    ["/v1/responses", { input: [{ type: "function_call" }] }, `"input[0].call_id" must be text`],
    [
      "/v1/responses",
      { input: [{ type: "function_call_output", call_id: "x" }] },
      `"input[0].output" must be text`,
    ],
    ["/v1/responses", { n: 2 }, `"n" must be 1`],
    ["/v1/messages", { n_cmpl: 2 }, `"n_cmpl" must be 1`],
    ["/v1/messages", { output_config: 7 }, `"output_config" must be an object`],
    [
      "/v1/messages",
      { output_config: { format: { type: "json_object" } } },
      `"output_config.format.type" must be "json_schema"`,
    ],
    ["/v1/messages/count_tokens", { output_config: { format: { type: "json_schema" } } }, "schema"],
  ];
  for (const [path, body, says] of cases) {
    assertThrows(() => checkFormats(path, body), ApiError, says, JSON.stringify(body));
  }
});
