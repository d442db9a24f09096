import { assert } from "@std/assert";
import { loadModel } from "@rys/edge";
import { readGguf } from "../engine/_gguf.ts";
import { writeGgufFile } from "../../src/gguf/_testing.ts";
import { fixture } from "../oracle/fixture.ts";
import { gpuTest, loadOnGpu, nmse } from "./_gpu.ts";

/** Makes what enters a layer's feed-forward products a million times larger, far above f16's 65504. */
async function enlarged(name: string): Promise<string> {
  const file = readGguf(await Deno.readFile(await fixture(name)));
  let n = 0;
  for (const tensor of file.tensors) {
    if (!/^blk\.5\.ffn_norm\.weight$/.test(tensor.name)) continue;
    const values = new Float32Array(tensor.data.slice().buffer).map((v) => v * 1e6);
    tensor.data = new Uint8Array(values.buffer);
    n++;
  }
  assert(n === 1, `${n} norms`);
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  writeGgufFile(path, file);
  return path;
}

// 40 tokens take the tiled products, 1 and 4 the vector ones.
for (const name of ["llama", "deepseek2-moe"]) {
  gpuTest(`${name}: activations above f16's range stay right`, async () => {
    const path = await enlarged(name);
    try {
      await using gpu = await loadOnGpu(path);
      await using cpu = await loadModel(path, { gpu: "off" });
      for (const n of [40, 4]) {
        const tokens = Array.from({ length: n }, (_, i) => (i * 37 + 11) % 120);
        const a = await gpu.logits(tokens, { repeatLayers: "4,6" });
        const b = await cpu.logits(tokens, { repeatLayers: "4,6" });
        assert(b.data.every(Number.isFinite), "the CPU's are not numbers");
        const error = nmse(a.data, b.data);
        assert(error < 1e-3, `${n} tokens: NMSE ${error}`);
      }
    } finally {
      await Deno.remove(path);
    }
  });
}
