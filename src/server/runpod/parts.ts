import type { RunpodApi } from "./api.ts";
import { backoffMs, pause } from "./backoff.ts";
import type { RunpodSettings } from "./settings.ts";
import type { SseEvent } from "./sse_events.ts";
import type { RunpodTiming } from "./timing.ts";

/** Sends parts of an answer one after another; what comes while one is on its way goes with the next. */
export class Parts {
  readonly made: unknown[] = [];
  readonly #api: RunpodApi;
  readonly #jobId: string;
  readonly #timing: RunpodTiming;
  readonly #signal: AbortSignal;
  readonly #isTaken: boolean;
  #waiting: SseEvent[] = [];
  #sending: Promise<void> | undefined;

  constructor(
    api: RunpodApi,
    jobId: string,
    settings: RunpodSettings,
    timing: RunpodTiming,
    signal: AbortSignal,
  ) {
    this.#api = api;
    this.#jobId = jobId;
    this.#timing = timing;
    this.#signal = signal;
    this.#isTaken = settings.streamUrl(jobId) !== undefined;
  }

  add(event: SseEvent, part: (events: readonly SseEvent[]) => unknown): void {
    this.#waiting.push(event);
    if (this.#isTaken) this.#sending ??= this.#drain(part);
  }

  /** A part that is whole already. */
  give(output: unknown): void {
    this.made.push(output);
    if (this.#isTaken) this.#sending = this.#post(output);
  }

  async end(part: (events: readonly SseEvent[]) => unknown): Promise<void> {
    await this.#sending;
    if (this.#waiting.length > 0) this.made.push(part(this.#waiting));
    this.#waiting = [];
  }

  async #drain(part: (events: readonly SseEvent[]) => unknown): Promise<void> {
    while (this.#waiting.length > 0 && !this.#signal.aborted) {
      const output = part(this.#waiting);
      this.#waiting = [];
      this.made.push(output);
      await this.#post(output);
    }
    this.#sending = undefined;
  }

  /** A part that the host does not take is lost to who follows the stream; the result has it all the same. */
  async #post(output: unknown): Promise<void> {
    const { retryMs, maxRetryMs } = this.#timing;
    for (let attempt = 1; attempt <= 3 && !this.#signal.aborted; attempt++) {
      const asked = await this.#api.part(this.#jobId, output, this.#signal);
      if (asked.kind !== "later") return;
      const wait = asked.retryAfterMs ??
        backoffMs({ firstMs: retryMs, maxMs: maxRetryMs }, attempt, Math.random());
      await pause(Math.min(wait, maxRetryMs), this.#signal);
    }
  }
}
