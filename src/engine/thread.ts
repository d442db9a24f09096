/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// One thread of a WASM instance: emscripten's module behind a port (see port_worker.ts).

import { listen, post } from "./worker_scope.ts";
import { catchUp } from "./catch_up.ts";

listen(async ({ port, js }: { port: MessagePort; js: string }) => {
  const early: MessageEvent[] = [];
  port.onmessage = (event) => early.push(event);
  self.postMessage = ((message: unknown, transfer: Transferable[] = []) =>
    port.postMessage(message, transfer)) as typeof self.postMessage;
  Object.assign(Atomics, { waitAsync: undefined }); // as in port_worker.ts
  await import(js); // sees its name, and listens on self.onmessage
  // An error that gets this far ends the instance. Reported as a message, since Deno would print an uncaught one.
  self.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    const { reason } = event;
    post({
      op: "thread-error",
      message: reason instanceof Error ? reason.message : String(reason),
    });
  });
  self.addEventListener("error", (event) => {
    event.preventDefault();
    post({ op: "thread-error", message: event.message });
  });
  const deliver = (event: MessageEvent) => {
    const memory = event.data?.wasmMemory; // in emscripten's first message, before any pointer
    if (memory instanceof WebAssembly.Memory) {
      catchUp(memory);
    }
    (self.onmessage as ((event: MessageEvent) => void) | null)?.(event);
  };
  port.onmessage = deliver;
  early.forEach(deliver);
});
