/**
 * The library's half of the engine: starts the Worker, sends calls, passes on their events.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import type { GpuChoice } from "../../gpu/device.ts";
import { holdDriver } from "../../gpu/driver_env.ts";
import type { GpuCounts } from "../../gpu/executor.ts";
import {
  type EngineCall,
  type EngineGpu,
  EventKind,
  type FileSource,
  type FromEngine,
  MAX_REQUESTS,
  type ToEngine,
} from "./protocol.ts";
import type { Worker as Thread } from "node:worker_threads";
import { readBuildJson } from "./dist.ts";
import type { Gate } from "./gate.ts";
import { ThreadHost } from "./port_worker.ts";
import { startThread } from "./start_thread.ts";

/** An error from the engine: a request that failed, or an instance that is gone. */
export class EngineError extends Error {
  /** `"EngineError"`. */
  override name = "EngineError";
  /** True when the whole instance is gone: its model and contexts no longer answer. */
  readonly fatal: boolean;
  /** llama-server's error type, where the engine's own request handling refused. */
  readonly type?: string;
  /** HTTP status that llama-server gives for it. */
  readonly status?: number;
  /** Further fields of llama-server's error, e.g. `n_prompt_tokens` and `n_ctx`. */
  readonly details?: Record<string, unknown>;

  /**
   * Makes an error.
   *
   * @param message What was attempted and what was wrong.
   * @param options Where the error comes from.
   */
  constructor(
    message: string,
    options: {
      fatal?: boolean;
      type?: string;
      status?: number;
      details?: Record<string, unknown>;
    } = {},
  ) {
    super(message);
    this.fatal = options.fatal ?? false;
    if (options.type !== undefined) this.type = options.type;
    if (options.status !== undefined) this.status = options.status;
    if (options.details !== undefined) this.details = options.details;
  }
}

/** JSON that the engine can read: in text, U+FFFD takes the place of what is not valid Unicode. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_, v) => typeof v === "string" ? v.toWellFormed() : v);
}

/** Receives the events of one call. */
export interface CallEvents {
  progress?(mille: number): void;
  head?(status: number, contentType: string): void;
  chunk?(bytes: Uint8Array): void;
}

/** End of a call: a handle or 0, and JSON or nothing. */
export interface CallResult {
  handle: number;
  text: string;
}

interface Pending {
  events: CallEvents;
  /** Cancel flag. */
  slot: number;
  /** What a callback threw; the call fails with it. */
  thrown?: { error: unknown };
  resolve(result: CallResult): void;
  reject(error: Error): void;
}

interface MemAnswer {
  bytes?: Uint8Array | null;
  heap?: number;
  counts?: GpuCounts & { recorded: number } | null;
}

/** A file that the engine is to read: by its path in the Worker, or through `read` in the library's thread. */
export interface EngineFile {
  size: number;
  path?: string;
  read?(offset: number, n: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** Options of {@linkcode EngineClient.start}. */
export interface EngineStartOptions {
  /** Folder URL of `rys.js`, `rys.wasm` and `build.json`. */
  dist: URL;
  /** llama.cpp's verbosity, 0 to 5. */
  verbosity: number;
  /** Workers to start along with the instance. */
  threads: number;
  /** How to look for a GPU. Default: not at all. */
  gpu?: GpuChoice;
  /** Receives llama.cpp's log lines; levels are ggml's (2 info, 3 warning, 4 error). */
  onLog?: (level: number, line: string) => void;
}

/** How long an ending process waits for its GPU device to be released. */
const DROP_GPU_LIMIT_MS = 1000;

/** One WASM instance in its Worker. */
export class EngineClient {
  #worker: Thread;
  #port: MessagePort;
  #threads: ThreadHost;
  #pending = new Map<number, Pending>();
  #mem = new Map<number, (answer: MemAnswer | undefined) => void>();
  #gpu: EngineGpu = { why: "not started" };
  #sources = new Map<number, EngineFile>();
  #nextReq = 1;
  #nextFile = 1;
  #flags!: Int32Array;
  #dead: Int32Array | undefined;
  #started = false;
  #slots: number[] = [];
  #gone: EngineError | undefined;
  #closing: Promise<void> | undefined;
  #closed = Promise.withResolvers<void>();
  #ready = Promise.withResolvers<void>();
  #readError: string | undefined;
  #onLog: ((level: number, line: string) => void) | undefined;
  /** Whether the Worker looked for a GPU, and so loaded a driver. */
  readonly #looksForGpu: boolean;

  private constructor(options: EngineStartOptions) {
    this.#onLog = options.onLog;
    const { mode, provider } = options.gpu ?? { mode: "off" };
    this.#looksForGpu = mode !== "off" && !provider;
    this.#threads = new ThreadHost(
      new URL("rys.js", options.dist).href,
      // An assertion's text arrives through the engine's Worker, a moment after the thread's bare error.
      (message) => setTimeout(() => this.#fail(message), 200),
    );
    this.#worker = startThread("worker.ts", "rys-engine", (message) => this.#fail(message));
    const { port1, port2 } = new MessageChannel(); // Deno 2.9 takes 0.1 s to send a MiB to a Node thread directly
    this.#port = port1;
    port1.onmessage = ({ data }: MessageEvent<FromEngine>) => this.#receive(data);
    (port1 as MessagePort & { unref(): void }).unref(); // the thread itself keeps the process alive
    // deno-lint-ignore no-explicit-any -- Node's types have a different MessagePort
    this.#worker.postMessage(port2, [port2 as any]);
    this.#ready.promise.catch(() => {});
    for (let slot = MAX_REQUESTS - 1; slot >= 0; slot--) this.#slots.push(slot);
  }

  /** Starts an instance. */
  static async start(options: EngineStartOptions): Promise<EngineClient> {
    const id = await buildId(options.dist);
    const client = new EngineClient(options);
    client.#post({
      op: "init",
      js: new URL("rys.js", options.dist).href,
      wasm: new URL("rys.wasm", options.dist).href,
      buildId: id,
      verbosity: options.verbosity,
      threads: options.threads,
      gpu: options.gpu ?? { mode: "off" },
    });
    await client.#ready.promise;
    client.#hold();
    return client;
  }

  /**
   * Makes sources readable as files of the engine: one file, or the shards of a split model in order.
   *
   * @returns The name of the first file there.
   */
  addFiles(sources: EngineFile[]): string {
    const first = this.#nextFile;
    for (const source of sources) {
      const file: FileSource = { id: this.#nextFile++, size: source.size };
      if (source.path !== undefined) file.path = source.path;
      this.#sources.set(file.id, source);
      this.#post({ op: "file", file });
    }
    // The form upstream expects of a split model; see rys-file.cpp.
    const n = String(sources.length).padStart(5, "0");
    return `/rys/file/${first}${sources.length > 1 ? `-00001-of-${n}.gguf` : ""}`;
  }

  /**
   * Makes a call and waits for its end.
   *
   * @param call The call; `cancel` is filled in here.
   * @param events Receives what comes before the end.
   * @param signal Stops the call within one token or one micro-batch.
   * @param gate Where the call waits for its turn.
   */
  async call(
    call: EngineCall,
    events: CallEvents = {},
    signal?: AbortSignal,
    gate?: Gate,
  ): Promise<CallResult> {
    this.#check();
    signal?.throwIfAborted();
    const slot = this.#slots.pop();
    if (slot === undefined) {
      throw new EngineError(`more than ${MAX_REQUESTS} requests at once`, {
        type: "unavailable_error",
        status: 503,
      });
    }
    // Written to shared memory: reaches the engine's threads even while its Worker is busy.
    const abort = () => void Atomics.store(this.#flags, slot, 1);
    try {
      const wait = gate?.enter(signal);
      if (wait) await wait;
      try {
        this.#check();
        signal?.throwIfAborted();
        Atomics.store(this.#flags, slot, 0);
        signal?.addEventListener("abort", abort);
        if ("cancel" in call) call.cancel = slot;
        return await this.#send(call, events, slot);
      } finally {
        gate?.leave();
      }
    } catch (error) {
      if (error instanceof EngineError && error.fatal) throw error;
      throw signal?.aborted ? signal.reason : error;
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#slots.push(slot);
    }
  }

  async #send(call: EngineCall, events: CallEvents, slot: number): Promise<CallResult> {
    const req = this.#nextReq++;
    const { promise, resolve, reject } = Promise.withResolvers<CallResult>();
    const pending: Pending = { events, slot, resolve, reject };
    this.#pending.set(req, pending);
    this.#hold();
    this.#readError = undefined;
    this.#post({ op: "call", req, call });
    try {
      const result = await promise;
      if (pending.thrown) throw pending.thrown.error;
      return result;
    } catch (error) {
      if (pending.thrown) throw pending.thrown.error;
      // What upstream makes of a failed read names the consequence, not the cause.
      const reads = call.fn === "model_load" || call.fn === "context_create";
      throw reads && this.#readError && !this.#gone ? new EngineError(this.#readError) : error;
    } finally {
      this.#pending.delete(req);
      this.#hold();
    }
  }

  /** Keeps the process alive while an answer is awaited, but no longer. */
  #hold(): void {
    if (this.#pending.size + this.#mem.size > 0) this.#worker.ref();
    else this.#worker.unref();
  }

  /** A process that ends while a thread holds a GPU device can crash under Deno 2.9, so the device goes first. */
  #dropGpu = () => {
    if (this.#looksForGpu) holdDriver();
    const done = new SharedArrayBuffer(4);
    this.#post({ op: "drop-gpu", done });
    Atomics.wait(new Int32Array(done), 0, 0, DROP_GPU_LIMIT_MS);
  };

  #check(): void {
    if (this.#gone) throw this.#gone;
    if (this.#closing) throw new EngineError("the model is disposed");
  }

  /** Puts bytes where the engine finds them as file `name`. */
  async putMem(name: string, bytes: Uint8Array): Promise<void> {
    await this.#memCall((req) => ({ op: "mem-put", req, name, bytes }));
  }

  /** Takes what the engine wrote to file `name`, or null. */
  async takeMem(name: string): Promise<Uint8Array | null> {
    return (await this.#memCall((req) => ({ op: "mem-take", req, name }))).bytes ?? null;
  }

  /** Bytes of memory that the instance has taken from the host. */
  async heapBytes(): Promise<number> {
    return (await this.#memCall((req) => ({ op: "heap", req }))).heap!;
  }

  /** What the GPU bridge did so far; null on the CPU. */
  async gpuCounts(): Promise<GpuCounts & { recorded: number } | null> {
    return (await this.#memCall((req) => ({ op: "gpu-counts", req }))).counts ?? null;
  }

  /** The GPU that computes, or why the CPU does. */
  get gpu(): EngineGpu {
    return this.#gpu;
  }

  async #memCall(message: (req: number) => ToEngine): Promise<MemAnswer> {
    this.#check();
    const req = this.#nextReq++;
    const { promise, resolve, reject } = Promise.withResolvers<MemAnswer>();
    this.#mem.set(req, (answer) => answer ? resolve(answer) : reject(this.#gone));
    this.#hold();
    this.#post(message(req));
    try {
      return await promise;
    } finally {
      this.#mem.delete(req);
      this.#hold();
    }
  }

  /** Stops the calls under way, then ends the Worker. Harmless if it is already gone. */
  close(): Promise<void> {
    return this.#closing ??= (async () => {
      for (const { slot } of this.#pending.values()) Atomics.store(this.#flags, slot, 1);
      while (!this.#gone && this.#pending.size + this.#mem.size > 0) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      if (this.#gone) return;
      if (this.#looksForGpu) holdDriver();
      this.#worker.ref();
      this.#post({ op: "close" });
      await this.#closed.promise;
    })();
  }

  /**
   * Ends the instance at once, whatever it is doing: for one that does not end by itself.
   *
   * @param why The reason that calls under way reject with.
   */
  kill(why: string): void {
    this.#fail(why);
  }

  /** The error that ended the instance, if any. */
  get gone(): EngineError | undefined {
    return this.#gone;
  }

  #post(message: ToEngine): void {
    this.#port.postMessage(message);
  }

  #fail(message: string): void {
    if (this.#gone) return;
    const what = this.#started ? "the engine's instance is gone" : "Cannot start the engine";
    this.#gone = new EngineError(`${what}: ${message.trim()}`, { fatal: true });
    this.#ready.reject(this.#gone);
    for (const { reject } of [...this.#pending.values()]) reject(this.#gone);
    for (const settle of [...this.#mem.values()]) settle(undefined);
    this.#closed.resolve();
    globalThis.removeEventListener("unload", this.#dropGpu);
    this.#port.close();
    if (this.#looksForGpu) holdDriver();
    this.#worker.terminate();
    // A thread that waits or computes cannot be ended and would keep the memory: let them all stop first.
    if (!this.#dead) return this.#threads.end();
    Atomics.store(this.#dead, 0, 1);
    for (let slot = 0; slot < MAX_REQUESTS; slot++) Atomics.store(this.#flags, slot, 1);
    this.#dead = undefined;
    this.#flags = new Int32Array(MAX_REQUESTS); // releases the instance's memory
    Deno.unrefTimer(setTimeout(() => this.#threads.end(), 700));
  }

  #receive(message: FromEngine): void {
    switch (message.op) {
      case "ready":
        this.#flags = new Int32Array(message.memory, message.flags, MAX_REQUESTS);
        this.#dead = new Int32Array(message.memory, message.dead, 1);
        this.#started = true;
        this.#gpu = message.gpu;
        if ("info" in message.gpu) globalThis.addEventListener("unload", this.#dropGpu);
        return this.#ready.resolve();
      case "event":
        return this.#event(message.req, message.kind, message.aux, message.data);
      case "read":
        return void this.#read(message.token, message.id, message.offset, message.n);
      case "mem":
        return this.#mem.get(message.req)?.({ bytes: message.bytes });
      case "heap":
        return this.#mem.get(message.req)?.({ heap: message.bytes });
      case "gpu-counts":
        return this.#mem.get(message.req)?.({ counts: message.counts });
      case "read-failed":
        this.#readError = `Cannot read ${message.path}: ${message.reason}`;
        return;
      case "thread-start":
      case "thread-end":
        return this.#gone ? undefined : this.#threads.receive(message);
      case "fatal":
        return this.#fail(message.message);
      case "closed":
        globalThis.removeEventListener("unload", this.#dropGpu);
        if ("info" in this.#gpu) return void this.#ended().then(() => this.#close());
        return this.#close();
    }
  }

  /** Waits for the thread's end, but at most half a second. */
  #ended(): Promise<void> {
    return new Promise((resolve) => {
      const limit = setTimeout(resolve, 500);
      this.#worker.once("exit", () => {
        clearTimeout(limit);
        resolve();
      });
    });
  }

  #close(): void {
    this.#port.close();
    this.#worker.terminate();
    this.#threads.end();
    this.#gone ??= new EngineError("the model is disposed");
    for (const { reject } of [...this.#pending.values()]) reject(this.#gone);
    this.#closed.resolve();
  }

  /** Passes on a line of the log. */
  log(level: number, line: string): void {
    try {
      this.#onLog?.(level, line);
    } catch {
      // a log line belongs to no call that could fail with it
    }
  }

  #event(req: number, kind: number, aux: number, data: Uint8Array): void {
    const text = () => new TextDecoder().decode(data);
    if (kind === EventKind.Log) return this.log(aux, text());
    const pending = this.#pending.get(req);
    if (!pending) return;
    try {
      switch (kind) {
        case EventKind.Progress:
          return pending.events.progress?.(aux);
        case EventKind.Head:
          return pending.events.head?.(aux, text());
        case EventKind.Chunk:
          return pending.events.chunk?.(data);
      }
    } catch (error) {
      pending.thrown ??= { error };
      return void Atomics.store(this.#flags, pending.slot, 1);
    }
    switch (kind) {
      case EventKind.Done:
        return pending.resolve({ handle: aux, text: text() });
      case EventKind.Error:
        return pending.reject(new EngineError(ofArgument(this.#withPaths(text()))));
    }
  }

  /** A message with the host's file names. */
  #withPaths(message: string): string {
    return message.replaceAll(
      /\/rys\/file\/(\d+)(-\d+-of-\d+\.gguf)?/g,
      (name, id) => this.#sources.get(Number(id))?.path ?? name,
    );
  }

  async #read(token: number, id: number, offset: number, n: number): Promise<void> {
    let bytes: Uint8Array<ArrayBuffer> | null = null;
    try {
      bytes = await this.#sources.get(id)?.read?.(offset, n) ?? null;
    } catch (error) {
      this.#readError = `Cannot read the model: ${(error as Error)?.message ?? error}`;
    }
    this.#post({ op: "read-done", token, bytes });
  }
}

/** The build's id. */
async function buildId(dist: URL): Promise<string> {
  const url = new URL("build.json", dist);
  const place = url.protocol === "file:" ? fileURLToPath(url) : url.href;
  let what = `there is no built WASM at ${place}`;
  const build = await readBuildJson(dist).catch(() => null);
  if (build) return build.id;
  if (build === undefined) what = `${place} is damaged`;
  throw new EngineError(`Cannot start the engine: ${what}; run "deno task build" once`);
}

/** What llama.cpp says about an argument, without its usage text. */
function ofArgument(message: string): string {
  const [, flag, what] =
    /error while handling argument "([^"]+)": ([^]*?)\s*\busage:/.exec(message) ?? [];
  return flag === undefined ? message : `${flag}: ${what}`;
}
