import { assert, assertEquals } from "@std/assert";
import { CAPITAL, load } from "./_models.ts";
import { fetchModel, type ModelName } from "./fetch.ts";
import { startPeer } from "./_peer.ts";

/** Texts to go on from, with a clear favourite at each of `n` tokens. */
const TEXTS: Record<ModelName, { text: string; n: number }[]> = {
  smollm2: [{ text: "1, 2, 3, 4, 5,", n: 24 }],
  gemma: [
    { text: "1, 2, 3, 4, 5,", n: 24 },
    { text: "The days of the week are Monday, Tuesday,", n: 8 },
    { text: "a b c d e f g", n: 19 },
    { text: "import numpy as np\nimport pandas as", n: 9 },
  ],
};

/** Least lead of the favourite, as a difference of logarithms: far more than rounding moves. */
const LEAD = 0.5;

for (const name of ["smollm2", "gemma"] as const) {
  Deno.test(`${name} splits and continues text as native node-llama-cpp does`, async () => {
    await using model = await load(name);
    await using peer = await startPeer();
    await peer.call("load", { path: await fetchModel(name) });
    await peer.call("context", { name: "c", nCtx: 512, threads: 1 });
    await using context = await model.createContext({
      repeatLayers: "none",
      nCtx: 512,
      nParallel: 1,
    });
    const cases = [...TEXTS[name]];
    if (model.info.hasChatTemplate) {
      cases.push({ text: await context.applyTemplate(CAPITAL), n: 24 });
    }
    for (const { text, n } of cases) {
      const plain = await model.tokenize(text, { addSpecial: false });
      assertEquals(plain, await peer.call("tokenize", { text }), text);
      const tokens = await model.tokenize(text);
      const options = { temperature: 0, maxTokens: n, logprobs: 2 };
      const ours = await context.generate(tokens, options).completion();
      const theirs = await peer.call<{ tokens: number[]; text: string }>(
        "greedy",
        { name: "c", tokens, n },
      );
      assert(theirs.tokens.length > 3, theirs.text);
      for (const { token, top } of ours.logprobs!) {
        assert(top![0]!.logprob - top![1]!.logprob > LEAD, `no clear favourite at "${token}"`);
      }
      assertEquals(ours.text, theirs.text, text);
      const { eos } = model.info;
      assertEquals(ours.tokens.filter((token) => token !== eos), theirs.tokens, text);
    }
  });
}
