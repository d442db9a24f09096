/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// Makes a Node thread look like a web Worker, which emscripten's code expects.

import { parentPort, workerData } from "node:worker_threads";

Object.assign(globalThis, { self: globalThis, name: workerData, WorkerGlobalScope: Object });

/** Sends to the thread above. */
export function post(message: unknown, transfer: Transferable[] = []): void {
  // deno-lint-ignore no-explicit-any -- Node's types have a different MessagePort
  parentPort!.postMessage(message, transfer as any);
}

/** Ends this thread from within: if it held a GPU, ending it from above can crash the process. */
export function endThread(): void {
  (globalThis as unknown as { close?(): void }).close?.();
}

/** Receives messages from the thread above, and keeps this one alive. */
export function listen<T>(receive: (message: T) => void): void {
  parentPort!.on("message", receive);
}
