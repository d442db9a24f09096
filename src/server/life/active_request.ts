import type { Context, EffectivePlan } from "../../engine/mod.ts";
import { ApiError, ClientGone } from "../http/api_error.ts";
import type { ContextKind, Lease, PlanPool } from "../plans/plan_pool.ts";

/** What an {@linkcode ActiveRequest} is bound to. */
export interface ActiveRequestOptions {
  /** Aborted when the client has gone. */
  readonly client: AbortSignal;
  /** Aborted when the server stops what still runs. */
  readonly server: AbortSignal;
  /** Seconds that the request may take. */
  readonly seconds: number;
  /** Told of bytes of its body; throws where there are too many. */
  readonly onBytes: (bytes: number) => void;
  /** Told at its end, once, with the bytes that it took. */
  readonly onEnd: (bytes: number) => void;
}

/** The life of one request, from its first byte to the end of its answer: its signal, its time, its slot, its body's bytes. */
export class ActiveRequest {
  readonly #options: ActiveRequestOptions;
  readonly #abort = new AbortController();
  readonly #onClient = () => this.abort(new ClientGone("the client is gone"));
  readonly #onServer = () => this.abort(this.#options.server.reason);
  readonly #timer: ReturnType<typeof setTimeout>;
  #bytes = 0;
  #lease: Lease | undefined;
  #hasEnded = false;

  /** @param options What it is bound to. */
  constructor(options: ActiveRequestOptions) {
    this.#options = options;
    const { client, server, seconds } = options;
    if (client.aborted) this.#onClient();
    if (server.aborted) this.#onServer();
    client.addEventListener("abort", this.#onClient, { once: true });
    server.addEventListener("abort", this.#onServer, { once: true });
    this.#timer = setTimeout(
      () => this.abort(new ApiError(504, `The request took longer than ${seconds} seconds`)),
      seconds * 1000,
    );
    Deno.unrefTimer(this.#timer);
  }

  /** Aborted when the client has gone, the time is up, or the server stops. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether the client has gone. */
  get clientHasGone(): boolean {
    return this.#options.client.aborted;
  }

  /**
   * Stops what runs for the request.
   *
   * @param reason Why.
   */
  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  /**
   * Takes note of bytes of its body.
   *
   * @param bytes How many came.
   * @throws {ApiError} 503 if the bodies of all requests are too large together.
   */
  takeBytes(bytes: number): void {
    this.#options.onBytes(bytes);
    this.#bytes += bytes;
  }

  /**
   * Waits for a place on the context of a plan, and keeps it until the request ends.
   *
   * @param pool The contexts.
   * @param kind What the context is for.
   * @param plan The plan.
   * @param slot Whether a slot is needed.
   * @throws {ApiError} See {@linkcode PlanPool.acquire}.
   */
  async enter(
    pool: PlanPool,
    kind: ContextKind,
    plan: EffectivePlan,
    slot: boolean,
  ): Promise<Context> {
    this.#lease = await pool.acquire(kind, plan, this.signal, slot);
    return this.#lease.context;
  }

  /**
   * Lets the answer's body go on after the handler has returned: the client's signal is heard no more, as Deno's aborts
   * also when an answer was read to its end, and the stream's own cancel tells of a client that leaves.
   *
   * @param ended Settles with the body's end, which ends the request.
   */
  streamUntil(ended: Promise<void>): void {
    this.#options.client.removeEventListener("abort", this.#onClient);
    ended.finally(() => this.end());
  }

  /** Gives back what the request holds. Harmless a second time. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    this.#options.client.removeEventListener("abort", this.#onClient);
    this.#options.server.removeEventListener("abort", this.#onServer);
    this.#lease?.release();
    this.#options.onEnd(this.#bytes);
  }
}
