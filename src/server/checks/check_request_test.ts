import { assertEquals, assertThrows } from "@std/assert";
import { checkRequest, withSampling } from "./check_request.ts";

const FACTS = { nVocab: 100, nEmbd: 8, nParallel: 4, hasTools: true };
const add = { type: "function", function: { name: "add" } };

Deno.test("checkRequest() makes what the engine gets, once, and leaves what came as it is", () => {
  const given = {
    messages: [{ role: "user", content: "x" }],
    tools: [add, { type: "function", function: { name: "other" } }],
    tool_choice: { type: "function", function: { name: "add" } },
    response_format: { type: "json_schema", schema: { type: "integer", multipleOf: 2 } },
    echo: null,
    unheard_of: 1,
  };
  const copy = structuredClone(given);
  const { body, warnings, leavesOutTools } = checkRequest(
    "/v1/chat/completions",
    given,
    "any",
    FACTS,
  );
  assertEquals(given, copy);
  assertEquals<unknown>(body, {
    messages: given.messages,
    tools: [add],
    tool_choice: "required",
    response_format: {
      type: "json_schema",
      json_schema: { schema: { type: "integer", multipleOf: 2 } },
    },
    unheard_of: 1,
  });
  assertEquals([warnings.length, leavesOutTools], [2, false]);
  assertThrows(() => (body as Record<string, unknown>).seed = 1, TypeError);
});

Deno.test("checkRequest() says where the model has no place for tools", () => {
  const body = { messages: [{ role: "user", content: "x" }], tools: [add] };
  const facts = { ...FACTS, hasTools: false };
  const left = checkRequest("/v1/chat/completions", body, "any", facts);
  assertEquals(left.leavesOutTools, true);
  assertEquals(left.warnings, ["tools are left out: the model's chat template has none"]);
});

Deno.test("withSampling() has the seed, and no more probabilities than there are tokens", () => {
  const { body } = checkRequest("/completion", { prompt: "x", n_probs: 500 }, "any", FACTS);
  assertEquals<unknown>(withSampling(body, 7, 100), { prompt: "x", n_probs: 100, seed: 7 });
});
