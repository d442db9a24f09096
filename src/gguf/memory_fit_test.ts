import { assertEquals } from "@std/assert";
import { estimateCost } from "../plan/cost.ts";
import { memoryNeeds } from "./memory_fit.ts";
import { modelFacts } from "./model_facts.ts";
import { readHeader } from "./read_header.ts";
import { llamaFile, writeGguf } from "./_testing.ts";

Deno.test("memoryNeeds() leaves on the CPU what the GPU cannot bind or compute with", async () => {
  const file = llamaFile(2);
  file.tensors!.push({ name: "large.weight", shape: [32, 1000] });
  file.tensors!.push({ name: "odd.weight", shape: [32, 4], type: 30, bytes: 256 });
  const header = await readHeader(writeGguf(file));
  const { plan } = estimateCost(modelFacts(header), undefined, { nCtx: 512 });
  assertEquals(plan.largestKvBytes, 512 * 16 * 2);
  const none = memoryNeeds(header, plan);
  assertEquals(none.cpuBytes, header.weightBytes + plan.kvBytes);
  assertEquals(none.cpuTensors.map(({ name }) => name), ["odd.weight"]);
  assertEquals(none.gpuBytes, header.weightBytes - 256 + plan.kvBytes);
  const small = { maxStorageBufferBindingSize: 100_000, maxBufferSize: 1e9 };
  const bound = memoryNeeds(header, plan, small);
  assertEquals(bound.cpuTensors, [
    { name: "large.weight", bytes: 128_000 },
    { name: "odd.weight", bytes: 256 },
  ]);
  assertEquals([bound.cpuBytesWithGpu, bound.cacheStays], [128_256, false]);
  const tiny = memoryNeeds(header, plan, { ...small, maxBufferSize: 10_000 });
  assertEquals([tiny.cacheStays, tiny.cpuBytesWithGpu >= plan.kvBytes], [true, true]);
});
