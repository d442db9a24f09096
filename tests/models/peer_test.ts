import { assert, assertEquals } from "@std/assert";
import { CAPITAL, load } from "./_models.ts";
import { fetchModel, type ModelName } from "./fetch.ts";
import { compareWithPeer, startPeer } from "./_peer.ts";

/** Texts to go on from. */
const TEXTS: Record<ModelName, string[]> = {
  smollm2: ["1, 2, 3, 4, 5,"],
  gemma: [
    "1, 2, 3, 4, 5,",
    "The days of the week are Monday, Tuesday,",
    "a b c d e f g",
    "import numpy as np\nimport pandas as",
  ],
};

/**
 * As in tests/engine/peer_test.ts: differences of logarithms that rounding may make. These weights have 4 bits, and the
 * peer repacks them for kernels that round activations otherwise.
 */
const BOUNDS = { tie: 1, worst: 4, mean: 0.6 };

for (const name of ["smollm2", "gemma"] as const) {
  Deno.test(`${name} splits and continues text as native node-llama-cpp does`, async () => {
    await using model = await load(name);
    await using peer = await startPeer();
    await peer.call("load", { path: await fetchModel(name) });
    await peer.call("context", { name: "c", nCtx: 512, threads: 1 });
    const texts = [...TEXTS[name]];
    if (model.info.hasChatTemplate) {
      await using context = await model.createContext({ repeatLayers: "none", nCtx: 512 });
      texts.push(await context.applyTemplate(CAPITAL));
    }
    for (const text of texts) {
      const plain = await model.tokenize(text, { addSpecial: false });
      assertEquals(plain, await peer.call("tokenize", { text }), text);
      const tokens = await model.tokenize(text);
      const { n, others, worst, mean } = await compareWithPeer(model, peer, tokens, {
        n: 24,
        tie: BOUNDS.tie,
      });
      assert(n > 3, text);
      assertEquals(others, [], text);
      assert(worst < BOUNDS.worst, `${text}: log probabilities differ by ${worst}`);
      assert(mean < BOUNDS.mean, `${text}: they differ by ${mean} in the mean`);
    }
  });
}
