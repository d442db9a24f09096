import type { Asked } from "./api.ts";
import { type Backoff, backoffMs } from "./backoff.ts";
import type { RunpodTiming } from "./timing.ts";

/** Failures in a row: how long to wait, and what to say; the same thing is said once. */
export class Trouble {
  readonly #timing: RunpodTiming;
  readonly #what: string;
  readonly #log: (line: string) => void;
  #failures = 0;
  #said = "";

  constructor(timing: RunpodTiming, what: string, log: (line: string) => void) {
    this.#timing = timing;
    this.#what = what;
    this.#log = log;
  }

  /** Milliseconds to wait after a failure. */
  wait(asked: Asked<unknown>): number {
    this.#failures++;
    const { retryMs, busyMs, maxRetryMs } = this.#timing;
    const why = asked.kind === "later" || asked.kind === "refused" ? asked.why : "";
    if (why !== this.#said) this.#log(`${this.#what}: ${why}; trying again`);
    this.#said = why;
    if (asked.kind === "later" && asked.retryAfterMs !== undefined) {
      return Math.min(asked.retryAfterMs, 10 * maxRetryMs);
    }
    const backoff: Backoff = {
      firstMs: why === "status 429" ? busyMs : retryMs,
      maxMs: maxRetryMs,
    };
    return backoffMs(backoff, this.#failures, Math.random());
  }

  /** It works. */
  over(): void {
    if (this.#failures > 0) this.#log(`${this.#what}: works again`);
    this.#failures = 0;
    this.#said = "";
  }
}
