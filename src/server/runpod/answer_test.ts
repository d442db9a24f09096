import { assertEquals } from "@std/assert";
import { answerShape, failureIn, failureOf } from "./answer.ts";
import type { SseEvent } from "./sse_events.ts";

const event = (value: unknown): SseEvent => {
  const data = typeof value === "string" ? value : JSON.stringify(value);
  return { raw: `data: ${data}\n\n`, data };
};
const delta = (content: string, index = 0) => ({ choices: [{ index, delta: { content } }] });
const usage = { prompt_tokens: 5, completion_tokens: 2 };

Deno.test("answerShape() joins objects to one flat list, however they were grouped", () => {
  const shape = answerShape("objects", true);
  const parts = [
    shape.part([event(delta("a"))]),
    shape.part([event(delta("b")), event({ choices: [], usage }), event("[DONE]")]),
  ];
  assertEquals(shape.all(parts), [delta("a"), delta("b"), { choices: [], usage }]);
  assertEquals([shape.hasParts, answerShape("objects", false).hasParts], [true, false]);
  assertEquals(answerShape("objects", false).whole({ id: 1 }), { id: 1 });
});

Deno.test("answerShape() keeps events as text", () => {
  const shape = answerShape("events", true);
  assertEquals(
    shape.part([event({ a: 1 }), event("[DONE]")]),
    'data: {"a":1}\n\ndata: [DONE]\n\n',
  );
  assertEquals(shape.whole({ id: 1 }), [{ id: 1 }]);
  assertEquals(shape.hasParts, true);
});

Deno.test("answerShape() writes tokens of each choice, and usage, as vLLM's worker does", () => {
  const shape = answerShape("tokens", true);
  assertEquals(shape.part([event(delta("a")), event(delta("b", 1)), event(delta("c"))]), {
    choices: [{ tokens: ["a", "c"] }, { tokens: ["b"] }],
  });
  assertEquals(shape.part([event({ choices: [], usage }), event("[DONE]")]), {
    choices: [{ tokens: [] }],
    usage: { input: 5, output: 2 },
  });
  assertEquals(shape.whole({ choices: [{ index: 0, text: "x" }], usage }), [
    { choices: [{ tokens: ["x"] }], usage: { input: 5, output: 2 } },
  ]);
  const rys = { plan: "26,34" };
  assertEquals(shape.whole({ choices: [{ index: 0, message: { content: "y" } }], rys }), [
    { choices: [{ tokens: ["y"] }], rys },
  ]);
});

Deno.test("failureIn() reads an error with its details", () => {
  const error = { code: 400, message: "too long", type: "exceed_context_size_error", n_ctx: 256 };
  assertEquals(failureIn({ error }), error);
  assertEquals(failureOf(event({ error })), error);
  assertEquals(failureIn({ error: {} }), {
    code: 500,
    message: "the server failed",
    type: "server_error",
  });
});

Deno.test("failureIn() sees no error where there is none", () => {
  for (const answer of [undefined, null, 1, "x", [], {}, { error: null }, { choices: [] }]) {
    assertEquals(failureIn(answer), undefined);
  }
  assertEquals(failureOf(event("[DONE]")), undefined);
});
