// Bodies of context.request() that are wrong: an answer, and the engine lives.

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { EngineError } from "../../src/engine/mod.ts";
import { random, wrongBody } from "../server/_fuzz.ts";
import { SMALL, test } from "./_engine.ts";

test("a body that would end the engine is answered with 400 that names the field", async (model) => {
  await using context = await model.createContext(SMALL);
  const prompt = "Once upon a time";
  for (
    const [path, body, param] of [
      ["/completion", { prompt, n_predict: 1e300 }, "n_predict"],
      ["/completion", { prompt, seed: -1e300 }, "seed"],
      ["/completion", { prompt, repeat_last_n: 2 ** 31 - 1 }, "repeat_last_n"],
      ["/completion", { prompt, samplers: Array(20_000).fill("penalties") }, "samplers"],
      ["/completion", { prompt, grammar_lazy: true, grammar: 'root ::= "a"' }, "grammar_lazy"],
      ["/completion", { prompt, chat_parser: "{" }, "chat_parser"],
      ["/completion", { prompt, stop: [""] }, "stop"],
      ["/completion", { prompt: [1e9] }, "prompt"],
      ["/completion", { prompt: [-1] }, "prompt"],
      ["/detokenize", { tokens: [-5] }, "tokens"],
      ["/v1/chat/completions", { messages: [{ role: 5 }] }, "messages[0].role"],
    ] as [string, Record<string, unknown>, string][]
  ) {
    const heads: number[] = [];
    const { status, body: bytes } = await context.request(path, body, {
      onHead: (code) => heads.push(code),
    });
    const { error } = JSON.parse(new TextDecoder().decode(bytes));
    assertEquals([status, heads, error.code, error.param], [400, [400], 400, param]);
    assert(error.message.includes(`"${param}"`), error.message);
  }
  // What a grammar or a schema costs is measured where it is built, which knows no field.
  for (
    const body of [
      { prompt, grammar: `root ::= ${"(".repeat(5000)}` },
      { prompt, json_schema: { maxLength: 1e9, minLength: 1e9 - 1 } },
    ]
  ) {
    const { status, body: bytes } = await context.request("/completion", { n_predict: 1, ...body });
    assertEquals(status, 400);
    assertMatch(
      new TextDecoder().decode(bytes),
      /nested deeper than 250 parentheses|more than 2000, which is the most that a grammar repeats/,
    );
  }
  // The same fields by way of generate().
  const wrong = context.generate(prompt, { maxTokens: 1, extra: { mirostat: 7 } });
  assertEquals((await assertRejects(() => wrong.text(), EngineError)).status, 400);
  const chat = [{ role: "user", content: "Hello" }];
  const extra = { json_schema: { maxLength: 2, minLength: 3 } };
  await assertRejects(() => context.applyTemplate(chat, { extra }), EngineError, "minLength");
  assert((await context.generate(prompt, { maxTokens: 2 }).text()).length > 0);
});

test("bodies that are wrong in many ways are answers", async (model) => {
  await using context = await model.createContext({ ...SMALL, nCtx: 256, nParallel: 2 });
  const next = random(7);
  for (let i = 0; i < 200; i++) {
    const { path, body } = wrongBody(next);
    body.n_predict = 2;
    body.max_tokens = 2;
    body.max_output_tokens = 2;
    const shown = `${path} ${JSON.stringify(body).slice(0, 1000)}`;
    const { status, body: bytes } = await context.request(path, body, {
      signal: AbortSignal.timeout(300_000),
    }).catch((error) => {
      throw new Error(`${error.message}: ${shown}`, { cause: error });
    });
    assert([200, 400, 404, 500, 501].includes(status), `${status}: ${shown}`);
    assert(!/json\.exception|GGML_/.test(new TextDecoder().decode(bytes)), shown);
  }
  assert((await context.generate("Once upon a time", { maxTokens: 2 }).text()).length > 0);
});
