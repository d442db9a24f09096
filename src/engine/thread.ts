/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// One thread of the engine. Started by the library's thread, not by the engine's Worker: under Deno 2.9 a Worker hears a
// Worker that it made itself only every half second. The two talk through a port instead.

self.onmessage = async ({ data }: MessageEvent<{ port: MessagePort; js: string }>) => {
  const { port, js } = data;
  const early: MessageEvent[] = [];
  port.onmessage = (event) => early.push(event);
  self.postMessage =
    ((message: unknown, transfer: Transferable[] = []) =>
      port.postMessage(message, transfer)) as typeof self.postMessage;
  self.onmessage = null;
  // Deno 2.9 may sleep through the wake-up of a waitAsync; without it emscripten posts messages.
  Object.assign(Atomics, { waitAsync: undefined });
  await import(js); // sees its name, and listens on self.onmessage
  const deliver = (event: MessageEvent) =>
    (self.onmessage as ((event: MessageEvent) => void) | null)?.(event);
  port.onmessage = deliver;
  early.forEach(deliver);
};
