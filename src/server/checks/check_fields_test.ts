import { assert, assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../http/api_error.ts";
import { checkFields } from "./check_fields.ts";

const FACTS = { nVocab: 100, nEmbd: 8 };
const SCHEMA = { type: "integer" };

for (
  const [path, body, after] of [
    ["/v1/completions", { echo: false, suffix: "", best_of: 1 }, {}],
    ["/v1/completions", { n: 2, best_of: 2 }, { n: 2 }],
    ["/v1/chat/completions", { echo: true }, undefined],
    ["/completion", { samplers: ["top-k", "TEMP"] }, undefined],
    ["/completion", { samplers: "kyt" }, undefined],
    ["/completion", { logit_bias: { "7": -1, " the": 2 } }, undefined],
    ["/completion", { logit_bias: [[7, false], ["x", 1]] }, undefined],
    ["/v1/embeddings", { dimensions: 8 }, {}],
    ["/v1/chat/completions", { response_format: { type: "text" } }, undefined],
    [
      "/v1/chat/completions",
      { response_format: { type: "json_schema", schema: SCHEMA, strict: true } },
      { response_format: { type: "json_schema", json_schema: { strict: true, schema: SCHEMA } } },
    ],
    [
      "/v1/completions",
      { response_format: { type: "json_schema", json_schema: { schema: SCHEMA } } },
      { json_schema: SCHEMA },
    ],
    ["/completion", { response_format: { type: "json_object" } }, {
      json_schema: { type: "object" },
    }],
  ] as const
) {
  Deno.test(`checkFields() takes ${JSON.stringify(body)} on ${path}`, () => {
    const given = structuredClone(body);
    assertEquals(checkFields(path, given, FACTS), after ?? body);
    assertEquals(given, body); // which stays as it is
  });
}

for (
  const [path, body, param, part] of [
    ["/v1/completions", { echo: true }, "echo", "not offered"],
    ["/v1/chat/completions", { echo: "yes" }, "echo", "true or false"],
    ["/v1/completions", { suffix: "x" }, "suffix", "/infill"],
    ["/v1/completions", { best_of: 3 }, "best_of", "not 3"],
    ["/completion", { samplers: ["no-such"] }, "samplers", "top_k, top_p"],
    ["/completion", { samplers: "kz" }, "samplers", '"z"'],
    ["/completion", { samplers: 7 }, "samplers", "list"],
    ["/completion", { logit_bias: { "100": 1 } }, "logit_bias", "0..99"],
    ["/completion", { logit_bias: [[-1, 1]] }, "logit_bias", "0..99"],
    ["/completion", { logit_bias: [[1, "x"]] }, "logit_bias", "number or false"],
    ["/completion", { logit_bias: [7] }, "logit_bias", "pair"],
    ["/completion", { logit_bias: "x" }, "logit_bias", "object"],
    ["/v1/chat/completions", { chat_template_kwargs: "x" }, "chat_template_kwargs", "object"],
    ["/v1/messages", { messages: [] }, "messages", "nothing in it"],
    ["/v1/embeddings", { dimensions: 4 }, "dimensions", "must be 8"],
    ["/completion", { grammar: "x", json_schema: {} }, "grammar", "exclude"],
    ["/v1/chat/completions", { response_format: "json" }, "response_format", "object"],
    ["/v1/chat/completions", { response_format: { type: "xml" } }, "response_format", '"xml"'],
    ["/completion", { response_format: { type: "json_object" }, grammar: "x" }, "response_format"],
  ] as const
) {
  Deno.test(`checkFields() refuses ${JSON.stringify(body)} on ${path}`, () => {
    const error = assertThrows(() => checkFields(path, structuredClone(body), FACTS), ApiError);
    assertEquals([error.status, error.more.fields?.param], [400, param]);
    assert(error.message.includes(part ?? ""), error.message);
  });
}
