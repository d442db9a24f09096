import { assertEquals, assertThrows } from "@std/assert";
import { checkMessages } from "./check_messages.ts";
import { EngineError } from "./client.ts";

const call = (more: Record<string, unknown>, fn: Record<string, unknown> = {}) => ({
  role: "assistant",
  tool_calls: [{ type: "function", function: { name: "f", arguments: "{}", ...fn }, ...more }],
});

Deno.test("checkMessages() takes what is sound", () => {
  checkMessages([
    { role: "system", content: "x", name: null },
    { role: "user", content: [{ type: "text", text: "x" }, { type: "image_url" }] },
    call({ id: null }),
    call({}, { arguments: "" }),
    call({}, { arguments: null }),
    call({}, { arguments: { a: 1 } }),
    { role: "tool", content: "x", tool_call_id: null },
  ]);
  checkMessages([call({}, { arguments: "cut of" })]);
  checkMessages(undefined);
});

Deno.test("checkMessages() names the field that is wrong", () => {
  for (
    const [message, what] of [
      [5, '"messages[0]" must be an object, not a number'],
      [{ content: "x" }, '"messages[0].role" is missing'],
      [{ role: 5 }, '"messages[0].role" must be text, not a number'],
      [
        { role: "user", content: 5 },
        '"messages[0].content" must be text or a list of parts, not a number',
      ],
      [{ role: "user", content: ["x"] }, '"messages[0].content[0]" must be an object, not text'],
      [{ role: "user", content: [{}] }, '"messages[0].content[0].type" is missing'],
      [{ role: "user", content: [{ type: "text" }] }, '"messages[0].content[0].text" is missing'],
      [{ role: "tool", tool_call_id: [] }, '"messages[0].tool_call_id" must be text, not a list'],
      [
        { role: "user", reasoning_content: true },
        '"messages[0].reasoning_content" must be text, not true',
      ],
      [
        { role: "assistant", tool_calls: {} },
        '"messages[0].tool_calls" must be a list, not an object',
      ],
      [call({ id: 1 }), '"messages[0].tool_calls[0].id" must be text, not a number'],
      [
        call({ type: undefined }),
        '"messages[0].tool_calls[0].type" is missing; it must be "function"',
      ],
      [
        call({ function: null }),
        '"messages[0].tool_calls[0].function" must be an object, not null',
      ],
      [
        call({}, { name: 3 }),
        '"messages[0].tool_calls[0].function.name" must be the name of a tool',
      ],
      [
        call({}, { arguments: [1] }),
        '"messages[0].tool_calls[0].function.arguments" must be a JSON object, as text',
      ],
    ] as [unknown, string][]
  ) {
    const error = assertThrows(() => checkMessages([message]), EngineError, what);
    assertEquals([error.status, error.message], [400, what]);
  }
});
