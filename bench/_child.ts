// One engine of ours in a process of its own: requests on standard input, answers on standard output, as
// tests/models/_line_child.ts speaks them. The peer's counterpart is tests/models/_peer_child.mjs.

import { type Context, loadModel, type LoadModelOptions, type Model } from "@rys/edge";
import { HOST_TIME, type HostTime } from "./_host_time.ts";

interface Request {
  op: string;
  path: string;
  dist?: string;
  gpu?: LoadModelOptions["gpu"];
  gpuBridge?: LoadModelOptions["gpuBridge"];
  repack?: boolean;
  name: string;
  plan?: string;
  nCtx: number;
  threads: number;
  tokens: number[];
  tg: number;
}

let model: Model | undefined;
const contexts = new Map<string, Context>();

const OPS: Record<string, (request: Request) => unknown> = {
  async load({ path, dist, gpu = "off", gpuBridge, repack }) {
    const start = performance.now();
    model = await loadModel(path, {
      gpu,
      gpuBridge,
      repack,
      ...dist ? { dist: new URL(dist) } : {},
    });
    const { modelBytes, nLayer, nVocab, desc } = model.info;
    const info = { modelBytes, nLayer, nVocab, desc, gpu: model.info.gpu };
    return { loadMs: performance.now() - start, ...info };
  },
  async context({ name, plan = "none", nCtx, threads }) {
    await contexts.get(name)?.dispose();
    const context = await model!.createContext({
      repeatLayers: plan,
      nCtx,
      threads,
      nParallel: 1,
    });
    contexts.set(name, context);
    const { kvBytes, computeBytes } = context.info;
    return { nLayerEff: context.info.plan.nLayerEff, kvBytes, computeBytes };
  },
  /** Milliseconds for a prompt of tokens and for `tg` single tokens after it. */
  async measure({ name, tokens, tg }) {
    const { timings } = await contexts.get(name)!.generate(tokens, {
      maxTokens: tg + 1, // the first comes from the prompt's own logits
      temperature: 0,
      ignoreEos: true,
      cachePrompt: false,
    }).completion();
    if (timings.promptTokens !== tokens.length || timings.predictedTokens !== tg + 1) {
      throw new Error(`asked for ${tokens.length} and ${tg + 1}, got ${JSON.stringify(timings)}`);
    }
    return { promptMs: timings.promptMs, predictedMs: timings.predictedMs };
  },
  /** What the GPU bridge did, and processor time by thread in milliseconds, so far; host time needs `_timed_gpu.ts`. */
  async spent() {
    return {
      counts: await model!.gpuCounts(),
      threads: threadTimes(),
      host: await hostTime(),
    };
  },
  async memory() {
    const { rss } = Deno.memoryUsage();
    let peak = rss;
    try {
      const status = Deno.readTextFileSync("/proc/self/status");
      peak = 1024 * Number(/VmHWM:\s*(\d+)/.exec(status)![1]);
    } catch {
      // not Linux
    }
    return { rss, peak, heap: model ? await model.heapBytes() : 0 };
  },
};

let channel: BroadcastChannel | undefined;

function hostTime(): Promise<HostTime> {
  const asked = channel ??= new BroadcastChannel(HOST_TIME);
  return new Promise((resolve) => {
    asked.onmessage = ({ data }) => resolve(data);
    asked.postMessage("ask");
  });
}

/** By the operating system's number of the thread: its name and its time. */
function threadTimes(): Record<string, [name: string, ms: number]> {
  const times: Record<string, [string, number]> = {};
  const tasks = "/proc/self/task";
  for (const { name } of Deno.readDirSync(tasks)) {
    try {
      const ns = Deno.readTextFileSync(`${tasks}/${name}/schedstat`).split(" ")[0];
      times[name] = [Deno.readTextFileSync(`${tasks}/${name}/comm`).trim(), Number(ns) / 1e6];
    } catch {
      // ended meanwhile
    }
  }
  return times;
}

const encoder = new TextEncoder();
let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop()!;
  for (const line of lines) {
    const { id, ...request } = JSON.parse(line);
    let answer: unknown;
    try {
      answer = { id, result: await OPS[request.op]!(request) };
    } catch (error) {
      answer = { id, error: error instanceof Error ? error.message : String(error) };
    }
    await Deno.stdout.write(encoder.encode(`@${JSON.stringify(answer)}\n`));
  }
}
await model?.dispose();
Deno.exit(0);
