import { assert, assertEquals, assertRejects } from "@std/assert";
import { EngineError, loadModel } from "@rys/edge";
import { DEMO, greedy, SMALL, STORY } from "../engine/_engine.ts";
import { recording, test } from "./_recording.ts";

/** Options of a generation that goes on until it is stopped. */
const LONG = { maxTokens: 400, temperature: 0, ignoreEos: true } as const;

const UNUSABLE: [Parameters<typeof recording>[0], string][] = [
  [{ noAdapter: 1 }, "no WebGPU adapter"],
  [{ f16: 0 }, "lacks the feature shader-f16"],
  [
    { maxStorageBufferBindingSize: 2 ** 26 },
    "maxStorageBufferBindingSize 67108864, needed: 134217728",
  ],
  [
    { maxComputeInvocationsPerWorkgroup: 128 },
    "maxComputeInvocationsPerWorkgroup 128, needed: 256",
  ],
  [{ refuseDevice: 1 }, "gives no device: the test refuses it"],
];

test("a required GPU that cannot be used is an error of one line that says why", async () => {
  for (const [options, why] of UNUSABLE) {
    const gpu = recording(options);
    const error = await assertRejects(() => loadModel(DEMO, gpu.load), EngineError);
    assert(error.message.includes("a GPU is required: "), error.message);
    assert(error.message.includes(why), error.message);
    assert(!error.message.includes("\n"), error.message);
  }
});

test("a GPU that cannot be used leaves the work to the CPU, which says why", async () => {
  for (const [options, why] of UNUSABLE) {
    const gpu = recording(options);
    await using model = await loadModel(DEMO, { ...gpu.load, gpu: "auto" });
    assertEquals(model.info.gpu, null);
    assert(model.info.gpuWhy.includes(why), model.info.gpuWhy);
    assert(!model.info.gpuWhy.includes("\n"), model.info.gpuWhy);
    assertEquals(await model.gpuCounts(), null);
  }
});

test("subgroups that are not granted are done without", async () => {
  const gpu = recording({ subgroups: 0 });
  await using model = await loadModel(DEMO, gpu.load);
  assertEquals(model.info.gpu!.features, ["shader-f16"]);
  await using context = await model.createContext(SMALL);
  const { timings } = await context.generate(STORY, { ...LONG, maxTokens: 3 }).completion();
  assertEquals(timings.predictedTokens, 3);
  assertEquals((await gpu.report()).errors, []);
});

test("no room on the GPU for the weights is an error of the load", async () => {
  const gpu = recording({ outOfMemoryAt: 2_000_000 });
  const error = await assertRejects(() => loadModel(DEMO, gpu.load), EngineError);
  assert(error.message.includes("the GPU has no room for a buffer of "), error.message);
  // And the process goes on.
  const other = recording();
  await using model = await loadModel(DEMO, other.load);
  assertEquals(model.info.gpu!.layers, 41);
});

test("no room on the GPU for a context is an error of that context alone", async () => {
  const gpu = recording({ memory: 10_000_000 });
  await using model = await loadModel(DEMO, gpu.load);
  await using small = await model.createContext(SMALL);
  const running = small.generate(STORY, { ...LONG, maxTokens: 100 }).completion();
  const error = await assertRejects(
    () => model.createContext({ nCtx: 2048, nParallel: 1 }),
    EngineError,
  );
  assertEquals(error.fatal, false, error.message);
  assert(error.message.includes("the GPU has no room for a buffer of "), error.message);
  assertEquals((await running).timings.predictedTokens, 100);
  // What did not fit is gone again, so that what fits still does.
  const { bufferBytes } = (await model.gpuCounts())!;
  const again = await assertRejects(() => model.createContext({ nCtx: 2048, nParallel: 1 }));
  assertEquals((again as Error).message, error.message);
  assertEquals((await model.gpuCounts())!.bufferBytes, bufferBytes);
});

test("a device lost in the middle of a generation is an error of every request, and not the end", async () => {
  const gpu = recording({ loseAfterSubmits: 500 });
  const model = await loadModel(DEMO, gpu.load);
  const one = await model.createContext(SMALL);
  const other = await model.createContext({ ...SMALL, repeatLayers: "20,24" });
  const results = await Promise.allSettled([
    one.generate(STORY, LONG).completion(),
    other.generate(STORY, LONG).completion(),
  ]);
  for (const result of results) {
    assert(result.status === "rejected");
    const { reason } = result;
    assert(reason instanceof EngineError && reason.fatal, String(reason));
    assert(reason.message.includes("GPU device was lost: the test takes it away"), reason.message);
  }
  assert(model.disposed);
  const later = await assertRejects(() => one.generate(STORY, LONG).completion(), EngineError);
  assert(later.message.includes("the test takes it away"), later.message);
  await model.dispose();
  await using next = await loadModel(DEMO, { gpu: "off" });
  await using context = await next.createContext(SMALL);
  assert((await greedy(context, STORY, 2)).length > 0);
});

test("a shader that the device refuses is an error that names it", async () => {
  const gpu = recording({ refusePipeline: "flash_attn" });
  await using model = await loadModel(DEMO, gpu.load);
  const error = await assertRejects(async () => {
    await using context = await model.createContext(SMALL);
    await context.generate(STORY, LONG).completion();
  }, EngineError);
  assert(error.message.includes('the GPU shader "'), error.message);
  assert(error.message.includes("flash_attn"), error.message);
  assert(error.message.includes("the test refuses it"), error.message);
});

test("a read-back that is not there at once is awaited", async () => {
  const gpu = recording({ map: "standard" });
  await using model = await loadModel(DEMO, gpu.load);
  assertEquals(model.info.gpu!.readback, "awaited");
  await using context = await model.createContext(SMALL);
  const { timings } = await context.generate(STORY, { ...LONG, maxTokens: 5 }).completion();
  assertEquals(timings.predictedTokens, 5);
});
