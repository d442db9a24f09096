// The same as _boot_ours.ts, with node-llama-cpp in Node.
//
//   node _boot_peer.mjs PACKAGE MODEL PROMPT

import process from "node:process";
import { pathToFileURL } from "node:url";

const now = () => performance.timeOrigin + performance.now();
const [home, modelPath, prompt] = process.argv.slice(2);
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(`${home}/dist/index.js`).href);
const modules = now();
const llama = await getLlama({
  gpu: false,
  build: "never",
  maxThreads: 0,
  logLevel: LlamaLogLevel.error,
  progressLogs: false,
});
const model = await llama.loadModel({ modelPath });
const loaded = now();
const context = await model.createContext({ contextSize: 512, batchSize: 512, sequences: 1 });
const ready = now();
let first = 0;
let n = 0;
const tokens = [...model.tokenize(prompt, true)];
for await (const _ of context.getSequence().evaluate(tokens, { temperature: 0 })) {
  first ||= now();
  if (++n === 8) break;
}
console.log(JSON.stringify({ begin: performance.timeOrigin, modules, loaded, ready, first }));
process.exit(0);
