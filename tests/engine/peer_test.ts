import { assert, assertEquals } from "@std/assert";
import { loadModel } from "@rys/edge";
import { compareWithPeer, startPeer, whyNoPeer } from "../models/_peer.ts";
import { inRepo } from "./_engine.ts";

const PROMPTS = [
  "Once upon a time",
  "The code of the fox is 48. The code of the cat is 12. What is the code of the fox?",
  "The capital of Norway",
  "A wolf is bigger than",
  "Snow falls in",
  "One day the old king",
  "\u00e9\u{1f999}",
];

/**
 * How far apart the two may be, as differences of logarithms: the lead of a favourite below which rounding decides, and
 * the most and the mean by which log probabilities differ. Sums are in another order on every processor, and 8-bit
 * activations turn a last bit into a step; a wrong kernel or tensor is off by far more.
 */
const BOUNDS = {
  "demo": { tie: 0.2, worst: 0.1, mean: 0.01 },
  "demo-q8_0": { tie: 0.5, worst: 1, mean: 0.1 },
} as const;

for (const [name, bounds] of Object.entries(BOUNDS)) {
  Deno.test({
    name: `${name}.gguf goes on as under native llama.cpp`,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async (t) => {
      const why = await whyNoPeer();
      if (why) {
        console.error(`skipped: ${why}`);
        await t.step({ name: `skipped: ${why}`, ignore: true, fn: () => {} });
        return;
      }
      const path = inRepo(`models/${name}.gguf`);
      await using model = await loadModel(path);
      await using peer = await startPeer();
      await peer.call("load", { path });
      await peer.call("context", { name: "c", nCtx: 512, threads: 1 });
      for (const prompt of PROMPTS) {
        const tokens = await model.tokenize(prompt);
        const { others, worst, mean } = await compareWithPeer(model, peer, tokens, {
          tie: bounds.tie,
        });
        assertEquals(others, [], prompt);
        assert(worst < bounds.worst, `${prompt}: log probabilities differ by ${worst}`);
        assert(mean < bounds.mean, `${prompt}: they differ by ${mean} in the mean`);
      }
    },
  });
}
