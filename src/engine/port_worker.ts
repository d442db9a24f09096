/**
 * The threads of a WASM instance in a Worker, started by the thread above it. Under Deno 2.9 a Worker receives messages from a Worker
 * that it started itself only every half second, so emscripten's `new Worker` becomes a request to the thread above, and
 * the two talk through a port (see thread.ts).
 *
 * @module
 */

import type { Worker as Thread } from "node:worker_threads";
import { startThread } from "./start_thread.ts";

/** From the instance's Worker to the thread above. */
export type ThreadMessage =
  | { op: "thread-start"; id: number; port: MessagePort }
  | { op: "thread-end"; id: number };

/**
 * Turns this Worker's `new Worker` into a request to the thread above.
 *
 * @param post Sends to the thread above.
 */
export function installPortWorkers(
  post: (message: ThreadMessage, transfer?: Transferable[]) => void,
): void {
  let next = 1;
  class PortWorker {
    readonly #id = next++;
    readonly #port: MessagePort;
    onmessage: ((event: MessageEvent) => void) | null = null;
    onerror: ((event: ErrorEvent) => void) | null = null; // the thread above receives errors itself

    constructor() {
      const { port1, port2 } = new MessageChannel();
      this.#port = port1;
      port1.onmessage = (event) => this.onmessage?.(event);
      post({ op: "thread-start", id: this.#id, port: port2 }, [port2]);
    }

    postMessage(message: unknown, transfer: Transferable[] = []): void {
      this.#port.postMessage(message, transfer);
    }

    terminate(): void {
      this.#port.close();
      post({ op: "thread-end", id: this.#id });
    }
  }
  Object.assign(globalThis, { Worker: PortWorker });
  // Deno 2.9 may miss the wake-up of a waitAsync; without waitAsync emscripten posts messages.
  Object.assign(Atomics, { waitAsync: undefined });
}

/** The threads of one instance, held by the thread above its Worker. */
export class ThreadHost {
  readonly #js: string;
  readonly #onError: (message: string) => void;
  readonly #threads = new Map<number, Thread>();

  /**
   * @param js URL of emscripten's module.
   * @param onError Called when an error ends a thread.
   */
  constructor(js: string, onError: (message: string) => void) {
    this.#js = js;
    this.#onError = onError;
  }

  /** Does what a {@linkcode ThreadMessage} asks for. */
  receive(message: ThreadMessage): void {
    if (message.op === "thread-end") {
      this.#threads.get(message.id)?.terminate();
      this.#threads.delete(message.id);
      return;
    }
    const thread = startThread("thread.ts", "em-pthread", this.#onError); // emscripten's code looks for this name
    thread.on(
      "message",
      ({ message }: { op: "thread-error"; message: string }) => this.#onError(message),
    );
    thread.unref(); // the instance's own Worker keeps the process alive while there is work
    // deno-lint-ignore no-explicit-any -- Node's types have a different MessagePort
    thread.postMessage({ port: message.port, js: this.#js }, [message.port as any]);
    this.#threads.set(message.id, thread);
  }

  /** Ends them all. */
  end(): void {
    for (const thread of this.#threads.values()) thread.terminate();
    this.#threads.clear();
  }
}
