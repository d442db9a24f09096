import { assertEquals } from "@std/assert";
import { unknownFields } from "./known_fields.ts";

for (
  const [path, body] of [
    ["/v1/chat/completions", { messages: [], user: "x", store: true, top_k: 1, n: null }],
    ["/v1/messages", { messages: [], max_tokens: 1, system: "", metadata: {}, thinking: {} }],
    ["/v1/responses", { input: "x", text: {}, reasoning: {}, include: [], store: false }],
    ["/v1/completions", { prompt: "x", suffix: null, response_format: {} }],
    ["/v1/embeddings", { input: "x", encoding_format: "float", user: "me" }],
    ["/slots/0", { anything: 1 }],
  ] as const
) {
  Deno.test(`unknownFields() has nothing to say of ${Object.keys(body)} for ${path}`, () =>
    assertEquals(unknownFields(path, body), []));
}

Deno.test("unknownFields() names what a route does not read", () => {
  assertEquals(unknownFields("/v1/chat/completions", { messages: [], temprature: 1 }), [
    `/v1/chat/completions does not know "temprature": it was ignored`,
  ]);
  assertEquals(unknownFields("/v1/embeddings", { input: "x", top_k: 1, messages: [] }), [
    `/v1/embeddings does not know "top_k", "messages": they were ignored`,
  ]);
});
