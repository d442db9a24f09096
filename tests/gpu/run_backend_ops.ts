import type { GpuChoice, GpuInfo } from "../../gpu/device.ts";
import type { GpuCounts } from "../../gpu/executor.ts";
import { ThreadHost, type ThreadMessage } from "../../src/engine/port_worker.ts";

/** Where `deno task build --backend-ops` puts the program. */
const JS = new URL("../../wasm/backend-ops/rys-backend-ops.js", import.meta.url).href;

type Message =
  | ThreadMessage
  | { op: "line"; line: string }
  | { op: "gpu"; info: GpuInfo; readback: string }
  | { op: "no-gpu"; why: string }
  | { op: "abort"; reason: string }
  | { op: "end"; code: number; counts: GpuCounts };

/** What test-backend-ops said. */
export interface BackendOpsRun {
  /** The GPU, or undefined if there is none. */
  gpu?: GpuInfo;
  /** Why there is none. */
  why?: string;
  /** Lines of its output. */
  lines: string[];
  /** What the bridge did. */
  counts?: GpuCounts;
  /** Its exit code; -1 if it never ended. */
  code: number;
  /** Why it ended early. */
  aborted?: string;
}

/**
 * Runs llama.cpp's test-backend-ops inside the WASM on an adapter.
 *
 * @param args Its arguments, e.g. `["test", "-o", "MUL_MAT"]`.
 * @param options The adapter, a limit in seconds, a listener.
 */
export async function runBackendOps(
  args: string[],
  options: {
    gpu?: GpuChoice;
    seconds?: number;
    onLine?: (line: string) => void;
  } = {},
): Promise<BackendOpsRun> {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const { promise, resolve } = Promise.withResolvers<void>();
  const run: BackendOpsRun = { lines: [], code: -1 };
  const abort = (why: string) => {
    run.aborted ??= why;
    resolve();
  };
  const threads = new ThreadHost(JS, (message) => setTimeout(abort, 200, message));
  const timer = options.seconds
    ? setTimeout(abort, options.seconds * 1000, `not done after ${options.seconds} s`)
    : undefined;
  worker.onerror = (event) => {
    event.preventDefault();
    abort(event.message);
  };
  worker.onmessage = ({ data }: MessageEvent<Message>) => {
    switch (data.op) {
      case "thread-start":
      case "thread-end":
        return threads.receive(data);
      case "line":
        run.lines.push(data.line);
        return options.onLine?.(data.line);
      case "gpu":
        run.gpu = data.info;
        return;
      case "no-gpu":
        run.why = data.why;
        return resolve();
      case "abort":
        return abort(data.reason);
      case "end":
        run.code = data.code;
        run.counts = data.counts;
        return resolve();
    }
  };
  worker.postMessage({ js: JS, args, gpu: options.gpu ?? { mode: "required" } });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    worker.terminate();
    threads.end();
  }
  return run;
}

if (import.meta.main) {
  const run = await runBackendOps(Deno.args, { onLine: (line) => console.log(line) });
  if (run.why) console.error(`skipped: no WebGPU adapter (${run.why})`);
  if (run.aborted) console.error(`aborted: ${run.aborted}`);
  console.error(run.counts);
  Deno.exit(run.code === 0 ? 0 : 1);
}
