import { assert, assertEquals } from "@std/assert";
import { ApiError } from "./api_error.ts";
import { errorEvent } from "./error_event.ts";

const late = new ApiError(504, "The request took too long");

function parse(text: string): { name: string | undefined; data: Record<string, unknown> } {
  assert(text.endsWith("\n\n"));
  const lines = text.trimEnd().split("\n");
  return {
    name: lines.find((line) => line.startsWith("event: "))?.slice(7),
    data: JSON.parse(lines.find((line) => line.startsWith("data: "))!.slice(6)),
  };
}

Deno.test("errorEvent() is llama-server's for a chat", () => {
  const { name, data } = parse(errorEvent(late, "/v1/chat/completions"));
  assertEquals(name, undefined);
  assertEquals(data, {
    error: { code: 504, message: "The request took too long", type: "timeout_error" },
  });
});

Deno.test("errorEvent() is Anthropic's for a message", () => {
  const { name, data } = parse(errorEvent(late, "/v1/messages"));
  assertEquals([name, data.type], ["error", "error"]);
  assertEquals((data.error as { type: string }).type, "timeout_error");
});

Deno.test("errorEvent() is OpenAI's for a response", () => {
  const { name, data } = parse(errorEvent(late, "/v1/responses"));
  const fields = { code: "timeout_error", message: "The request took too long", param: null };
  assertEquals(name, "error");
  assertEquals(data, { ...fields, type: "error", error: { ...fields, type: "timeout_error" } });
});
