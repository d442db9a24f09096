// Weights that are repacked while loading: nearly llama.cpp's own logits, the same bits on any threads, no second copy in
// memory. What the products themselves give: tests/kernels.

import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { type ContextOptions, loadModel, type Model } from "@rys/edge";
import { inRepo } from "./_engine.ts";

const prompts: { prompt: string }[] = JSON.parse(
  await Deno.readTextFile(inRepo("models/prompts.json")),
);
const TEXTS = prompts.slice(0, 4).map(({ prompt }) => prompt);

async function perplexity(model: Model, options: ContextOptions = {}): Promise<number> {
  let loss = 0, n = 0;
  for (const text of TEXTS) {
    const { data, nVocab, tokens } = await model.logits(text, { threads: 1, ...options });
    for (let i = 0; i + 1 < tokens.length; i++) {
      const row = data.subarray(i * nVocab, (i + 1) * nVocab);
      const most = row.reduce((a, b) => Math.max(a, b), -Infinity);
      const sum = row.reduce((total, x) => total + Math.exp(x - most), 0);
      loss += most + Math.log(sum) - row[tokens[i + 1]!]!;
      n++;
    }
  }
  return Math.exp(loss / n);
}

const test = (name: string, fn: () => Promise<void>) =>
  Deno.test({ name, sanitizeOps: false, sanitizeResources: false, fn });

for (const name of ["demo", "demo-q8_0"]) {
  test(`${name}: repacked weights change perplexity by less than 0.1 %`, async () => {
    const path = inRepo(`models/${name}.gguf`);
    await using repacked = await loadModel(path, { gpu: "off" });
    await using plain = await loadModel(path, { gpu: "off", repack: false });
    assertEquals(repacked.info.modelBytes, plain.info.modelBytes);
    const got = await perplexity(repacked), want = await perplexity(plain);
    assert(want > 1 && want < 1000, `${want}`);
    assert(Math.abs(got / want - 1) < 1e-3, `${got}, not ${want}`);
    // They are other kernels indeed.
    assertNotEquals(
      (await repacked.logits(TEXTS[0]!, { threads: 1 })).data,
      (await plain.logits(TEXTS[0]!, { threads: 1 })).data,
    );
  });

  test(`${name}: repacked weights give the same bits on one thread and two, and the same text in any batch`, async () => {
    await using model = await loadModel(inRepo(`models/${name}.gguf`), { gpu: "off" });
    for (const nBatch of [1, 3, 64]) {
      const of = (threads: number) => model.logits(TEXTS[0]!, { threads, nBatch, nUbatch: nBatch });
      assertEquals((await of(1)).data, (await of(2)).data, `nBatch ${nBatch}`);
    }
    const texts = new Set<string>();
    for (const nBatch of [1, 3, 64]) {
      for (const threads of [1, 2]) {
        await using context = await model.createContext({
          nCtx: 512,
          nParallel: 1,
          threads,
          nBatch,
          nUbatch: nBatch,
        });
        texts.add(
          await context.generate(TEXTS[1]!, { maxTokens: 24, temperature: 0, ignoreEos: true })
            .text(),
        );
      }
    }
    assertEquals(texts.size, 1);
  });
}

test("without repacking, a model computes as with llama.cpp's --no-repack", async () => {
  const path = inRepo("models/demo-q8_0.gguf");
  await using a = await loadModel(path, { gpu: "off", repack: false });
  await using b = await loadModel(path, { gpu: "off", args: ["--no-repack"] });
  assertEquals(
    (await a.logits(TEXTS[0]!, { threads: 1 })).data,
    (await b.logits(TEXTS[0]!, { threads: 1 })).data,
  );
});

test("repacking takes no second copy of the weights", async () => {
  const heap = async (repack: boolean) => {
    await using model = await loadModel(inRepo("models/demo.gguf"), { gpu: "off", repack });
    return await model.heapBytes();
  };
  const { size } = await Deno.stat(inRepo("models/demo.gguf"));
  const repacked = await heap(true), plain = await heap(false);
  assert(repacked - plain < size / 2, `${repacked}, not ${plain}`);
});
