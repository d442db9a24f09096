/**
 * Messages between the library and the engine's Worker, and the numbers that `cpp/rys.h` has as well.
 *
 * @module
 */

import type { GpuChoice, GpuInfo } from "../../gpu/device.ts";
import type { GpuCounts } from "../../gpu/executor.ts";
import type { ThreadMessage } from "./port_worker.ts";

/** The engine's GPU, or why it computes on the CPU. */
export type EngineGpu =
  | { info: GpuInfo; readback: "sync" | "awaited" }
  | { why: string };

/** What an event means; the same numbers as `rys::event_kind`. */
export const EventKind = {
  Log: 0,
  Progress: 1,
  Head: 2,
  Chunk: 3,
  Done: 4,
  Error: 5,
  Fatal: 6,
} as const;

/** Request slots with a cancel flag each; more requests than this at once are refused. */
export const MAX_REQUESTS = 4096;

/** A file that the engine can read: by path in its Worker, or through the library's thread. */
export interface FileSource {
  /** Number in `/rys/file/<id>`. */
  id: number;
  /** Bytes. */
  size: number;
  /** Path, if the Worker can open it itself. */
  path?: string;
}

/** One call of the C ABI. `cancel` is a slot of the flag table. */
export type EngineCall =
  | { fn: "model_load"; options: { path: string; args: string[] }; cancel: number }
  | { fn: "model_free"; model: number }
  | { fn: "debug_abort" }
  | { fn: "model_call"; model: number; call: unknown }
  | {
    fn: "context_create";
    model: number;
    options: { args: string[]; alias?: string };
    kind: number;
    words: Uint32Array;
  }
  | { fn: "context_free"; context: number }
  | {
    fn: "context_request";
    context: number;
    method: string;
    path: string;
    query: string;
    body: Uint8Array;
    cancel: number;
  }
  | {
    fn: "logits_eval";
    model: number;
    options: { args: string[] };
    kind: number;
    words: Uint32Array;
    tokens: Int32Array;
    cancel: number;
  };

/** To the Worker. */
export type ToEngine =
  | {
    op: "init";
    js: string;
    wasm: string;
    buildId: string;
    verbosity: number;
    threads: number;
    gpu: GpuChoice;
  }
  | { op: "file"; file: FileSource }
  | { op: "call"; req: number; call: EngineCall }
  | { op: "read-done"; token: number; bytes: Uint8Array | null }
  | { op: "mem-put"; req: number; name: string; bytes: Uint8Array }
  | { op: "mem-take"; req: number; name: string }
  | { op: "heap"; req: number }
  | { op: "gpu-counts"; req: number }
  | { op: "drop-gpu"; done: SharedArrayBuffer }
  | { op: "close" };

/** From the Worker. */
export type FromEngine =
  | { op: "ready"; memory: SharedArrayBuffer; flags: number; dead: number; gpu: EngineGpu }
  | { op: "event"; req: number; kind: number; aux: number; data: Uint8Array }
  | { op: "read"; token: number; id: number; offset: number; n: number }
  | { op: "read-failed"; path: string; reason: string }
  | { op: "mem"; req: number; bytes: Uint8Array | null }
  | { op: "heap"; req: number; bytes: number }
  | { op: "gpu-counts"; req: number; counts: GpuCounts & { recorded: number } | null }
  | ThreadMessage
  | { op: "fatal"; message: string }
  | { op: "closed" };
