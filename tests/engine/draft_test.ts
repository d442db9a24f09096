import { assert, assertEquals } from "@std/assert";
import { loadModel } from "@rys/edge";
import { fixture } from "../oracle/fixture.ts";
import { DEMO, greedy, inRepo, SMALL, STORY, test } from "./_engine.ts";
import { type RawTensor, readGguf, textKey, wideKey } from "./_gguf.ts";
import { writeGgufFile } from "../../src/gguf/_testing.ts";

const oracle = inRepo("wasm/oracle/build.json");
const noOracle = await Deno.stat(oracle).then(() => false, () => true);

Deno.test({
  name: "speculative decoding with the model's own MTP head gives the same tokens, with a plan" +
    (noOracle ? ' (skipped: run "deno task build --oracle")' : ""),
  ignore: noOracle,
  sanitizeOps: false,
  sanitizeResources: false,
  fn: async () => {
    const path = await fixture("qwen35+nextn");
    await using model = await loadModel(path, { mtp: true });
    assertEquals(model.info.nLayerNextn, 1);
    const prompt = [1, 2, 3, 4, 5, 6, 7, 8];
    const options = { maxTokens: 16, temperature: 0, ignoreEos: true };
    for (const repeatLayers of ["none", "3,5"]) {
      await using plain = await model.createContext({ ...SMALL, repeatLayers });
      await using drafted = await model.createContext({
        ...SMALL,
        repeatLayers,
        speculative: { type: "mtp", nMax: 3 },
      });
      const want = await plain.generate(prompt, options).completion();
      const got = await drafted.generate(prompt, options).completion();
      assertEquals(got.tokens, want.tokens);
      assert(got.timings.draftTokens! > 0);
    }
  },
});

/** An adapter of rank 1 for the demo model's layer 21. */
function adapter(path: string): void {
  const { tensors } = readGguf(Deno.readFileSync(DEMO));
  const target = tensors.find(({ name }) => name === "blk.21.ffn_up.weight")!;
  const [nIn, nOut] = target.shape as [bigint, bigint];
  const wave = (n: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(i) / 2);
  const tensor = (name: string, shape: bigint[], n: number): RawTensor => ({
    name,
    shape,
    type: 0,
    data: new Uint8Array(wave(n).buffer),
  });
  writeGgufFile(path, {
    keys: [
      textKey("general.type", "adapter"),
      textKey("general.architecture", "qwen3"),
      textKey("adapter.type", "lora"),
      wideKey("adapter.lora.alpha", "float32", 8),
    ],
    tensors: [
      tensor("blk.21.ffn_up.weight.lora_a", [nIn, 1n], Number(nIn)),
      tensor("blk.21.ffn_up.weight.lora_b", [1n, nOut], Number(nOut)),
    ],
  });
}

test("a LoRA adapter changes the text by its scale, with a plan and without", async (model) => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/adapter: a, b.gguf`;
    adapter(path);
    for (const repeatLayers of ["none", "20,24"]) {
      const logits = async (lora?: { path: string; scale?: number }[]) => {
        await using context = await model.createContext({ ...SMALL, repeatLayers, lora });
        const { logprobs } = await context.generate(STORY, {
          maxTokens: 4,
          temperature: 0,
          ignoreEos: true,
          logprobs: 1,
        }).completion();
        return logprobs!.map(({ id, logprob }) => `${id} ${logprob}`).join();
      };
      const none = await logits();
      const zero = await logits([{ path, scale: 0 }]);
      const one = await logits([{ path }]);
      const half = await logits([{ path, scale: 0.5 }]);
      assertEquals(zero, none);
      assertEquals(new Set([none, one, half]).size, 3);
      assertEquals(await logits(), none);
      assertEquals(await logits([{ path, scale: 0.5 }, { path, scale: 0.5 }]) === none, false);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  await using context = await model.createContext(SMALL);
  assert((await greedy(context, STORY, 2)).length > 0);
});
