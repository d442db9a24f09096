import { assert, assertEquals } from "@std/assert";
import { loadModel, type Model } from "@rys/edge";
import type { GpuCounts } from "../../gpu/executor.ts";
import { DEMO, SMALL, STORY } from "../engine/_engine.ts";
import { inFolder, recording, test, writeLayers } from "./_recording.ts";

type Counts = GpuCounts & { recorded: number };

/** What `n` single tokens in a steady state cost. */
async function steady(model: Model, n: number): Promise<Counts> {
  await using context = await model.createContext(SMALL);
  const run = (maxTokens: number) =>
    context.generate(STORY, { maxTokens, temperature: 0, ignoreEos: true, cachePrompt: false })
      .completion();
  // Each length of the sequence was seen once; then two runs that differ by n tokens.
  await run(n + 8);
  const counts: Counts[] = [(await model.gpuCounts())!];
  for (const maxTokens of [8, n + 8]) {
    await run(maxTokens);
    counts.push((await model.gpuCounts())!);
  }
  const [a, b, c] = counts as [Counts, Counts, Counts];
  return Object.fromEntries(
    (Object.keys(a) as (keyof Counts)[]).map((key) => [key, (c[key] - b[key]) - (b[key] - a[key])]),
  ) as unknown as Counts;
}

test("a steady decode crosses once per submit and creates no bind group", () =>
  inFolder(async (folder) => {
    const n = 16;
    for (const nLayer of [4, 28]) {
      const path = `${folder}/${nLayer}.gguf`;
      writeLayers(path, nLayer);
      const gpu = recording();
      await using model = await loadModel(path, gpu.load);
      const cost = await steady(model, n);
      assert(cost.dispatches >= 10 * nLayer * n, `${cost.dispatches} dispatches`);
      assertEquals(cost.dispatches % n, 0);
      assert(cost.crossings - cost.submits <= 2 * n, JSON.stringify(cost));
      assertEquals(cost.recorded, cost.crossings);
      assertEquals([cost.bindGroups, cost.liveBindGroups], [0, 0], `${nLayer} layers`);
      assertEquals([cost.pipelines, cost.shaderModules], [0, 0]);
      assertEquals([cost.buffers, cost.bufferBytes], [0, 0]);
      assertEquals(cost.reads, n);
      // The parameters of a submit are one write; a handful more are the token's inputs.
      assert(cost.writes <= cost.submits + 8 * n, `${cost.writes} writes`);
      assertEquals((await gpu.report()).errors, []);
    }
  }));

test("a fresh context makes its bind groups with the first tokens, and none after them", async () => {
  const gpu = recording();
  await using model = await loadModel(DEMO, gpu.load);
  for (const repeatLayers of ["none", "20,30"]) {
    await using context = await model.createContext({ ...SMALL, repeatLayers });
    let early: Counts | null = null;
    let seen = 0;
    for await (
      const piece of context.generate(STORY, { maxTokens: 100, temperature: 0, ignoreEos: true })
    ) {
      seen += piece.tokens.length;
      if (seen >= 8) early ??= (await model.gpuCounts())!;
    }
    const late = (await model.gpuCounts())!;
    assert(early && late.dispatches > early.dispatches + 20_000, `${seen} tokens`);
    assertEquals(late.bindGroups - early.bindGroups, 0);
  }
});

test("a plan costs dispatches for its layers and nothing else", async () => {
  const gpu = recording();
  await using model = await loadModel(DEMO, gpu.load);
  const { bytes } = model.info.gpu!;
  const before = (await model.gpuCounts())!;
  const perToken = async (repeatLayers: string) => {
    await using context = await model.createContext({ ...SMALL, repeatLayers });
    const run = () =>
      context.generate(STORY, { maxTokens: 9, ignoreEos: true, cachePrompt: false }).completion();
    await run();
    const a = (await model.gpuCounts())!;
    await run();
    const b = (await model.gpuCounts())!;
    return { dispatches: b.dispatches - a.dispatches, bindGroups: b.bindGroups - a.bindGroups };
  };
  const none = await perToken("none");
  const plan = await perToken("20,30");
  assertEquals([none.bindGroups, plan.bindGroups], [0, 0]);
  const perLayer = (plan.dispatches - none.dispatches) / 10;
  assert(perLayer > 0 && 40 * perLayer <= none.dispatches, JSON.stringify([none, plan]));
  // No byte of a weight more: the buffers that the contexts had are gone.
  assertEquals(model.info.gpu!.bytes, bytes);
  const after = (await model.gpuCounts())!;
  assert(after.bufferBytes - before.bufferBytes < 2 ** 20, JSON.stringify([before, after]));
  assertEquals((await gpu.report()).errors, []);
});

test("the immediate form makes the same dispatches, one crossing each call", async () => {
  const counts: Counts[] = [];
  for (const immediate of [false, true]) {
    const gpu = recording({}, { immediate });
    await using model = await loadModel(DEMO, gpu.load);
    counts.push(await steady(model, 4));
    assertEquals((await gpu.report()).errors, []);
  }
  const [recorded, immediate] = counts as [Counts, Counts];
  assertEquals(immediate.dispatches, recorded.dispatches);
  assertEquals(immediate.submits, recorded.submits);
  assertEquals(immediate.bindGroups, immediate.dispatches);
  assert(immediate.crossings > 2 * immediate.dispatches);
});
