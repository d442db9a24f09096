/**
 * A GPU provider that measures the host's part: the time in the executor, and that spent waiting for results. The query
 * says whose device it is: `?device=recording`, or the adapter's without. The rest of the query goes to the recording
 * device.
 *
 * @module
 */

import type { GpuProvider } from "../gpu/device.ts";
import { Executor } from "../gpu/executor.ts";
import { Readback } from "../gpu/readback.ts";
import { HOST_TIME, type HostTime } from "./_host_time.ts";

const { searchParams } = new URL(import.meta.url);

async function provider(): Promise<GpuProvider> {
  if (searchParams.get("device") !== "recording") return navigator.gpu;
  const url = new URL("../tests/gpu/recording_device.ts", import.meta.url);
  for (const [name, value] of searchParams) {
    if (name !== "device") url.searchParams.set(name, value);
  }
  return (await import(url.href)).gpu;
}

/** What stands in for `navigator.gpu`. */
export const gpu: GpuProvider = await provider();

const time: HostTime = { executorMs: 0, waitMs: 0, thread: ownThread() };

function ownThread(): number {
  try {
    return Number(Deno.readLinkSync("/proc/thread-self").split("/").at(-1));
  } catch {
    return 0; // not Linux
  }
}

const run = Executor.prototype.run;
Executor.prototype.run = function (at, n) {
  const start = performance.now();
  try {
    return run.call(this, at, n);
  } finally {
    time.executorMs += performance.now() - start;
  }
};

const read = Readback.prototype.read;
Readback.prototype.read = function (buffer, offset, dst) {
  const start = performance.now();
  try {
    return read.call(this, buffer, offset, dst);
  } finally {
    time.waitMs += performance.now() - start;
  }
};

// A software adapter computes in it.
if ("GPUQueue" in globalThis) {
  const submit = GPUQueue.prototype.submit;
  GPUQueue.prototype.submit = function (commands) {
    const start = performance.now();
    try {
      return submit.call(this, commands);
    } finally {
      time.waitMs += performance.now() - start;
    }
  };
}

const channel = new BroadcastChannel(HOST_TIME);
channel.onmessage = ({ data }) => {
  if (data === "ask") channel.postMessage(time);
};
