import { assert, assertEquals } from "@std/assert";
import { type ContextOptions, loadModel, type Model } from "@rys/edge";
import { DEMO, greedy, STORY } from "../engine/_engine.ts";
import { gpuTest, loadOnGpu, nmse, NO_GPU } from "./_gpu.ts";

let cpu: Model;
let gpu: Model;
Deno.test.beforeAll(async () => {
  if (NO_GPU) return;
  cpu = await loadModel(DEMO, { gpu: "off" });
  gpu = await loadOnGpu(DEMO);
});
Deno.test.afterAll(async () => {
  await cpu?.dispose();
  await gpu?.dispose();
});

const PLANS = ["none", "26,34", "20,24", "33-34x3"];
const small: ContextOptions = { nCtx: 256, nParallel: 1 };

async function both(
  options: ContextOptions,
  prompt: string,
  n: number,
): Promise<[gpu: string, cpu: string]> {
  await using a = await gpu.createContext({ ...small, ...options });
  await using b = await cpu.createContext({ ...small, ...options });
  return [await greedy(a, prompt, n), await greedy(b, prompt, n)];
}

gpuTest("all of the model's weights are on the GPU, once", async () => {
  const { gpu: on, modelBytes } = gpu.info;
  assert(on);
  assertEquals([on.layers, on.cpuBytes, on.cpuTensors], [41, 0, []]);
  assert(on.bytes >= modelBytes && on.bytes < modelBytes * 1.05, `${on.bytes} of ${modelBytes}`);
  const off = cpu.info;
  assertEquals([off.gpu, off.gpuWhy], [null, "switched off"]);
  assert(await gpu.gpuCounts());
  assertEquals(await cpu.gpuCounts(), null);
});

for (const repeatLayers of PLANS.slice(0, 2)) {
  gpuTest(`the GPU writes what the CPU writes, plan ${repeatLayers}`, async () => {
    const [a, b] = await both({ repeatLayers }, STORY, 16);
    assertEquals(a, b);
  });
}

for (const repeatLayers of PLANS) {
  gpuTest(`logits are those of the CPU, plan ${repeatLayers}`, async () => {
    const prompt =
      "The code of the fox is 48. The code of the hen is 15. What is the code of the fox?";
    const a = await gpu.logits(prompt, { repeatLayers });
    const b = await cpu.logits(prompt, { repeatLayers });
    const error = nmse(a.data, b.data);
    assert(error < 1e-4, `NMSE ${error}`);
    assert(error > 0, "the same bits: the GPU did not compute");
  });
}

for (
  const [name, options] of Object.entries<ContextOptions>({
    "flash attention on": { flashAttention: "on" },
    "flash attention off": { flashAttention: "off" },
    "a q8_0 cache": { cacheTypeK: "q8_0", cacheTypeV: "q8_0" },
    "a q4_0 K cache": { cacheTypeK: "q4_0", flashAttention: "on" },
    "a q5_1 K cache, which stays in memory": { cacheTypeK: "q5_1", flashAttention: "on" },
    "a bf16 cache, which stays in memory": { cacheTypeK: "bf16", cacheTypeV: "bf16" },
    "an f32 cache": { cacheTypeK: "f32", cacheTypeV: "f32" },
    "micro-batches of 8": { nUbatch: 8, nBatch: 16 },
  })
) {
  gpuTest(`the GPU writes what the CPU writes with ${name}`, async () => {
    const prompt = "Tom had a red box. He put a stone in the box. Then Tom went";
    const [a, b] = await both({ ...options, repeatLayers: "26,34" }, prompt, 8);
    assertEquals(a, b);
  });
}

gpuTest("a plan takes no weight memory on the GPU", async () => {
  const bytes = async () => (await gpu.gpuCounts())!.bufferBytes;
  const start = await bytes();
  const grown: number[] = [];
  const kv: number[] = [];
  for (const repeatLayers of ["none", "20,30"]) {
    await using context = await gpu.createContext({ ...small, repeatLayers });
    await greedy(context, STORY, 2);
    grown.push(await bytes() - start);
    kv.push(context.info.kvBytes);
  }
  assertEquals(kv[1], kv[0]! * 50 / 40);
  // Scratch and parameters are the same; weights of ten layers would be 0.8 MB.
  const beside = grown[1]! - grown[0]! - (kv[1]! - kv[0]!);
  assert(Math.abs(beside) < 100_000, `${beside} bytes beside the cache`);
  assertEquals(await bytes(), start);
});

gpuTest("contexts with different plans run side by side as alone", async () => {
  const alone: string[] = [];
  for (const repeatLayers of PLANS.slice(0, 3)) {
    await using context = await gpu.createContext({ ...small, repeatLayers });
    alone.push(await greedy(context, STORY, 6));
  }
  const contexts = await Promise.all(
    PLANS.slice(0, 3).map((repeatLayers) => gpu.createContext({ ...small, repeatLayers })),
  );
  const together = await Promise.all(contexts.map((context) => greedy(context, STORY, 6)));
  await Promise.all(contexts.map((context) => context.dispose()));
  assertEquals(together, alone);
});

gpuTest("more contexts at once than the bind groups kept live through it", async () => {
  await using model = await loadOnGpu(DEMO);
  const contexts = await Promise.all(
    Array.from(
      { length: 6 },
      (_, i) => model.createContext({ ...small, repeatLayers: i % 2 ? `${i},${i + 20}` : "none" }),
    ),
  );
  for (let round = 0; round < 2; round++) {
    const texts = await Promise.all(contexts.map((context) => greedy(context, STORY, 3)));
    assertEquals(texts[0], texts[2]);
    assertEquals(texts[2], texts[4]);
  }
});

for (const readback of ["sync", "awaited"] as const) {
  gpuTest(
    `prompts side by side wait for the device one by one, read-back ${readback}`,
    async () => {
      // Many submits without a read between them: each of the threads comes to wait for what is in flight.
      await using model = await loadOnGpu(DEMO, { gpuBridge: { readback } });
      const prompts = ["The code of the fox is 48. ", "The code of the hen is 15. "];
      const options: ContextOptions = { ...small, nUbatch: 4, nBatch: 8 };
      const contexts = await Promise.all(
        ["none", "26,34", "20,24"].map((repeatLayers) =>
          model.createContext({ ...options, repeatLayers })
        ),
      );
      const ask = (i: number) =>
        greedy(contexts[i]!, prompts[i % 2]!.repeat(4), 2, { cachePrompt: false });
      const alone = [await ask(0), await ask(1), await ask(2)];
      assertEquals(await Promise.all([ask(0), ask(1), ask(2)]), alone);
    },
  );
}

gpuTest(
  "a state saved on the GPU goes on there, even if its cells are not a multiple of 4 bytes",
  async () => {
    for (const cache of ["f16", "q8_0"] as const) {
      const options: ContextOptions = { ...small, repeatLayers: "26,34", cacheTypeK: cache };
      await using first = await gpu.createContext(options);
      await using second = await gpu.createContext(options);
      await greedy(first, STORY, 8);
      const state = await first.saveState();
      await second.loadState(state);
      const again = await second.saveState();
      assertEquals(again, state);
    }
  },
);

gpuTest("some layers on the GPU, the others on the CPU", async () => {
  await using part = await loadOnGpu(DEMO, { gpuLayers: 12 });
  assertEquals(part.info.gpu?.layers, 12);
  assert(part.info.gpu!.bytes < part.info.gpu!.cpuBytes);
  await using a = await part.createContext({ ...small, repeatLayers: "26,34" });
  await using b = await cpu.createContext({ ...small, repeatLayers: "26,34" });
  assertEquals(await greedy(a, STORY, 8), await greedy(b, STORY, 8));
});

gpuTest("an abort stops a generation, and the context goes on", async () => {
  await using context = await gpu.createContext({ ...small, repeatLayers: "26,34" });
  const stop = new AbortController();
  let n = 0;
  let thrown: unknown;
  try {
    for await (
      const _ of context.generate(STORY, { maxTokens: 200, ignoreEos: true, signal: stop.signal })
    ) {
      if (++n === 3) stop.abort(new Error("enough"));
    }
  } catch (error) {
    thrown = error;
  }
  assertEquals((thrown as Error)?.message, "enough");
  assert(n < 8, `${n} pieces`);
  assert((await greedy(context, STORY, 4)).length > 0);
});
