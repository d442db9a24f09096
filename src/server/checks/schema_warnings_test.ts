import { assert, assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../http/api_error.ts";
import { schemaWarnings, unsupportedInPattern } from "./schema_warnings.ts";

/** Keywords that a schema's warnings name. */
const keywords = (schema: unknown): string[] =>
  schemaWarnings({ json_schema: schema }).map((text) => /: "([^"]*)" at /.exec(text)?.[1] ?? text);

for (
  const [schema, named] of [
    [{ type: "object", properties: { a: { type: "integer", minimum: 1 } }, required: ["a"] }, []],
    [{ type: "string", format: "date-time" }, []],
    [{ type: "string", pattern: "^a$" }, []],
    [{ enum: [1, 2], type: "integer", description: "x" }, []],
    [{ type: "number", minimum: 0.5, multipleOf: 2 }, ["minimum", "multipleOf"]],
    [{ type: "integer", multipleOf: 2 }, ["multipleOf"]],
    [{ type: "array", items: {}, uniqueItems: true }, ["uniqueItems"]],
    [{ type: "array", items: {}, uniqueItems: false }, []],
    [{ type: "object", minProperties: 1, propertyNames: {} }, ["minProperties", "propertyNames"]],
    [{ type: "object", required: ["a"] }, ["required"]],
    [{ type: "string", format: "email" }, ["format"]],
    [{ type: "string", pattern: "^a$", maxLength: 3 }, ["maxLength"]],
    [{ type: "string", maxLength: 5000 }, ["maxLength"]],
    [{ if: {}, then: {}, type: "null" }, ["if", "then"]],
    [{ $ref: "#/$defs/a", minLength: 3, $defs: { a: { multipleOf: 2 } } }, [
      "minLength",
      "multipleOf",
    ]],
    [{ oneOf: [{ type: "null" }] }, ["oneOf"]],
    [{ type: ["string", "null"], format: "uri" }, ["format"]],
  ] as const
) {
  Deno.test(`schemaWarnings() of ${JSON.stringify(schema)}`, () =>
    assertEquals(keywords(schema), [...named]));
}

Deno.test("schemaWarnings() says where, in which field", () => {
  const schema = { type: "object", properties: { n: { type: "number", maximum: 3 } } };
  const said = '"maximum" at #/properties/n is not enforced';
  for (
    const [body, name] of [
      [{ json_schema: schema }, "json_schema"],
      [{ response_format: { type: "json_schema", json_schema: { schema } } }, "response_format"],
      [{ text: { format: { schema } } }, "text.format"],
      [{ output_config: { format: { schema } } }, "output_config"],
      [{ tools: [{ type: "function", function: { parameters: schema } }] }, "tools[0]"],
      [{ tools: [{ input_schema: schema }] }, "tools[0]"],
    ] as const
  ) {
    assertEquals(schemaWarnings(body), [`"${name}": ${said}`]);
  }
});

Deno.test("schemaWarnings() refuses a maximum below its minimum, with the place", () => {
  for (
    const [schema, said] of [
      [{ minLength: 3, maxLength: 2 }, "maxLength of 2 is below minLength of 3"],
      [{ minItems: 3, maxItems: 2 }, "maxItems of 2 is below minItems of 3"],
      [{ minimum: 0.5, exclusiveMaximum: 0 }, "exclusiveMaximum of 0 is below minimum of 0.5"],
      [{ pattern: "^a{3,2}$" }, "maximum of 2 is below its minimum of 3"],
    ] as const
  ) {
    const parameters = { type: "object", properties: { a: schema } };
    const error = assertThrows(
      () => schemaWarnings({ tools: [{ type: "function", function: { parameters } }] }),
      ApiError,
    );
    assertEquals([error.status, error.more.fields?.param], [400, "tools"]);
    assert(error.message.includes(`at #/properties/a: `) && error.message.includes(said));
  }
  assertEquals(schemaWarnings({ json_schema: { pattern: "^\\{3,2}$" } }), []);
});

Deno.test("schemaWarnings() tells of a tool's pattern that cannot be honoured", () => {
  const parameters = { type: "string", pattern: "^(?!x)" };
  const [warning] = schemaWarnings({ tools: [{ type: "function", function: { parameters } }] });
  assert(warning?.includes("look-ahead"), warning);
});

Deno.test("schemaWarnings() of a grammar and of many keywords", () => {
  assertEquals(schemaWarnings({ grammar: 'root ::= "a"{1,3000}' }).length, 1);
  assertEquals(schemaWarnings({ grammar: 'root ::= "a"{1,2000}' }), []);
  const many = { anyOf: Array.from({ length: 100 }, () => ({ multipleOf: 2 })) };
  assertEquals(schemaWarnings({ json_schema: many }).length, 21);
});

Deno.test("unsupportedInPattern() looks outside of sets of characters alone", () => {
  assertEquals(unsupportedInPattern("^[\\b(?=]\\d\\\\b(?:x)(?<n>y)$"), undefined);
  for (const pattern of ["(?=a)", "(?<!a)", "a\\b", "[\\p{L}]", "[[:digit:]]", "(a)\\1", "(?i)a"]) {
    assert(unsupportedInPattern(pattern) !== undefined, pattern);
  }
});
