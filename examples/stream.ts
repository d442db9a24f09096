/**
 * Streams an answer, under a plan.
 *
 *     deno run -A examples/stream.ts [MODEL.gguf] [PLAN]
 */

import { loadModel } from "@rys/edge";

const [path = "models/demo.gguf", repeatLayers = "20,24"] = Deno.args;

await using model = await loadModel(path);
await using context = await model.createContext({ repeatLayers, nCtx: 1024 });

const messages = [{ role: "user", content: "What is the capital of Norway?" }];
const encoder = new TextEncoder();
for await (const piece of context.generate(messages, { maxTokens: 64, temperature: 0 })) {
  await Deno.stdout.write(encoder.encode(piece.text));
  if (piece.end) {
    const { nGenerated, timings } = piece.end;
    console.log();
    console.error(`${nGenerated} tokens, ${timings.predictedPerSecond.toFixed(1)} tokens/s`);
  }
}
