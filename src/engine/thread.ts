/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// One thread of a WASM instance: emscripten's module behind a port (see port_worker.ts).

self.onmessage = async ({ data }: MessageEvent<{ port: MessagePort; js: string }>) => {
  const { port, js } = data;
  const early: MessageEvent[] = [];
  const host = self.postMessage.bind(self);
  port.onmessage = (event) => early.push(event);
  self.postMessage =
    ((message: unknown, transfer: Transferable[] = []) =>
      port.postMessage(message, transfer)) as typeof self.postMessage;
  self.onmessage = null;
  Object.assign(Atomics, { waitAsync: undefined }); // as in port_worker.ts
  await import(js); // sees its name, and listens on self.onmessage
  // An error that got this far ends the instance. Told as a message: Deno prints what a Worker dies of.
  self.onunhandledrejection = (event) => {
    event.preventDefault();
    const { reason } = event;
    host({
      op: "thread-error",
      message: reason instanceof Error ? reason.message : String(reason),
    });
  };
  const deliver = (event: MessageEvent) =>
    (self.onmessage as ((event: MessageEvent) => void) | null)?.(event);
  port.onmessage = deliver;
  early.forEach(deliver);
};
