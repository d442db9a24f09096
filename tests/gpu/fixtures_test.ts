import { assert } from "@std/assert";
import { loadModel } from "@rys/edge";
import { fixture } from "../oracle/fixture.ts";
import { gpuTest, loadOnGpu, nmse } from "./_gpu.ts";

/** Variants of each kind of memory and of each special operation: attention, windows, recurrent, hybrid, experts. */
const VARIANTS: [name: string, plan: string][] = [
  ["llama", "4,8"],
  ["gemma3", "5,6"],
  ["gemma4", "4,6"],
  ["qwen35+nextn", "4,8"],
  ["lfm2", "4,8"],
  ["mamba", "4,8"],
  ["falcon-h1", "4,8"],
  ["granitehybrid", "4,8"],
  ["deepseek2-moe", "4,8"],
];

const tokens = Array.from({ length: 40 }, (_, i) => (i * 37 + 11) % 120);

for (const [name, plan] of VARIANTS) {
  gpuTest(`${name}: logits are those of the CPU, with and without a plan`, async () => {
    const path = await fixture(name);
    const mtp = name.includes("nextn");
    await using gpu = await loadOnGpu(path, { mtp });
    await using cpu = await loadModel(path, { gpu: "off", mtp });
    for (const repeatLayers of ["none", plan]) {
      const a = await gpu.logits(tokens, { repeatLayers });
      const b = await cpu.logits(tokens, { repeatLayers });
      const error = nmse(a.data, b.data);
      assert(error < 1e-3, `plan ${repeatLayers}: NMSE ${error}`);
    }
  });
}
