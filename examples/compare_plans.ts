/**
 * Asks one question under several plans, on one set of weights.
 *
 *     deno run -A examples/compare_plans.ts [MODEL.gguf] [PLAN ...]
 */

import { loadModel } from "@rys/edge";

const [path = "models/demo.gguf", ...given] = Deno.args;
const plans = given.length > 0 ? given : ["none", "20,24", "26-34x2"];

await using model = await loadModel(path);
for (const repeatLayers of plans) {
  // A context is its plan and its KV cache; the weights are the model's.
  await using context = await model.createContext({ repeatLayers, nCtx: 512 });
  const { nLayer, nLayerEff } = context.info.plan;
  const generation = context.generate("The little dog", { maxTokens: 24, temperature: 0 });
  const { text, timings } = await generation.completion();
  const speed = `${timings.predictedPerSecond.toFixed(1)} tokens/s`;
  console.log(`${repeatLayers} (${nLayerEff} of ${nLayer} layers, ${speed}): ${text.trim()}`);
}
