/// <reference no-default-lib="true" />
/// <reference lib="deno.worker" />

// The engine's Worker: owns the WASM instance and serves its event loop. It never waits: long work runs on the
// instance's own threads, which come back to this Worker for the host's files.

import { endThread, listen } from "./worker_scope.ts";
import { compileWasm } from "./dist.ts";
import { installPortWorkers } from "./port_worker.ts";
import { closeSync, openSync, readSync } from "node:fs";
import { GpuHost, type GpuInstance } from "../../gpu/host.ts";
import {
  EventKind,
  type FileSource,
  type FromEngine,
  MAX_REQUESTS,
  type ToEngine,
} from "./protocol.ts";

type Pointer = number | bigint;
type Export = (...args: (number | bigint)[]) => number | bigint | undefined;

interface Instance {
  wasmMemory: WebAssembly.Memory;
  PThread?: { pthreads: Record<string, unknown>; terminateAllThreads(): void };
  [name: `_${string}`]: Export;
}

/** The functions that the WASM calls in this Worker. */
interface WasmImports {
  event(req: number, kind: number, aux: number, data: number, n: number): void;
  read(ctx: Pointer, result: Pointer, id: number, dst: number, n: number, offset: number): void;
  gpu(job: Pointer, words: number, n: number, waits: boolean): void;
}

let port: MessagePort;
const post = (message: FromEngine, transfer: Transferable[] = []) =>
  port.postMessage(message, transfer);

let instance: Instance;
let wide = true; // memory64: pointers of our own exports are bigint
const files = new Map<number, { source: FileSource; fd: number }>();
const reads = new Map<number, (bytes: Uint8Array | null) => void>();
let nextRead = 1;
let flags = 0;
let gpu: GpuHost | null = null;

const ptr = (at: number): Pointer => wide ? BigInt(at) : at;
const bytesAt = (at: number, n: number) => new Uint8Array(instance.wasmMemory.buffer, at, n);

function call(name: string, ...args: (number | bigint)[]): number {
  return Number(instance[`_rys_${name}`]!(...args));
}

function allocate(bytes: Uint8Array): number {
  const at = Number(instance._malloc!(bytes.length || 1));
  if (!at) throw new Error(`out of memory: ${bytes.length} bytes for a request`);
  bytesAt(at, bytes.length).set(bytes);
  return at;
}

/** Runs `use` with copies of the arguments in the instance's memory; C++ copies what it keeps. */
function withBytes(parts: (string | Uint8Array)[], use: (...at: Pointer[]) => void): void {
  const at = parts.map((part) =>
    allocate(typeof part === "string" ? new TextEncoder().encode(part + "\0") : part)
  );
  try {
    use(...at.map(ptr));
  } finally {
    for (const a of at) instance._free!(a);
  }
}

const words = (array: Uint32Array | Int32Array) =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

const host: WasmImports = {
  event(req, kind, aux, data, n) {
    const copy = new Uint8Array(n);
    copy.set(bytesAt(data, n));
    if (kind === EventKind.Fatal) post({ op: "fatal", message: new TextDecoder().decode(copy) });
    else post({ op: "event", req, kind, aux, data: copy }, [copy.buffer]);
  },
  read(ctx, result, id, dst, n, offset) {
    const done = (got: number) => call("file_done", ctx as bigint, result as bigint, got);
    const file = files.get(id);
    if (!file) return void done(-1);
    if (file.source.path !== undefined) {
      let got = -1;
      try {
        if (file.fd < 0) file.fd = openSync(file.source.path, "r");
        got = readSync(file.fd, bytesAt(dst, n), 0, n, offset);
        if (got === 0) throw new Error(`it ended at byte ${offset} of ${file.source.size}`);
      } catch (error) {
        got = -1;
        const reason = (error as Error).message;
        post({ op: "read-failed", path: file.source.path, reason });
      }
      return void done(got);
    }
    // The thread that asked sleeps until the library's thread has answered.
    const token = nextRead++;
    reads.set(token, (bytes) => {
      reads.delete(token);
      if (bytes) bytesAt(dst, bytes.length).set(bytes);
      done(bytes ? bytes.length : -1);
    });
    post({ op: "read", token, id, offset, n: Math.min(n, 1 << 24) });
  },
  gpu(job, words, n, waits) {
    gpu!.run(job, words, n, Boolean(waits));
  },
};

async function init(message: Extract<ToEngine, { op: "init" }>): Promise<void> {
  installPortWorkers(post);
  const opening = GpuHost.open(message.gpu, (text) => post({ op: "fatal", message: text }));
  opening.catch(() => {}); // handled below
  const [module, { default: create }] = await Promise.all([
    compileWasm(new URL(message.wasm)),
    import(message.js),
  ]).catch((error) => {
    throw new Error(`the built WASM is damaged (${error.message}); run "deno task build --force"`);
  });
  const opened = await opening;
  if (opened instanceof GpuHost) gpu = opened;
  else if (message.gpu.mode === "required") throw new Error(`a GPU is required: ${opened.why}`);
  instance = await create({
    rys: host,
    rysThreads: message.threads,
    mainScriptUrlOrBlob: message.js,
    locateFile: (name: string) => new URL(name, message.js).href,
    instantiateWasm(
      imports: WebAssembly.Imports,
      ready: (i: WebAssembly.Instance, m: WebAssembly.Module) => void,
    ) {
      WebAssembly.instantiate(module, imports).then((i) => ready(i, module));
      return {};
    },
    // Some of upstream's code writes to the terminal; here that becomes a line of the log.
    print: (line: string) => log(2, line),
    printErr: (line: string) => log(3, line),
    onAbort: (reason: unknown) => post({ op: "fatal", message: String(reason) }),
  });
  const idAt = instance._rys_build_id!();
  wide = typeof idAt === "bigint";
  const id = text(Number(idAt));
  if (id !== message.buildId) {
    throw new Error(
      `the WASM is from build ${id}, this package from build ${message.buildId}: run "deno task build"`,
    );
  }
  gpu?.attach(instance as unknown as GpuInstance);
  flags = allocate(new Uint8Array(4 * MAX_REQUESTS));
  call("init", message.verbosity);
  post({
    op: "ready",
    memory: instance.wasmMemory.buffer as unknown as SharedArrayBuffer,
    flags,
    dead: call("dead_at"),
    gpu: opened instanceof GpuHost ? { info: opened.info, readback: opened.readback } : opened,
  });
}

function log(level: number, line: string): void {
  const data = new TextEncoder().encode(line);
  post({ op: "event", req: 0, kind: EventKind.Log, aux: level, data });
}

function text(at: number): string {
  const memory = bytesAt(at, 256);
  const copy = memory.slice(0, memory.indexOf(0));
  return new TextDecoder().decode(copy);
}

function dispatch(req: number, c: Extract<ToEngine, { op: "call" }>["call"]): void {
  const flag = (slot: number) => ptr(flags + 4 * slot);
  switch (c.fn) {
    case "model_load":
      return withBytes([JSON.stringify(c.options)], (o) => call(c.fn, req, o!, flag(c.cancel)));
    case "debug_abort":
      return void call(c.fn, req);
    case "model_free":
      return void call(c.fn, req, c.model);
    case "model_call":
      return withBytes([JSON.stringify(c.call)], (o) => call(c.fn, req, c.model, o!));
    case "context_create":
      return withBytes(
        [JSON.stringify(c.options), words(c.words)],
        (o, w) => call(c.fn, req, c.model, o!, c.kind, w!, c.words.length),
      );
    case "context_free":
      return void call(c.fn, req, c.context);
    case "context_request":
      return withBytes(
        [c.method, c.path, c.query, c.body],
        (m, p, q, b) =>
          call(c.fn, req, c.context, m!, p!, q!, b!, ptr(c.body.length), flag(c.cancel)),
      );
    case "logits_eval":
      return withBytes(
        [JSON.stringify(c.options), words(c.words), words(c.tokens)],
        (o, w, t) =>
          call(
            c.fn,
            req,
            c.model,
            o!,
            c.kind,
            w!,
            c.words.length,
            t!,
            c.tokens.length,
            flag(c.cancel),
          ),
      );
  }
}

/** A thread can be ended only while it waits for nothing, so all of them return first. */
async function close(): Promise<void> {
  const { PThread } = instance;
  call("shutdown");
  for (let ms = 0; ms < 2000 && Object.keys(PThread?.pthreads ?? {}).length > 0; ms += 2) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  for (const { fd } of files.values()) if (fd >= 0) closeSync(fd);
  gpu?.dispose();
  PThread?.terminateAllThreads();
  post({ op: "closed" });
  if (gpu) setTimeout(endThread); // after the message is on its way
}

listen((given: MessagePort) => {
  port = given;
  port.onmessage = ({ data }: MessageEvent<ToEngine>) => receive(data);
});

function receive(message: ToEngine): void {
  switch (message.op) {
    case "init":
      init(message).catch((error) =>
        post({ op: "fatal", message: error?.message ?? String(error) })
      );
      return;
    case "file":
      files.set(message.file.id, { source: message.file, fd: -1 });
      call("file_add", message.file.id, message.file.size);
      return;
    case "call":
      try {
        dispatch(message.req, message.call);
      } catch (error) {
        const data = new TextEncoder().encode(
          error instanceof Error ? error.message : String(error),
        );
        post({ op: "event", req: message.req, kind: EventKind.Error, aux: 0, data });
      }
      return;
    case "read-done":
      return reads.get(message.token)?.(message.bytes);
    case "mem-put":
      withBytes([message.name], (name) => {
        const at = call("mem_add", name!, message.bytes.length);
        bytesAt(at, message.bytes.length).set(message.bytes);
      });
      post({ op: "mem", req: message.req, bytes: null });
      return;
    case "mem-take":
      withBytes([message.name], (name) => {
        const n = call("mem_size", name!);
        const bytes = n < 0 ? null : new Uint8Array(n);
        bytes?.set(bytesAt(call("mem_data", name!), n));
        call("mem_remove", name!);
        post({ op: "mem", req: message.req, bytes });
      });
      return;
    case "heap":
      post({ op: "heap", req: message.req, bytes: call("heap_bytes") });
      return;
    case "gpu-counts":
      post({ op: "gpu-counts", req: message.req, counts: gpu?.counts ?? null });
      return;
    case "drop-gpu": {
      gpu?.dispose();
      const done = new Int32Array(message.done);
      Atomics.store(done, 0, 1);
      Atomics.notify(done, 0);
      endThread();
      return;
    }
    case "close":
      close();
      return;
  }
}
