/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// Runs llama.cpp's test-backend-ops once, with a GPU; sends its lines.

import type { GpuChoice } from "../../gpu/device.ts";
import { GpuHost, type GpuInstance } from "../../gpu/host.ts";
import { installPortWorkers } from "../../src/engine/port_worker.ts";

interface Instance extends GpuInstance {
  callMain(args: string[]): void;
}

self.onmessage = async (
  { data }: MessageEvent<{ js: string; args: string[]; gpu: GpuChoice }>,
) => {
  const post = (message: unknown, transfer: Transferable[] = []) =>
    self.postMessage(message, transfer);
  installPortWorkers(post);
  const gpu = await GpuHost.open(data.gpu, (reason) => post({ op: "abort", reason }));
  if (!(gpu instanceof GpuHost)) return post({ op: "no-gpu", why: gpu.why });
  const { default: create } = await import(data.js);
  const line = (text: string) => post({ op: "line", line: text });
  const instance: Instance = await create({
    noInitialRun: true,
    mainScriptUrlOrBlob: data.js,
    locateFile: (name: string) => new URL(name, data.js).href,
    print: line,
    printErr: line,
    onAbort: (reason: unknown) => post({ op: "abort", reason: String(reason) }),
    onExit(code: number) {
      post({ op: "end", code, counts: gpu.counts });
      gpu.dispose();
    },
    rys: {
      event() {},
      read() {},
      gpu: (job: number | bigint, words: number, n: number, waits: number) =>
        gpu.run(job, words, n, Boolean(waits)),
    },
  });
  gpu.attach(instance);
  post({ op: "gpu", info: gpu.info, readback: gpu.readback });
  instance.callMain(data.args);
};
