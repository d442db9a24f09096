// Runs node-llama-cpp in Node for _peer.ts: requests on standard input, answers on standard output, one JSON a line.
//
//   node _peer_child.mjs <folder of the package>

import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import process from "node:process";
import { pathToFileURL } from "node:url";

const begin = performance.now();
const { getLlama, LlamaLogLevel } = await import(
  pathToFileURL(`${process.argv[2]}/dist/index.js`).href
);
let llama;
let model;
const contexts = new Map();

/** Peak and present resident bytes, where Linux tells them. */
function memory() {
  const { rss } = process.memoryUsage();
  let peak = rss;
  try {
    peak = 1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
  } catch {
    // not Linux
  }
  return { rss, peak };
}

const ops = {
  async load({ path, mmap = true }) {
    const start = performance.now();
    llama = await getLlama({
      gpu: false,
      build: "never",
      maxThreads: 0,
      logLevel: LlamaLogLevel.error,
      progressLogs: false,
    });
    const engine = performance.now();
    model = await llama.loadModel({ modelPath: path, useMmap: mmap });
    return {
      importMs: start - begin,
      engineMs: engine - start,
      loadMs: performance.now() - engine,
    };
  },
  tokenize: ({ text }) => [...model.tokenize(text, true)],
  async context({ name, nCtx, threads, nBatch = 512 }) {
    await contexts.get(name)?.context.dispose();
    const context = await model.createContext({
      contextSize: nCtx,
      batchSize: nBatch,
      threads,
      sequences: 1,
    });
    contexts.set(name, { context, sequence: context.getSequence() });
    return { nCtx: context.contextSize, threads: context.currentThreads };
  },
  /** The likeliest continuation of `tokens`, until the model ends or `n` tokens. */
  async greedy({ name, tokens, n }) {
    const { sequence } = contexts.get(name);
    await sequence.clearHistory();
    const out = [];
    let firstMs = 0;
    const start = performance.now();
    for await (const token of sequence.evaluate(tokens, { temperature: 0 })) {
      firstMs ||= performance.now() - start;
      if (model.isEogToken(token)) break;
      out.push(token);
      if (out.length >= n) break;
    }
    return { tokens: out, text: model.detokenize(out), firstMs };
  },
  /** After each of `tokens` from place `from` on: the `top` likeliest tokens with their log probabilities. */
  async score({ name, tokens, from, top }) {
    const { sequence } = contexts.get(name);
    await sequence.clearHistory();
    const all = { temperature: 1, topK: 0, topP: 1, minP: 0 };
    const input = tokens.map((token, i) =>
      i < from ? token : [token, { generateNext: { probabilities: true, options: all } }]
    );
    const out = await sequence.controlledEvaluate(input);
    return out.slice(from).map(({ next }) =>
      [...next.probabilities].sort((a, b) => b[1] - a[1]).slice(0, top)
        .map(([token, p]) => ({ token, logprob: Math.log(p) }))
    );
  },
  /** Milliseconds for a prompt of tokens and for `tg` single tokens after it. */
  async measure({ name, tokens, tg }) {
    const { sequence } = contexts.get(name);
    await sequence.clearHistory();
    const start = performance.now();
    await sequence.evaluateWithoutGeneratingNewTokens(tokens);
    const prompt = performance.now();
    const generated = sequence.evaluate([tokens[0]], { temperature: 0, yieldEogToken: true });
    for (let i = 0; i < tg; i++) if ((await generated.next()).done) throw new Error("ended early");
    const end = performance.now();
    await generated.return();
    return { promptMs: prompt - start, predictedMs: end - prompt };
  },
  memory,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, op, ...fields } = JSON.parse(line);
  let answer;
  try {
    answer = { id, result: await ops[op](fields) };
  } catch (error) {
    answer = { id, error: String(error?.message ?? error) };
  }
  process.stdout.write(`@${JSON.stringify(answer)}\n`);
}
await llama?.dispose();
process.exit(0);
