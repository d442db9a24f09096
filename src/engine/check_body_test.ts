import { assert, assertEquals, assertThrows } from "@std/assert";
import { checkBody, checkTexts } from "./check_body.ts";
import { EngineError } from "./client.ts";

const FACTS = { nVocab: 100, nParallel: 2 };

Deno.test("checkBody() takes what is sound", () => {
  for (
    const body of [
      {},
      { prompt: "x", n_predict: -1, seed: 2 ** 32 - 1, id_slot: 1, temperature: 0.7, stop: ["a"] },
      { prompt: [1, "a", 99], logit_bias: [[5, -100], ["x", false]], logprobs: true },
      { prompt: [[1, 2], "x", { prompt_string: "y" }], lora: [{ id: 0, scale: 0.5 }] },
      { messages: [{ role: "user", content: [{ type: "text", text: "x" }] }], n: null },
      { grammar: 'root ::= "a"{2,5}', thinking: { type: "enabled", budget_tokens: 1000 } },
      { json_schema: { type: "array", maxItems: 100, items: { type: "string", maxLength: 900 } } },
    ]
  ) {
    checkBody(body, FACTS);
  }
});

Deno.test("checkBody() names the field that is wrong, and what it may be", () => {
  for (
    const [body, message] of [
      [
        { n_predict: 1e300 },
        '"n_predict" must be a whole number in -2147483647..2147483647, not 1e+300',
      ],
      [{ top_k: 0.5 }, '"top_k" must be a whole number'],
      [{ seed: 2 ** 32 }, '"seed"'],
      [{ id_slot: 2 }, '"id_slot" must be a whole number in -1..1, not 2'],
      [{ n_probs: "3" }, '"n_probs"'],
      [{ thinking: { budget_tokens: 1e18 } }, '"thinking.budget_tokens"'],
      [{ temperature: 1e300 }, '"temperature" must be a number'],
      [{ prompt: [100] }, '"prompt" has token 100; tokens are whole numbers in 0..99'],
      [{ prompt: [[0.5]] }, '"prompt" has token 0.5'],
      [{ tokens: [-1] }, '"tokens" has token -1'],
      [{ prompt: [[[[[1]]]]] }, '"prompt" is nested too deep'],
      [{ prompt: Array(3000).fill("x") }, '"prompt" has 3000 parts'],
      [{ logit_bias: [[1e300, 1]] }, '"logit_bias"'],
      [{ logit_bias: Array(100_000).fill([1, 1]) }, '"logit_bias"'],
      [{ samplers: Array(20_000).fill("penalties") }, '"samplers"'],
      [{ samplers: "k".repeat(33) }, '"samplers"'],
      [{ samplers: ["top_k", "temperature", "top_k"] }, '"samplers" names a sampler twice'],
      [{ repeat_last_n: 1_000_000 }, '"repeat_last_n"'],
      [{ logit_bias: Array(2000).fill(["a", 1]) }, '"logit_bias" has 2000 texts'],
      [{ dry_sequence_breakers: Array(65).fill("a") }, '"dry_sequence_breakers"'],
      [{ dry_sequence_breakers: ["a".repeat(257)] }, '"dry_sequence_breakers"'],
      [{ response_fields: Array(100_000).fill("stop") }, '"response_fields"'],
      [{ lora: [{ path: "/x" }] }, '"lora" has no field "path"'],
      [{ stop: [5] }, '"stop" must be a string or a list of strings'],
      [{ stop: ["a", ""] }, '"stop" has an empty string'],
      [{ stop: "" }, '"stop" has an empty string'],
      [{ stop_sequences: [""] }, '"stop_sequences" has an empty string'],
      [{ chat_parser: "x" }, '"chat_parser" is not a field of requests'],
      [{ messages: [{ content: [{ type: "image_url" }] }] }, "image input is not offered"],
      [{ input: [{ content: [{ type: "input_file" }] }] }, "file input is not offered"],
    ] as [Record<string, unknown>, string][]
  ) {
    const error = assertThrows(() => checkBody(body, FACTS), EngineError);
    assertEquals(error.status, 400);
    assert(error.message.includes(message), error.message);
  }
});

Deno.test("checkTexts() wants text or tokens", () => {
  for (const input of ["x", ["x", "y"], [1, 2], [[1], [2]], [{ prompt_string: "x" }]]) {
    checkTexts({ input }, FACTS);
  }
  for (const input of [5.5, {}, [{}], [null], [true], [[100]]]) {
    assertThrows(() => checkTexts({ input }, FACTS), EngineError);
  }
});
