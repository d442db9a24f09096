import { assert, assertEquals } from "@std/assert";
import { type Completion, type ContextOptions, loadModel, type Model } from "@rys/edge";
import { DEMO } from "../engine/_engine.ts";
import { gpuTest, loadOnGpu, nmse, NO_GPU } from "../gpu/_gpu.ts";
import { cacheDir, fetchModel } from "./fetch.ts";
import { type Quant, quantised } from "./quantised.ts";

/** What the GPU can bind, 0 without one: a larger tensor stays in memory. */
const BINDING = NO_GPU
  ? 0
  : (await navigator.gpu.requestAdapter())!.limits.maxStorageBufferBindingSize;

/** Continued with a clear favourite at each token, by each of the models below. */
const TEXT = "1, 2, 3, 4, 5,";
const N = 6;
/** Least lead of the favourite, as a difference of logarithms: far more than rounding moves. */
const LEAD = 0.5;

/**
 * Most that the GPU's logits may differ from the exact ones, as a normalised mean squared error. Exact are those of the
 * CPU with the same weights as F16. The CPU's own from a quantised file are not: it rounds activations to 8 bits, which
 * the GPU does not, and in gemma that comes to 0.003.
 */
const TOLERANCE = 1e-3;

interface Case {
  name: string;
  /** Path of the model. */
  path(): Promise<string>;
  /** Path of the same weights as F16. */
  exact(): Promise<string>;
  plan: string;
}

const SMALL: ContextOptions = { nCtx: 256, nParallel: 1 };

const asF16 = (path: string) => quantised(path, "F16", `${cacheDir()}/models`);

const gemma = (quant?: Quant): Case => {
  const path = async () => {
    const fetched = await fetchModel("gemma");
    return quant ? await quantised(fetched, quant) : fetched;
  };
  return {
    name: `gemma as ${quant ?? "Q4_K_M"}`,
    path,
    exact: async () => quant === "F16" ? await path() : await asF16(await path()),
    plan: "14,16",
  };
};
const smollm2: Case = {
  name: "SmolLM2 as Q4_1",
  path: () => fetchModel("smollm2"),
  exact: async () => await asF16(await fetchModel("smollm2")),
  plan: "12,14",
};

const generate = async (model: Model, repeatLayers: string): Promise<Completion> => {
  await using context = await model.createContext({ ...SMALL, repeatLayers });
  const tokens = await model.tokenize(TEXT);
  return await context.generate(tokens, { temperature: 0, maxTokens: N, logprobs: 2 }).completion();
};

for (
  const { name, path, exact, plan } of [
    gemma("F16"),
    gemma("Q8_0"),
    gemma("Q4_0"),
    gemma(),
    smollm2,
  ]
) {
  gpuTest(`${name}: the GPU writes what the CPU writes, with and without a plan`, async () => {
    const file = await path();
    await using gpu = await loadOnGpu(file);
    const written: Completion[] = [];
    for (const repeatLayers of ["none", plan]) written.push(await generate(gpu, repeatLayers));
    const logits = (await gpu.logits(TEXT, { ...SMALL, repeatLayers: plan })).data;
    await gpu.dispose();

    await using cpu = await loadModel(file, { gpu: "off" });
    for (const [i, repeatLayers] of ["none", plan].entries()) {
      const right = await generate(cpu, repeatLayers);
      for (const { token, top } of right.logprobs!) {
        const lead = top![0]!.logprob - top![1]!.logprob;
        assert(lead > LEAD, `plan ${repeatLayers}: no clear favourite at "${token}"`);
      }
      assertEquals(right.tokens.length, N);
      assertEquals(written[i]!.text, right.text, `plan ${repeatLayers}`);
      assertEquals(written[i]!.tokens, right.tokens, `plan ${repeatLayers}`);
    }
    const rounded = (await cpu.logits(TEXT, { ...SMALL, repeatLayers: plan })).data;
    await cpu.dispose();

    await using same = await loadModel(await exact(), { gpu: "off" });
    const right = (await same.logits(TEXT, { ...SMALL, repeatLayers: plan })).data;
    const error = nmse(logits, right);
    console.log(
      `${name}, plan ${plan}: NMSE ${error.toExponential(1)} on the GPU, ` +
        `${nmse(rounded, right).toExponential(1)} on the CPU`,
    );
    assert(error < TOLERANCE, `NMSE ${error}`);
    assert(error > 0, "the same bits: the GPU did not compute");
  });
}

gpuTest("a tensor larger than the GPU can bind stays in memory, and is named", async () => {
  await using model = await loadOnGpu(await gemma("F16").path());
  const { bytes, cpuBytes, cpuTensors } = model.info.gpu!;
  const embedding = { name: "token_embd.weight", bytes: 2 * 640 * 262144 };
  // The head's result for a micro-batch of 512 tokens must fit too.
  const stays = BINDING < 4 * 512 * 262144;
  assertEquals(cpuTensors, stays ? [embedding] : []);
  assertEquals(cpuBytes, stays ? embedding.bytes : 0);
  assert(bytes >= 190e6, `${bytes} bytes`); // the layers
});

for (const quant of ["Q8_0", "Q4_0"] as const) {
  gpuTest(`the demo model as ${quant}: the GPU writes what the CPU writes`, async () => {
    const file = await quantised(DEMO, quant, `${cacheDir()}/models`);
    await using gpu = await loadOnGpu(file);
    await using cpu = await loadModel(file, { gpu: "off" });
    for (const repeatLayers of ["none", "26,34"]) {
      const a = await generate(gpu, repeatLayers);
      const b = await generate(cpu, repeatLayers);
      assertEquals(a.text, b.text, `plan ${repeatLayers}`);
      assertEquals(a.tokens, b.tokens, `plan ${repeatLayers}`);
    }
  });
}
