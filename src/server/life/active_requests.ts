import { BodyBudget } from "../http/read_body.ts";
import type { Settings } from "../options.ts";
import { ActiveRequest } from "./active_request.ts";

/** Bytes of the bodies of all active requests. */
const MAX_BODIES = 256 << 20;

/** The requests that run or wait. */
export class ActiveRequests {
  readonly #seconds: number;
  readonly #bodies: BodyBudget;
  readonly #stop = new AbortController();
  #size = 0;
  #onIdle: (() => void) | undefined;

  /** @param settings How long a request may take, and how large its body may be. */
  constructor({ requestTimeout, maxBodyBytes }: Settings) {
    this.#seconds = requestTimeout;
    this.#bodies = new BodyBudget(Math.max(MAX_BODIES, maxBodyBytes));
  }

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  /** Aborted when the server stops what still runs. */
  get stopped(): AbortSignal {
    return this.#stop.signal;
  }

  /**
   * Begins a request; {@linkcode ActiveRequest.end} ends it.
   *
   * @param client Aborted when the client has gone.
   */
  begin(client: AbortSignal): ActiveRequest {
    this.#size++;
    return new ActiveRequest({
      client,
      server: this.#stop.signal,
      seconds: this.#seconds,
      onBytes: (bytes) => this.#bodies.take(bytes),
      onEnd: (bytes) => {
        this.#bodies.give(bytes);
        this.#size--;
        if (this.#size === 0) this.#onIdle?.();
      },
    });
  }

  /**
   * Stops those that still run, and all that come.
   *
   * @param reason What they are told.
   */
  stop(reason: Error): void {
    this.#stop.abort(reason);
  }

  /**
   * Waits until there are none.
   *
   * @param ms How long at most, in milliseconds.
   */
  async idle(ms: number): Promise<void> {
    if (this.#size === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    this.#onIdle = undefined;
  }
}
