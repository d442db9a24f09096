// Loads a model and writes one token; prints when each step was reached, in milliseconds since 1970.
//
//   deno run -A _boot_ours.ts MODEL PROMPT

import { loadModel } from "@rys/edge";

const now = () => performance.timeOrigin + performance.now();
const [path, prompt] = Deno.args as [string, string];
const modules = now();
const model = await loadModel(path);
const loaded = now();
const context = await model.createContext({ nCtx: 512, nParallel: 1 });
const ready = now();
let first = 0;
for await (const piece of context.generate(prompt, { maxTokens: 8, temperature: 0 })) {
  if (!first && piece.tokens.length) first = now();
}
console.log(JSON.stringify({ begin: performance.timeOrigin, modules, loaded, ready, first }));
Deno.exit(0);
