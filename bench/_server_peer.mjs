// Serves node-llama-cpp's sequences with the part of llama-server's /completion that the load needs: node-llama-cpp has
// no server of its own. Requests beyond the number of sequences wait in order.
//
//   node _server_peer.mjs PACKAGE MODEL PORT SEQUENCES CONTEXT THREADS

import { createServer } from "node:http";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [home, modelPath, ...numbers] = process.argv.slice(2);
const [port, sequences, contextSize, threads] = numbers.map(Number);
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(`${home}/dist/index.js`).href);
const llama = await getLlama({
  gpu: false,
  build: "never",
  maxThreads: 0,
  logLevel: LlamaLogLevel.error,
  progressLogs: false,
});
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize, batchSize: 512, threads, sequences });
const free = Array.from({ length: sequences }, () => context.getSequence());
const waiting = [];

const take = () => free.pop() ?? new Promise((resolve) => waiting.push(resolve));

function give(sequence) {
  const next = waiting.shift();
  if (next) next(sequence);
  else free.push(sequence);
}

async function complete({ prompt, n_predict }, response) {
  const sequence = await take();
  try {
    await sequence.clearHistory();
    let n = 0;
    const generated = sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true });
    for await (const token of generated) {
      n++;
      const content = model.detokenize([token]);
      const event = { content, tokens: [token], tokens_predicted: n, stop: n === n_predict };
      response.write(`data: ${JSON.stringify(event)}\n\n`);
      if (n === n_predict || response.closed) break;
    }
  } finally {
    give(sequence);
  }
  response.end();
}

createServer(async (request, response) => {
  if (request.url === "/health") return response.end("{}");
  let text = "";
  for await (const part of request) text += part;
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  complete(JSON.parse(text), response).catch((error) => response.destroy(error));
}).listen(port, "127.0.0.1");
process.on("SIGTERM", () => process.exit(0));
