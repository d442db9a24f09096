import { assertEquals } from "@std/assert";
import { grammarFault, sayGrammarFault } from "./grammar_fault.ts";

Deno.test("sayGrammarFault() says what is wrong and where, and says it again unchanged", () => {
  for (
    const [message, said] of [
      [
        "Failed to initialize samplers: failed to parse grammar: line 1, column 6: expecting ::=",
        "The grammar cannot be used: line 1, column 6: expecting ::=",
      ],
      [
        "Field 'json_schema': \"json_schema\": JSON schema conversion failed:\nJSON schema error at #/a: x: y",
        "The JSON schema cannot be used: at #/a: x: y",
      ],
      [
        "Failed to initialize samplers: the grammar is too ambiguous: it takes more",
        "The grammar cannot be used: the grammar is too ambiguous: it takes more",
      ],
      ["the prompt is too long", "the prompt is too long"],
    ] as const
  ) {
    assertEquals(sayGrammarFault(message), said);
    assertEquals(sayGrammarFault(said), said);
  }
});

Deno.test("grammarFault() tells a grammar from a schema", () => {
  assertEquals(grammarFault("JSON schema error at #: x")?.in, "schema");
  assertEquals(grammarFault("failed to parse grammar: x")?.in, "grammar");
  assertEquals(grammarFault("x"), undefined);
});
