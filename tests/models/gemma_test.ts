import { assert, assertEquals, assertNotEquals } from "@std/assert";
import type { Context, ContextOptions } from "@rys/edge";
import { FILLER, load } from "./_models.ts";

const model = await load("gemma");
Deno.test.afterAll(() => model.dispose());

/** Layers 5, 11 and 17 see everything, the others 512 tokens back. */
const PERIOD = 6;
/** Two layers more: every later layer stands at a place that a merged file would take for another kind. */
const PLAN = "14,16";

const WORD = "marble";
const prompt = `The password of the blue door is ${WORD}. ${FILLER.repeat(11)}` +
  "Remember that the password of the blue door is";

/** Micro-batches of 128 tokens: the sliding window's cache is then smaller than the context. */
const context = (repeatLayers: string, options: ContextOptions = {}): Promise<Context> =>
  model.createContext({ repeatLayers, nCtx: 1024, nUbatch: 128, nParallel: 1, ...options });

const greedy = (c: Context) => c.generate(prompt, { temperature: 0, maxTokens: 8 }).completion();

for (const plan of ["none", PLAN]) {
  Deno.test(`gemma with its sliding window writes as with a full cache, plan ${plan}`, async () => {
    await using small = await context(plan);
    await using full = await context(plan, { swaFull: true });
    assert(small.info.kvBytes < full.info.kvBytes, `${small.info.kvBytes} bytes`);
    const a = await greedy(small);
    assert(a.nPrompt > 512 + 8, `${a.nPrompt} tokens`);
    assertEquals(a.timings.cachedTokens, 0);
    // Layers with a window cannot see the word any more; those without one can.
    assert(a.text.includes(WORD), a.text);
    const b = await greedy(full);
    assertEquals(a.tokens, b.tokens);
  });
}

Deno.test("a plan that is not a multiple of the window's period keeps each layer's own window", async () => {
  await using c = await context(PLAN);
  const { layers, nLayer, nLayerEff } = c.info.plan;
  assertEquals({ nLayer, nLayerEff }, { nLayer: 18, nLayerEff: 20 });
  assertNotEquals((nLayerEff - nLayer) % PERIOD, 0);
  assertEquals(layers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 14, 15, 16, 17]);
  // The cache tells which layers have a window: 2 more with one, none more without.
  await using none = await context("none");
  await using global = await context("11,12");
  const windowed = (c.info.kvBytes - none.info.kvBytes) / 2;
  const unlimited = global.info.kvBytes - none.info.kvBytes;
  assertEquals(15 * windowed + 3 * unlimited, none.info.kvBytes);
  assert(windowed < unlimited, `${windowed} and ${unlimited} bytes a layer`);
});
