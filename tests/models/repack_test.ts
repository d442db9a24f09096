// Repacked weights on a real model, with real text: as near to what the weights say as llama.cpp's own path is, and the
// same bits on any threads. Both paths round activations to eight bits, each in its own way: on this model that alone
// moves perplexity by some tenths of a percent, so neither is the measure of the other. Its rows are 640 long, no multiple
// of 256, so a file of K-quants holds other types beside them. The demo model's tests are in tests/engine.

import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { type ContextOptions, loadModel } from "@rys/edge";
import { cacheDir, fetchModel } from "./fetch.ts";
import { quantised } from "./quantised.ts";

const prompts: { prompt: string }[] = JSON.parse(
  await Deno.readTextFile(new URL("../../models/prompts.json", import.meta.url)),
);
const TEXTS = prompts.slice(0, 1).map(({ prompt }) => prompt);
const OPTIONS: ContextOptions = { threads: 1, nCtx: 512, nParallel: 1 };

/** What each place of a text is expected to be followed by. */
interface Expected {
  /** Logarithms of probability, `places` x `nVocab`. */
  logprobs: Float32Array;
  nVocab: number;
  tokens: Int32Array | readonly number[];
}

async function expected(path: string, repack: boolean): Promise<Expected> {
  await using model = await loadModel(path, { gpu: "off", repack });
  const { data, nVocab, tokens } = await model.logits(TEXTS[0]!, OPTIONS);
  const logprobs = data.slice();
  for (let i = 0; i < tokens.length; i++) {
    const row = logprobs.subarray(i * nVocab, (i + 1) * nVocab);
    let most = -Infinity;
    for (const x of row) most = Math.max(most, x);
    let sum = 0;
    for (const x of row) sum += Math.exp(x - most);
    const norm = most + Math.log(sum);
    for (let v = 0; v < nVocab; v++) row[v]! -= norm;
  }
  return { logprobs, nVocab, tokens };
}

/** Kullback–Leibler divergence in nats, mean over the places. */
function divergence(of: Expected, to: Expected): number {
  let sum = 0;
  for (let i = 0; i < of.logprobs.length; i++) {
    sum += Math.exp(of.logprobs[i]!) * (of.logprobs[i]! - to.logprobs[i]!);
  }
  return sum / of.tokens.length;
}

for (const quant of [undefined, "Q8_0", "Q4_0"] as const) {
  const name = `gemma as ${quant ?? "Q4_K_M"}`;
  const path = async () => {
    const fetched = await fetchModel("gemma");
    return quant ? await quantised(fetched, quant, `${cacheDir()}/models`) : fetched;
  };

  Deno.test(`${name}: repacked weights are as near to exact activations as llama.cpp's own path`, async () => {
    const file = await path();
    // the same weights as F16, by which activations stay floats
    const exact = await expected(await quantised(file, "F16", `${cacheDir()}/models`), true);
    const repacked = await expected(file, true), plain = await expected(file, false);
    const ours = divergence(exact, repacked), theirs = divergence(exact, plain);
    console.error(`${name}: divergence ${ours} repacked, ${theirs} not`);
    assertNotEquals(ours, theirs);
    assert(ours >= 0 && ours < 1.2 * theirs + 1e-4, `${ours}, llama.cpp's own path ${theirs}`);
  });

  Deno.test(`${name}: repacked weights give the same bits on one thread and two`, async () => {
    await using model = await loadModel(await path(), { gpu: "off" });
    const of = async (threads: number) =>
      new Uint8Array(
        (await model.logits(TEXTS[0]!.slice(0, 200), { ...OPTIONS, threads })).data.buffer,
      );
    const one = await of(1), two = await of(2);
    assert(one.length > 0);
    assertEquals(one.length, two.length);
    assertEquals(one.findIndex((byte, i) => byte !== two[i]), -1);
  });
}
