/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// Makes a thread of Node look like a Worker of the web, for which emscripten's code is made.

import { parentPort, workerData } from "node:worker_threads";

Object.assign(globalThis, { self: globalThis, name: workerData, WorkerGlobalScope: Object });

/** Sends to the thread above. */
export function post(message: unknown, transfer: Transferable[] = []): void {
  // deno-lint-ignore no-explicit-any -- Node's types know another MessagePort
  parentPort!.postMessage(message, transfer as any);
}

/** Ends this thread from within; one that held a GPU and is ended from above can take the process with it. */
export function endThread(): void {
  (globalThis as unknown as { close?(): void }).close?.();
}

/** Hears the thread above, and keeps this one alive. */
export function listen<T>(receive: (message: T) => void): void {
  parentPort!.on("message", receive);
}
