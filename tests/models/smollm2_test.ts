import { assert, assertEquals, assertNotEquals, assertRejects } from "@std/assert";
import { type Context, type ContextOptions, EngineError } from "@rys/edge";
import { CAPITAL, FILLER, KIND_PLANS, load, PARIS } from "./_models.ts";

const model = await load("smollm2");
Deno.test.afterAll(() => model.dispose());
const N_LAYER = 30;

const context = (repeatLayers: string, options: ContextOptions = {}): Promise<Context> =>
  model.createContext({ repeatLayers, nCtx: 256, nParallel: 1, ...options });

const ask = (c: Context) => c.generate(CAPITAL, { temperature: 0, maxTokens: 24 }).text();

Deno.test("SmolLM2 says what it is", () => {
  const { arch, nLayer, nParams, hasChatTemplate } = model.info;
  assertEquals({ arch, nLayer, nParams, hasChatTemplate }, {
    arch: "llama",
    nLayer: N_LAYER,
    nParams: 134515008,
    hasChatTemplate: true,
  });
});

Deno.test("SmolLM2 knows the capital of France", async () => {
  await using c = await context("none");
  const answer = await c.generate(CAPITAL, { temperature: 0, maxTokens: 24 }).completion();
  assertEquals(answer.text, PARIS);
  assertEquals(answer.finishReason, "stop");
});

for (const plan of KIND_PLANS) {
  Deno.test(`SmolLM2 knows the capital of France with ${plan} run twice`, async () => {
    await using c = await context(plan);
    assertEquals(await ask(c), PARIS);
  });
}

Deno.test("a plan's graph and cache have its layers, the weights are the model's", async () => {
  await using none = await context("none");
  for (const [plan, extra] of [["12,14", 2], ["10,20x3", 30], ["10,12;20,22", 4]] as const) {
    await using c = await context(plan);
    const { nLayer, nLayerEff, layers } = c.info.plan;
    assertEquals({ nLayer, nLayerEff }, { nLayer: N_LAYER, nLayerEff: N_LAYER + extra });
    assertEquals(layers.length, nLayerEff);
    assertEquals(c.info.kvBytes * nLayer, none.info.kvBytes * nLayerEff);
    assertEquals(c.info.modelBytes, none.info.modelBytes);
  }
});

Deno.test("the identity plan has the logits of no plan, bit for bit; another plan has not", async () => {
  const prompt = await model.tokenize("The capital of France is");
  const run = async (repeatLayers: string) => {
    const { data, nVocab } = await model.logits(prompt, { repeatLayers });
    assertEquals(data.length, prompt.length * nVocab);
    return new Uint8Array(data.buffer);
  };
  const none = await run("none");
  assert(none.some((byte) => byte !== 0));
  assertEquals(await run(`layers:0..${N_LAYER - 1}`), none);
  assertNotEquals(await run("12,14"), none);
});

const NUMBER = "7421";
const recallPrompt = [{
  role: "user",
  content: `${FILLER.repeat(2)}Remember this: the secret number is ${NUMBER}. ${FILLER.repeat(7)}` +
    "\n\nWhat is the secret number?",
}];

for (const plan of ["none", "12,14"]) {
  Deno.test(`SmolLM2 recalls a number over 400 tokens back, plan ${plan}`, async () => {
    await using c = await context(plan, { nCtx: 768 });
    const answer = await c.generate(recallPrompt, { temperature: 0, maxTokens: 12 }).completion();
    assert(answer.nPrompt >= 490 && answer.nPrompt <= 540, `${answer.nPrompt} tokens`);
    assert(answer.text.includes(NUMBER), answer.text);
  });
}

Deno.test("a quantised cache answers as well, and is smaller", async () => {
  await using f16 = await context("12,14");
  await using q8 = await context("12,14", { cacheTypeK: "q8_0", cacheTypeV: "q8_0" });
  assertEquals(await ask(q8), PARIS);
  assertEquals(q8.info.kvBytes / f16.info.kvBytes, 34 / 64); // bytes of a block of 32
});

Deno.test("contexts with different plans answer at once as they do alone", async () => {
  await using a = await context("none");
  await using b = await context("12,14");
  await using odd = await context("2,4x3");
  const alone = [await ask(a), await ask(b), await ask(odd)];
  assertEquals(await Promise.all([a, b, odd].map(ask)), alone);
  assertEquals(alone.slice(0, 2), [PARIS, PARIS]);
  assertNotEquals(alone[2], PARIS); // this plan does harm, so the contexts are not the same one
});

Deno.test("a state goes on in another context of the same plan, and in no other", async () => {
  const prompt = "The three largest cities of France are";
  const options = { temperature: 0, maxTokens: 8 };
  await using first = await context("12,14");
  const begun = await first.generate(prompt, options).text();
  const whole = await first.generate(prompt + begun, options).completion();

  await using again = await context("12,14");
  await again.generate(prompt, options).text();
  const state = await again.saveState();

  await using second = await context("12,14");
  await second.loadState(state);
  const resumed = await second.generate(prompt + begun, options).completion();
  assertEquals(resumed.text, whole.text);
  const { cachedTokens, promptTokens } = resumed.timings;
  assert(cachedTokens >= 8 && cachedTokens + promptTokens === resumed.nPrompt, `${cachedTokens}`);

  await using other = await context("13,15");
  const error = await assertRejects(() => other.loadState(state), EngineError);
  assert(!error.fatal, error.message);
  assertEquals(await ask(other), PARIS); // and lives on
});
