import type { ServerOptions } from "./options.ts";

/**
 * Where a server is in its life. `loading`: no model yet, or again none. `draining`: nothing new is taken. `failed`: the
 * model could not be loaded.
 */
export type ServerState = "loading" | "ready" | "draining" | "closed" | "failed";

/** A server without a socket: takes a `Request`, gives a `Response`. */
export interface RysServer extends AsyncDisposable {
  /** Where it is in its life. */
  readonly state: ServerState;
  /** Resolves when the model is loaded for the first time; rejects where it cannot be. */
  readonly ready: Promise<void>;
  /** Requests that run or wait. */
  readonly inFlight: number;
  /**
   * Answers a request. Never rejects: what goes wrong is an answer with an error's status.
   *
   * @param request The request; its `signal` stops what it asked for.
   * @param info Where it came from.
   */
  fetch(request: Request, info?: { remoteAddr?: unknown }): Promise<Response>;
  /**
   * Takes nothing new, lets what runs end within `drainTimeout`, stops the rest, frees the model. Harmless a second time.
   */
  close(): Promise<void>;
}

/**
 * Makes a server and begins to load its model. It answers at once: `/health` with 503 until the model is there.
 *
 * @param options Model, plans, limits.
 * @throws {TypeError | RangeError} If an option is wrong.
 */
export declare function createServer(options: ServerOptions): RysServer;
