import { assertEquals } from "@std/assert";
import { explainFault } from "./explain_fault.ts";

const SCHEMA = "Field 'json_schema': \"json_schema\": JSON schema conversion failed:\n" +
  "JSON schema error at #/properties/a: unrecognized type foo";
const GRAMMAR =
  "Failed to initialize samplers: failed to parse grammar: line 2, column 3: expecting name";

for (
  const [message, body, param, part] of [
    [SCHEMA, { json_schema: {} }, "json_schema", "at #/properties/a: unrecognized type foo"],
    [SCHEMA, { response_format: {} }, "response_format", "unrecognized type foo"],
    [SCHEMA, { text: { format: {} } }, "text.format", "unrecognized type foo"],
    [SCHEMA, { tools: [{}] }, "tools", "unrecognized type foo"],
    [
      GRAMMAR,
      { grammar: "x" },
      "grammar",
      '"grammar" could not be parsed: line 2, column 3: expecting name',
    ],
    [GRAMMAR, { json_schema: {} }, "json_schema", '"json_schema"'],
  ] as const
) {
  Deno.test(`explainFault() names ${param} for ${Object.keys(body)}`, () => {
    const said = explainFault(message, body)!;
    assertEquals(said.param, param);
    assertEquals(said.message.includes(part), true, said.message);
    assertEquals(/conversion failed|samplers|Field '/.test(said.message), false, said.message);
  });
}

Deno.test("explainFault() leaves other messages alone", () => {
  assertEquals(explainFault("the prompt is too long", { grammar: "x" }), undefined);
  assertEquals(explainFault(GRAMMAR, {}), undefined);
  assertEquals(explainFault(GRAMMAR, undefined), undefined);
});
