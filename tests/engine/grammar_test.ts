import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { type Context, EngineError } from "@rys/edge";
import { test } from "./_engine.ts";

// Grammars and schemas as the library is given them: what they mean, what is wrong with them, and what they may cost.

const SMALL = { nCtx: 512, nParallel: 1 } as const;

/** An answer that follows a schema to its end. */
async function follow(context: Context, schema: Record<string, unknown>): Promise<unknown> {
  const { text } = await context.generate("Once", {
    jsonSchema: schema,
    maxTokens: 200,
    temperature: 0,
  }).completion();
  return JSON.parse(text);
}

async function fault(
  context: Context,
  options: { grammar?: string; jsonSchema?: Record<string, unknown> },
): Promise<string> {
  const error = await assertRejects(
    () => context.generate("Once", { ...options, maxTokens: 8, temperature: 0 }).completion(),
    EngineError,
  );
  assertEquals([error.fatal, error.status], [false, 400], error.message);
  return error.message;
}

test("a grammar that is wrong says line, column and reason", async (model) => {
  await using context = await model.createContext(SMALL);
  for (
    const [grammar, said] of [
      ['root = "x"', "line 1, column 6: expecting ::="],
      ['root ::= "x" b\n# é\nb ::= "é" [a-', "line 3, column 14: "],
      ['root ::= "x"\n  foo', 'line 1, column 1: rule "foo"'],
      ['root ::= "x" foo', 'line 1, column 14: rule "foo" is used but not defined'],
      [
        'root ::= "a"{3,2}',
        "line 1, column 13: a repetition's maximum of 2 is below its minimum of 3",
      ],
      ['root ::= "a"{99999999999}', "line 1, column 14: number is too large"],
      ['root ::= "a"{3000}', "more than 2000 repetitions"],
      ['x ::= "a"', 'it has no rule "root"'],
      ["# nothing", "it has no rules"],
      ['root ::= root "a" | "b"', 'rule "root" begins with itself'],
      ['root ::= a root "z" | "q"\na ::= b\nb ::= | "y"', 'rule "root" begins with itself'],
      ['root ::= "a" )', "column 14: expecting newline or end"],
      ["root ::= " + "(".repeat(400) + '"a"' + ")".repeat(400), "nested deeper than"],
    ] as const
  ) {
    const message = await fault(context, { grammar });
    if (!grammar.includes("\n  foo")) assert(message.includes(said), `${message} lacks ${said}`);
    assert(message.startsWith("The grammar cannot be used: "), message);
  }
});

test("a grammar with a byte order mark and CRLF works", async (model) => {
  await using context = await model.createContext(SMALL);
  const grammar = '\uFEFF# A word.\r\nroot ::= "x" end # c\r\nend ::= (\r\n  "y" |\r\n  "z" )\r\n';
  const { text } = await context.generate("Once", { grammar }).completion();
  assertMatch(text, /^x[yz]$/);
});

test("a grammar whose rules may match nothing does not run for ever", async (model) => {
  await using context = await model.createContext(SMALL);
  for (const grammar of ['root ::= ("a"?)* "b"', 'root ::= x* "b"\nx ::= "" | "a"']) {
    const { text } = await context.generate("Once", { grammar, maxTokens: 30, temperature: 0 })
      .completion();
    assertMatch(text, /^a*b?$/);
  }
});

test("grammars that grow without end are refused, not computed", async (model) => {
  await using context = await model.createContext(SMALL);
  const chain = (rule: (next: string) => string) =>
    Array.from({ length: 60 }, (_, i) => `${i ? `r${i}` : "root"} ::= ${rule(`r${i + 1}`)}`)
      .join("\n") + '\nr60 ::= "a"';
  await context.generate("Once", { maxTokens: 1 }).completion();
  const before = await model.heapBytes();
  const { text } = await context.generate("Once", { grammar: chain((r) => `${r} | ${r}`) })
    .completion();
  assertEquals(text, "a");
  for (
    const grammar of [
      chain((r) => `${r}? ${r}?`),
      `root ::= "${"a".repeat(2000)}"{2000}`,
      'root ::= ((("a"{0,100}){0,100}){0,100}){0,100}',
      `${"x".repeat(100_000)} ::= ("a" "b")? `.repeat(8) + '\nroot ::= "a"{0,2000}',
    ]
  ) await fault(context, { grammar });
  assert(await model.heapBytes() - before < 256 << 20);
});

test("a grammar with no token to go on with is an error of the request", async (model) => {
  await using context = await model.createContext(SMALL);
  for (const grammar of ['root ::= "a" <[1000000]>', "root ::= <[1000000]>"]) {
    await assertRejects(
      () => context.generate("Once", { grammar, maxTokens: 8 }).completion(),
      EngineError,
    );
    assertEquals((await context.generate("Once", { maxTokens: 1 }).completion()).nGenerated, 1);
  }
});

test("a schema's maximum below its minimum is refused with both numbers and the place", async (model) => {
  await using context = await model.createContext(SMALL);
  const inside = (schema: Record<string, unknown>) => ({
    type: "object",
    properties: { a: schema },
  });
  for (
    const [schema, said] of [
      [{ type: "string", minLength: 3, maxLength: 2 }, "maxLength of 2 is below minLength of 3"],
      [{ type: "array", minItems: 3, maxItems: 2 }, "maxItems of 2 is below minItems of 3"],
      [{ type: "integer", minimum: 3, maximum: 2 }, "maximum of 2 is below minimum of 3"],
      [{ type: "number", minimum: 3.5, maximum: 2 }, "maximum of 2 is below minimum of 3.5"],
      [{ type: "string", pattern: "^a{3,2}$" }, "maximum of 2 is below its minimum of 3"],
      [{ type: "integer", exclusiveMinimum: 2, exclusiveMaximum: 3 }, "no integer"],
      [{ type: "string", maxLength: 2 ** 32 + 3 }, "maxLength of 4294967299 is too large"],
      [{ type: "array", minItems: 1e9 }, "the most that a grammar repeats"],
      [{ type: "integer", minimum: 1e30 }, "15 digits"],
    ] as const
  ) {
    const message = await fault(context, { jsonSchema: inside(schema) });
    assert(message.includes(said), message);
    assert(message.startsWith("The JSON schema cannot be used: at #/properties/a"), message);
  }
});

test("schemas that grow without end are refused, not computed", async (model) => {
  await using context = await model.createContext(SMALL);
  await context.generate("Once", { maxTokens: 1 }).completion();
  const before = await model.heapBytes();
  const nested = (n: number, open: string, close: string) =>
    JSON.parse(open.repeat(n) + "{}" + close.repeat(n));
  const loop = { a: { $ref: "#/$defs/a" } };
  const twice = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [`d${i}`, {
      anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }],
    }]),
  );
  for (
    const jsonSchema of [
      nested(40, '{"type":["array","array"],"items":', "}"),
      nested(245, '{"anyOf":[', "]}").anyOf ? nested(240, '{"items":', "}") : {},
      { allOf: [{ $ref: "#/$defs/a" }], $defs: loop },
      { $ref: "#/$defs/a", $defs: loop },
      { type: "object", additionalProperties: true, properties: { ["x".repeat(90_000)]: {} } },
    ]
  ) {
    const done = await context.generate("Once", { jsonSchema, maxTokens: 4 }).completion()
      .catch((error) => error);
    if (done instanceof Error) assertEquals((done as EngineError).status, 400, done.message);
  }
  const shared = { $ref: "#/$defs/d0", $defs: { ...twice, d60: { const: "end" } } };
  assertEquals(await follow(context, shared), "end");
  assert(await model.heapBytes() - before < 256 << 20);
});

test("a schema of a thousand optional properties is made in time", async (model) => {
  await using context = await model.createContext(SMALL);
  const properties = Object.fromEntries(
    Array.from({ length: 1000 }, (_, i) => [`p${i}`, { type: "boolean" }]),
  );
  const answer = await context.generate("Once", {
    jsonSchema: { type: "object", properties },
    maxTokens: 4,
  }).completion();
  assert(answer.text.startsWith("{"));
});

test("names that a grammar could misread are kept apart from additional ones", async (model) => {
  await using context = await model.createContext(SMALL);
  const jsonSchema = {
    type: "object",
    properties: { "a]^-\\": { const: 1 }, "b]": { const: 1 }, "^": { const: 2 } },
    required: ["b]", "^"],
    additionalProperties: { const: 3 },
  };
  const { text } = await context.generate("Once", { jsonSchema, maxTokens: 40, temperature: 0 })
    .completion();
  assertMatch(text, /^\{\s*"b\]"\s*:\s*1,\s*"\^"\s*:\s*2/);
});

test("a schema's pattern gives JSON strings that match it", async (model) => {
  await using context = await model.createContext(SMALL);
  for (
    const pattern of [
      "^a\tb$",
      "^é+$",
      "^\\d{3}$",
      "^\\w\\s\\d$",
      "^\\D\\W\\S$",
      "^(foo|bar)$",
      "^[^a]{4}$",
      "^.{5}$",
      '^"q\\\\$',
      '^["\\\\]{2}\\/$',
      "^\\u00e9\\x41\\u{1F600}$",
      "^(?<year>\\d{4})-(?:0[1-9]|1[0-2])$",
      "^[\\d.-]{3}$",
      "^a{,3}$",
      "^\\n\\u0001$",
      "^$",
      "^x|^yz{2}?$",
    ]
  ) {
    const value = await follow(context, { type: "string", pattern, description: "short" })
      .catch((error) => `${error}`);
    assertEquals(typeof value, "string");
    if (!pattern.includes("|^")) {
      assert(
        new RegExp(pattern, pattern.includes("{,") ? "" : "u").test(value as string),
        `${pattern}: ${JSON.stringify(value)}`,
      );
    }
  }
});

test("a pattern without anchors may stand anywhere in a string", async (model) => {
  await using context = await model.createContext(SMALL);
  const { text } = await context.generate('The JSON is "', {
    jsonSchema: { type: "string", pattern: "\\d" },
    maxTokens: 300,
    seed: 1,
    temperature: 2,
  }).completion();
  // It may be cut, but not end before the digit.
  if (text.length > 1 && text.endsWith('"')) assertMatch(JSON.parse(text), /\d/);
  const anchored = await follow(context, { type: "string", pattern: "x$", maxLength: 1 })
    .catch(() => "x");
  assertMatch(String(anchored), /x$/);
});

test("a pattern that cannot be honoured is refused with its place", async (model) => {
  await using context = await model.createContext(SMALL);
  for (
    const [pattern, said] of [
      ["^(?=x)", "look-ahead"],
      ["(?<!x)y", "look-behind"],
      ["\\bx", "word boundaries"],
      ["^\\p{L}$", "Unicode properties"],
      ["^[\\p{L}]$", "Unicode properties"],
      ["^[[:digit:]]$", "POSIX classes"],
      ["^(a)\\1$", "references"],
      ["(?i)a", "flags"],
      ["a^b", "anchor in the middle"],
      ["^[a-z", 'no "]"'],
      ["(a", 'no ")"'],
      ["a)", 'no "("'],
      ["*a", "nothing to repeat"],
      ["[z-a]", "ends before it begins"],
      ["\\q", "not known"],
      ["a{2001}", "more than 2000"],
    ] as const
  ) {
    const message = await fault(context, {
      jsonSchema: { type: "array", items: { type: "string", pattern } },
    });
    assert(message.includes(said), message);
    assert(message.includes("at #/items/pattern"), message);
  }
});
