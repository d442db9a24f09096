import { assertEquals } from "@std/assert";
import { responseFields } from "./response_fields.ts";

Deno.test("responseFields() has every field of a request that says nothing", () => {
  const fields = responseFields({ input: "Hello" });
  assertEquals(fields.tools, []);
  assertEquals(fields.tool_choice, "auto");
  assertEquals(fields.text, { format: { type: "text" } });
  assertEquals([fields.instructions, fields.max_output_tokens, fields.temperature], [
    null,
    null,
    null,
  ]);
  assertEquals("input" in fields, false);
});

Deno.test("responseFields() repeats what was asked for", () => {
  const format = { type: "json_schema", name: "x", schema: { const: "42" } };
  const tools = [{ type: "function", name: "add" }];
  const fields = responseFields({
    temperature: 0,
    max_output_tokens: 5,
    metadata: { a: "b" },
    reasoning: { effort: "low" },
    text: { format, verbosity: "low" },
    tools,
    tool_choice: "required",
  });
  assertEquals([fields.temperature, fields.max_output_tokens, fields.metadata], [0, 5, { a: "b" }]);
  assertEquals(fields.text, { format, verbosity: "low" });
  assertEquals(fields.reasoning, { effort: "low", summary: null });
  assertEquals([fields.tools, fields.tool_choice], [tools, "required"]);
});
