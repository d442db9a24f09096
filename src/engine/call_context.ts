import { type CallEvents, type CallResult, type EngineClient, EngineError } from "./client.ts";
import type { Gate } from "./gate.ts";
import type { ContextInfo } from "./context_info.ts";
import type { EngineCall } from "./protocol.ts";

/** A context in the engine, and the queues of requests that wait for it. */
export interface LiveContext {
  /** Its number. */
  handle: number;
  /** What it holds, as allocated. */
  info: ContextInfo;
  /** Lets in requests that take a slot, as many as there are slots: inside the engine, two that wait could change places. */
  requests: Gate;
  /** Lets in all other requests. */
  others: Gate;
  /** Whether it is being freed. */
  disposed: boolean;
}

/** The error of a call to a context that is gone or going. */
export const disposedError = (): EngineError => new EngineError("The context is disposed");

/** A request to a context, which knows its number. */
export type ContextRequest = Omit<
  Extract<EngineCall, { fn: "context_request" }>,
  "fn" | "context" | "cancel"
>;

/**
 * Makes a request and waits for its end. If the context's dispose() overtakes it, its answer may be anything, even a
 * part of the right one, so it rejects.
 *
 * @param client The engine.
 * @param live The context.
 * @param request The request.
 * @param events Receives what comes before the end.
 * @param signal Stops it; the promise then rejects with its reason.
 * @param gate Where it waits for its turn.
 * @throws {EngineError} "The context is disposed", or what is wrong with the engine.
 */
export async function callContext(
  client: EngineClient,
  live: LiveContext,
  request: ContextRequest,
  events: CallEvents,
  signal: AbortSignal | undefined,
  gate: Gate,
): Promise<void> {
  let result: CallResult;
  try {
    const call = { fn: "context_request", context: live.handle, cancel: 0, ...request } as const;
    result = await client.call(call, events, signal, gate);
  } catch (error) {
    const isOwn = error instanceof EngineError && !error.fatal && error.status === undefined;
    throw live.disposed && isOwn ? disposedError() : error;
  }
  signal?.throwIfAborted();
  if (result.handle === STOPPED) throw disposedError();
}

/** How the engine ends a request that did not run to its end. */
const STOPPED = 1;
