import { assert, assertEquals } from "@std/assert";
import { loadModel } from "@rys/edge";
import { FetchError } from "../models/fetch.ts";
import { installPeer, startPeer } from "../models/_peer.ts";
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

/** Lead of the favourite, as a difference of logarithms, below which rounding decides. */
const TIE = 0.1;

/** Why the peer cannot run here, or nothing. */
async function reason(): Promise<string | undefined> {
  try {
    await installPeer();
    await new Deno.Command("node", { args: ["--version"] }).output();
    return undefined;
  } catch (error) {
    if (error instanceof FetchError) return error.message;
    if (error instanceof Deno.errors.NotFound) return "node is not on PATH; install Node.js";
    throw error;
  }
}

for (const name of ["demo", "demo-q8_0"]) {
  Deno.test({
    name: `${name}.gguf goes on as under native llama.cpp`,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async (t) => {
      const why = await reason();
      if (why) {
        console.error(`skipped: ${why}`);
        await t.step({ name: `skipped: ${why}`, ignore: true, fn: () => {} });
        return;
      }
      const path = inRepo(`models/${name}.gguf`);
      await using model = await loadModel(path);
      await using context = await model.createContext({
        repeatLayers: "none",
        nCtx: 512,
        nParallel: 1,
        threads: 1,
      });
      await using peer = await startPeer();
      await peer.call("load", { path });
      await peer.call("context", { name: "c", nCtx: 512, threads: 1 });
      let same = 0;
      for (const prompt of PROMPTS) {
        const tokens = await model.tokenize(prompt);
        const options = { temperature: 0, maxTokens: 64, logprobs: 2 };
        const ours = await context.generate(tokens, options).completion();
        const theirs = await peer.call<{ tokens: number[]; text: string }>(
          "greedy",
          { name: "c", tokens, n: 64 },
        );
        const said = ours.finishReason === "stop" ? ours.tokens.slice(0, -1) : ours.tokens;
        const at = said.findIndex((token, i) => token !== theirs.tokens[i]);
        if (at < 0) {
          assertEquals(ours.text, theirs.text, prompt);
          same++;
          continue;
        }
        // Sums of floats in another order: from a tie on, both are right.
        const [first, second] = ours.logprobs![at]!.top!;
        const lead = first!.logprob - second!.logprob;
        assertEquals(theirs.tokens[at], second!.id, `${prompt} at ${at}`);
        assert(lead < TIE, `${prompt} at ${at}: ${lead}`);
      }
      assert(same > PROMPTS.length / 2, `${same} of ${PROMPTS.length} are the same`);
    },
  });
}
