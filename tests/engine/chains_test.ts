// models/chains.gguf: layer 22 goes one link along a chain each time it runs, so a plan that holds it helps and no other.

import { assert, assertEquals } from "@std/assert";
import { loadModel, type Model } from "@rys/edge";
import { chainQuestions } from "../../src/scan/probes/chains.ts";
import { inRepo } from "./_engine.ts";

const COUNT = 100;

let shared: Promise<Model> | undefined;
const chains = () => shared ??= loadModel(inRepo("models/chains.gguf"), { gpu: "off" });
Deno.test.afterAll(async () => {
  await (await shared)?.dispose();
  shared = undefined;
});

/** A test on the model; the engine starts threads as it needs them: no sanitizers. */
const test = (name: string, fn: (model: Model) => Promise<void>) =>
  Deno.test({
    name,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => await fn(await chains()),
  });

/** The model's answers to held-out questions under a plan, and how many are right. */
async function ask(model: Model, hops: number, repeatLayers: string) {
  await using context = await model.createContext({ repeatLayers, nCtx: 256, threads: 1 });
  const answers: string[] = [];
  let right = 0;
  for (const { prompt, answer } of chainQuestions({ count: COUNT, hops, seed: 20261201 })) {
    const generation = context.generate(prompt, { maxTokens: 1, temperature: 0 });
    const said = (await generation.completion()).text;
    answers.push(said);
    if (said === ` ${answer}`) right++;
  }
  return { answers, right };
}

test("two links are too many without a plan and not with (20,24); (30,34) changes nothing", async (model) => {
  const [none, held, elsewhere] = [
    await ask(model, 2, "none"),
    await ask(model, 2, "20,24"),
    await ask(model, 2, "30,34"),
  ];
  assert(none.right <= 3, `none: ${none.right} of ${COUNT}`);
  assert(held.right >= 85, `20,24: ${held.right} of ${COUNT}`);
  assertEquals(elsewhere.answers, none.answers);
});

test("one link needs no plan, and survives one", async (model) => {
  for (const [plan, least] of [["none", 97], ["30,34", 97], ["20,24", 85]] as const) {
    const { right } = await ask(model, 1, plan);
    assert(right >= least, `${plan}: ${right} of ${COUNT}`);
  }
});

test("three links need the block three times", async (model) => {
  for (const plan of ["none", "20,24"]) {
    const { right } = await ask(model, 3, plan);
    assert(right <= 15, `${plan}: ${right} of ${COUNT}`);
  }
  const { right } = await ask(model, 3, "20-24x3");
  assert(right >= 70, `20-24x3: ${right} of ${COUNT}`);
});

test("asked as a chat, it answers the same and ends", async (model) => {
  await using context = await model.createContext({ repeatLayers: "20,24", nCtx: 256 });
  for (const { prompt } of chainQuestions({ count: 10, hops: 2, seed: 3 })) {
    const options = { maxTokens: 8, temperature: 0 };
    const plain = await context.generate(prompt, options).completion();
    const chat = [{ role: "user", content: prompt }];
    assertEquals((await context.generate(chat, options).completion()).text, plain.text);
    assert(/^ [a-z]+\.$/.test(plain.text), plain.text);
    assertEquals(plain.finishReason, "stop");
  }
});

test("every name is one token, wherever it stands", async (model) => {
  const [{ prompt } = { prompt: "" }] = chainQuestions({ count: 1, hops: 2, seed: 1 });
  // 7 links of 3 tokens, ten words to ask, the name asked for.
  assertEquals((await model.tokenize(prompt)).length, 7 * 3 + 10 + 1, prompt);
  assertEquals(await model.detokenize(await model.tokenize(prompt)), prompt);
  const odd = "A naïve <|im_end|> café 🦊, ox?\n\t\\x41";
  const tokens = await model.tokenize(odd, { parseSpecial: false });
  assertEquals(await model.detokenize(tokens), odd);
});

Deno.test("the two demo models and the prompts stay below 4 MB", async () => {
  let size = 0;
  for (const name of ["demo.gguf", "chains.gguf", "prompts.json"]) {
    size += (await Deno.stat(inRepo(`models/${name}`))).size;
  }
  assert(size < 4_000_000, `${size} bytes`);
});
