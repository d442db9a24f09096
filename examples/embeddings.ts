/**
 * Ranks texts by their likeness to a query, with embeddings taken under a plan.
 *
 *     deno run -A examples/embeddings.ts [MODEL.gguf] [QUERY]
 */

import { loadModel } from "@rys/edge";

const [path = "models/demo.gguf", query = "A dog runs in the park."] = Deno.args;
const texts = [
  "The puppy plays outside.",
  "Two and three are five.",
  "The capital of France is Paris.",
];

await using model = await loadModel(path);
await using context = await model.createContext({ repeatLayers: "20,22", nCtx: 512 });

const [wanted, ...vectors] = await context.embed([query, ...texts]);
const ranked = texts.map((text, i) => ({
  text,
  // The vectors have length 1, so that this is the cosine.
  score: vectors[i]!.reduce((sum, x, k) => sum + x * wanted![k]!, 0),
})).sort((a, b) => b.score - a.score);
for (const { score, text } of ranked) console.log(`${score.toFixed(3)}  ${text}`);
