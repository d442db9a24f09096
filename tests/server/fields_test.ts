import { assert, assertEquals, assertMatch } from "@std/assert";
import { TOOLS_SERVER } from "./_clients.ts";
import { CHAT, send, shared, test } from "./_server.ts";

// What a request asks for is honoured, refused, or told: nothing is dropped without a word.

type Json = Record<string, unknown>;

const SCHEMA = {
  type: "object",
  properties: { n: { type: "integer", minimum: 7, maximum: 7 } },
  required: ["n"],
};
const PROMPT = { prompt: "Once upon", temperature: 0 };
const tool = (parameters: unknown) => ({
  type: "function",
  function: { name: "look", parameters },
});

shared(
  "a schema beside the type of response_format is honoured, in chats and in plain completions",
  async (server) => {
    for (
      const [path, body] of [
        ["/v1/chat/completions", { ...CHAT, max_tokens: 40 }],
        ["/v1/completions", { ...PROMPT, max_tokens: 40 }],
        ["/completion", { ...PROMPT, n_predict: 40 }],
      ] as const
    ) {
      for (
        const format of [
          { type: "json_schema", schema: SCHEMA },
          { type: "json_schema", json_schema: { name: "x", schema: SCHEMA } },
          { type: "json_object", schema: SCHEMA },
        ]
      ) {
        const response = await send(server, path, { ...body, response_format: format });
        const answer = await response.json();
        assertEquals(response.status, 200, JSON.stringify(answer));
        const text = answer.content ?? answer.choices[0].text ?? answer.choices[0].message.content;
        assertEquals(JSON.parse(text), { n: 7 }, `${path} ${JSON.stringify(format)}`);
        assertEquals(answer.rys.warnings, undefined);
      }
    }
  },
);

shared("a field that no route knows is told in the warnings", async (server) => {
  for (
    const [path, body] of [
      ["/v1/chat/completions", CHAT],
      ["/completion", { ...PROMPT, n_predict: 1 }],
      ["/v1/completions", { ...PROMPT, max_tokens: 1 }],
      ["/v1/messages", { ...CHAT, model: "demo" }],
      ["/v1/responses", { input: "Hello", max_output_tokens: 1 }],
      ["/v1/embeddings", { input: "Hello" }],
      ["/tokenize", { content: "Hello" }],
      ["/apply-template", { messages: CHAT.messages }],
    ] as [string, Json][]
  ) {
    const plain = await (await send(server, path, { ...body, user: "me", store: null })).json();
    assertEquals(plain.rys?.warnings, undefined, path);
    const answer = await (await send(server, path, { ...body, temprature: 2 })).json();
    assertEquals(answer.rys.warnings.length, 1, path);
    assertMatch(answer.rys.warnings[0], /does not know "temprature": it was ignored/);
  }
});

shared("a stream tells the warnings at its end", async (server) => {
  const text = await (await send(server, "/v1/chat/completions", {
    ...CHAT,
    stream: true,
    temprature: 2,
  })).text();
  const told = text.split("\n").filter((line) => line.includes('"warnings"'));
  assert(told.length > 0 && told.every((line) => line.includes("temprature")), text);
});

shared("keywords that are not enforced are told with their place", async (server) => {
  const schema = {
    type: "object",
    properties: { n: { type: "number", multipleOf: 2 }, m: { type: "string", format: "email" } },
  };
  const answer = await (await send(server, "/v1/chat/completions", {
    ...CHAT,
    response_format: { type: "json_schema", json_schema: { schema } },
  })).json();
  assertEquals(answer.rys.warnings, [
    '"response_format": "multipleOf" at #/properties/n is not enforced',
    '"response_format": "format" at #/properties/m of "email" is not enforced',
  ]);
});

shared(
  "a maximum below its minimum is refused wherever a schema or a grammar stands",
  async (server) => {
    const bad = {
      type: "object",
      properties: { a: { type: "string", minLength: 3, maxLength: 2 } },
    };
    for (
      const [path, body, param] of [
        ["/completion", { ...PROMPT, json_schema: bad }, "json_schema"],
        ["/v1/chat/completions", {
          ...CHAT,
          response_format: { type: "json_schema", json_schema: { schema: bad } },
        }, "response_format"],
        ["/v1/chat/completions", { ...CHAT, tools: [tool(bad)] }, "tools"],
        ["/v1/messages", {
          ...CHAT,
          tools: [{ name: "look", input_schema: bad }],
          tool_choice: { type: "any" },
        }, "tools"],
      ] as const
    ) {
      const response = await send(server, path, body);
      const { error } = await response.json();
      assertEquals([response.status, error?.param], [400, param], JSON.stringify(error));
      assert(error.message.includes("maxLength of 2 is below minLength of 3"), error.message);
      assert(error.message.includes("#/properties/a"), error.message);
    }
    const response = await send(server, "/completion", { ...PROMPT, grammar: 'root ::= "a"{3,2}' });
    const { error } = await response.json();
    assertEquals([response.status, error.param], [400, "grammar"]);
    assert(
      error.message.includes("line 1, column 13: a repetition's maximum of 2 is below"),
      error.message,
    );
  },
);

shared(
  "a pattern that cannot be honoured is refused in an answer's schema and told in a tool's",
  async (server) => {
    const schema = { type: "object", properties: { a: { type: "string", pattern: "^(?!x)y$" } } };
    const refused = await send(server, "/v1/chat/completions", {
      ...CHAT,
      response_format: { type: "json_schema", schema },
    });
    const { error } = await refused.json();
    assertEquals(refused.status, 400);
    assert(
      error.message.includes("#/properties/a/pattern") && error.message.includes("look-ahead"),
      error.message,
    );
    const told = await send(server, "/v1/chat/completions", { ...CHAT, tools: [tool(schema)] });
    const answer = await told.json();
    assertEquals(told.status, 200, JSON.stringify(answer));
    assert(answer.rys.warnings.some((text: string) => text.includes("look-ahead")));
  },
);

test(
  "of a tool's pattern that cannot be honoured any string is left, and one that can is followed",
  {
    context: TOOLS_SERVER.context!,
  },
  async (server) => {
    for (
      const [pattern, fits, told] of [["^[0-9]{2}$", /^[0-9]{2}$/, 0], ["^(?!x)", /^/, 1]] as const
    ) {
      const parameters = {
        type: "object",
        properties: { a: { type: "string", pattern, maxLength: 5 } },
        required: ["a"],
      };
      const answer = await (await send(server, "/v1/chat/completions", {
        ...CHAT,
        max_tokens: 60,
        temperature: 0,
        tools: [tool(parameters)],
        tool_choice: "required",
      })).json();
      const [call] = answer.choices[0].message.tool_calls;
      assertMatch(JSON.parse(call.function.arguments).a, fits);
      const warnings = (answer.rys.warnings ?? []).filter((text: string) =>
        text.includes('"pattern"') && text.includes("look-ahead")
      );
      assertEquals(warnings.length, told);
    }
  },
);

shared(
  "a grammar that takes too long for a token is the request's fault, and the next is answered",
  async (server) => {
    // Each "a" doubles the ways to go on.
    const grammar = 'root ::= "a" root "b" | "a" root "c" | "a" root "d"';
    const response = await send(server, "/completion", { ...PROMPT, n_predict: 100, grammar });
    const { error } = await response.json();
    assertEquals([response.status, error?.param], [400, "grammar"], JSON.stringify(error));
    assert(error.message.includes("too ambiguous"), error.message);
    assertEquals((await send(server, "/completion", { ...PROMPT, n_predict: 1 })).status, 200);
  },
);

for (
  const [path, body, param] of [
    ["/v1/completions", { ...PROMPT, echo: true }, "echo"],
    ["/v1/chat/completions", { ...CHAT, echo: "yes" }, "echo"],
    ["/v1/completions", { ...PROMPT, suffix: "end" }, "suffix"],
    ["/v1/completions", { ...PROMPT, best_of: 3 }, "best_of"],
    ["/completion", { ...PROMPT, samplers: ["no-such"] }, "samplers"],
    ["/completion", { ...PROMPT, logit_bias: { "99999999": 1 } }, "logit_bias"],
    ["/completion", { ...PROMPT, logit_bias: [["a", "b"]] }, "logit_bias"],
    ["/v1/chat/completions", { ...CHAT, chat_template_kwargs: "x" }, "chat_template_kwargs"],
    ["/v1/chat/completions", { messages: [] }, "messages"],
    ["/v1/messages", { messages: [], max_tokens: 1 }, "messages"],
    ["/v1/embeddings", { input: "x", dimensions: 3 }, "dimensions"],
    ["/v1/chat/completions", { ...CHAT, response_format: { type: "xml" } }, "response_format"],
  ] as const
) {
  shared(`${path} refuses ${JSON.stringify(Object.entries(body).at(-1))}`, async (server) => {
    const response = await send(server, path, body);
    const { error } = await response.json();
    assertEquals([response.status, error?.param], [400, param], JSON.stringify(error));
  });
}

shared("what asks for nothing is taken: echo, suffix, best_of and dimensions", async (server) => {
  const body = { ...PROMPT, max_tokens: 1, echo: false, suffix: null, best_of: 1 };
  assertEquals((await send(server, "/v1/completions", body)).status, 200);
  const { data } = await (await send(server, "/v1/embeddings", { input: "x" })).json();
  const dimensions = data[0].embedding.length;
  assertEquals((await send(server, "/v1/embeddings", { input: "x", dimensions })).status, 200);
});
