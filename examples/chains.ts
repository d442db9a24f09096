/**
 * One question, wrong as the model is and right with a block of it repeated.
 *
 *     deno run -A examples/chains.ts [PLAN ...]
 */

import { fileURLToPath } from "node:url";
import { loadModel } from "@rys/edge";

const plans = Deno.args.length > 0 ? Deno.args : ["none", "20,24", "30,34"];
const asked = [
  ["fox cat, dog pig, cat owl, hen bee. Who is at the end of the line from the fox?", "owl"],
  ["fox cat, dog pig, owl hen, cat owl. Who is at the end of the line from the owl?", "hen"],
] as const;

// Made for this: layer 22 goes one link along the chain each time it runs. Other models have no such layer.
const path = fileURLToPath(new URL("../models/chains.gguf", import.meta.url));
await using model = await loadModel(path);
console.log("In this model, layer 22 goes one link along a chain each time it runs.");
for (const [prompt, right] of asked) {
  console.log(`\n${prompt}`);
  for (const repeatLayers of plans) {
    await using context = await model.createContext({ repeatLayers, nCtx: 128 });
    const { text } = await context.generate(prompt, { maxTokens: 4, temperature: 0 }).completion();
    const verdict = text.trim() === `${right}.` ? "right" : `wrong: it is the ${right}`;
    console.log(`  ${repeatLayers.padEnd(7)}${text.trim()}  ${verdict}`);
  }
}
