import { assert, assertEquals } from "@std/assert";
import { loadModel } from "@rys/edge";
import { EngineClient } from "../../src/engine/client.ts";
import { expandPlan, packPlan } from "../../src/plan/mod.ts";
import { child, DEMO, greedy, inRepo, SMALL, STORY } from "../engine/_engine.ts";
import { gpuTest, loadOnGpu } from "./_gpu.ts";
import { recording, test } from "./_recording.ts";

const { kind, words } = packPlan(expandPlan("20,22", 40));

/** Loads, makes a context with a plan, generates a token, frees; all in one engine. */
async function round(client: EngineClient, path: string): Promise<void> {
  const { handle: model } = await client.call({
    fn: "model_load",
    options: { path, args: ["-ngl", "9999"] },
    cancel: 0,
  });
  const { handle: context } = await client.call({
    fn: "context_create",
    model,
    options: { args: ["-c", "256", "-np", "1", "-t", "1"] },
    kind,
    words,
  });
  const body = { prompt: STORY, n_predict: 1, temperature: 0 };
  let status = 0;
  await client.call(
    {
      fn: "context_request",
      context,
      method: "POST",
      path: "/completion",
      query: "",
      body: new TextEncoder().encode(JSON.stringify(body)),
      cancel: 0,
    },
    { head: (code) => status = code },
  );
  assertEquals(status, 200);
  await client.call({ fn: "context_free", context });
  await client.call({ fn: "model_free", model });
}

test("100 rounds of load, plan, token and dispose leave nothing on the GPU and no memory", async () => {
  const gpu = recording();
  const { gpuBridge } = gpu.load;
  const client = await EngineClient.start({
    dist: new URL("../../wasm/dist/", import.meta.url),
    verbosity: 1,
    threads: 4,
    gpu: { mode: "required", ...gpuBridge },
  });
  const path = client.addFiles([{ path: DEMO, size: Deno.statSync(DEMO).size }]);
  const look = async () => {
    const { buffers, bufferBytes, liveBindGroups, pipelines } = (await client.gpuCounts())!;
    const report = await gpu.report();
    return {
      ours: { buffers, bufferBytes, liveBindGroups, pipelines },
      device: report.buffers.map(({ label, size }) => `${label} ${size}`),
      errors: report.errors,
      peakBytes: report.peakBytes,
    };
  };
  for (let i = 0; i < 5; i++) await round(client, path);
  const before = await look();
  const heap = await client.heapBytes();
  for (let i = 0; i < 95; i++) await round(client, path);
  assertEquals(await look(), before);
  assertEquals(before.errors, []);
  assertEquals(before.ours.buffers, before.device.length);
  // What stays is a few small buffers of the device's own.
  assert(before.ours.bufferBytes < 2 ** 20, JSON.stringify(before));
  assertEquals(before.ours.liveBindGroups, 0);
  assert(await client.heapBytes() - heap < 100 * 2 ** 20, `${heap}, ${await client.heapBytes()}`);
  await client.close();
});

test("100 contexts with other plans on one model leave its weights alone", async () => {
  const gpu = recording();
  await using model = await loadModel(DEMO, gpu.load);
  const plans = ["none", "20,22", "12,24", "26,34"];
  const look = async () => {
    const { buffers, bufferBytes, liveBindGroups } = (await model.gpuCounts())!;
    return { buffers, bufferBytes, liveBindGroups };
  };
  const round = async (i: number) => {
    await using context = await model.createContext({
      ...SMALL,
      nCtx: 256,
      repeatLayers: plans[i % plans.length]!,
    });
    await context.generate(STORY, { maxTokens: 1 }).completion();
  };
  for (let i = 0; i < 4; i++) await round(i);
  const before = await look();
  for (let i = 0; i < 100; i++) await round(i);
  assertEquals(await look(), before);
  assertEquals((await gpu.report()).errors, []);
});

test("10 models after one another leave no device and no thread", async () => {
  for (let i = 0; i < 10; i++) {
    const gpu = recording();
    const model = await loadModel(DEMO, gpu.load);
    const context = await model.createContext({ ...SMALL, nCtx: 256, repeatLayers: "20,22" });
    await context.generate(STORY, { maxTokens: 1 }).completion();
    assertEquals((await gpu.report()).errors, []);
    await model.dispose();
  }
});

gpuTest("rounds of load, plan, token and dispose on an adapter leave nothing behind", async () => {
  const texts = new Set<string>();
  for (let i = 0; i < 3; i++) {
    await using model = await loadOnGpu(DEMO);
    const weights = (await model.gpuCounts())!;
    const counts = [];
    for (let k = 0; k < 3; k++) {
      await using context = await model.createContext({ ...SMALL, repeatLayers: "20,22" });
      texts.add(await greedy(context, STORY, 2));
      counts.push((await model.gpuCounts())!.bufferBytes);
    }
    assertEquals(counts[0], counts[1]);
    assertEquals(counts[0], counts[2]);
    assert(counts[0]! > weights.bufferBytes);
    const { bufferBytes } = (await model.gpuCounts())!;
    assert(bufferBytes - weights.bufferBytes < 2 ** 20, `${bufferBytes}`);
  }
  assertEquals(texts.size, 1);
});

gpuTest("a process with a device ends by itself, disposed of or not", async () => {
  for (const end of ["await model.dispose();", "", "Deno.exit(0);", "model.dispose();"]) {
    const { code, stdout } = await child(`
      import { loadModel } from "${new URL("../../mod.ts", import.meta.url)}";
      const model = await loadModel(${
      JSON.stringify(inRepo("models/demo.gguf"))
    }, { gpu: "required" });
      const context = await model.createContext({ nCtx: 256, nParallel: 1, threads: 1 });
      await context.generate("Once", { maxTokens: 1 }).completion();
      console.log(model.info.gpu.layers);
      ${end}
    `);
    assertEquals([code, stdout], [0, "41\n"], end);
  }
});
