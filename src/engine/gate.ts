/**
 * Lets a limited number in at once; the others wait in order.
 *
 * Each request under way holds one of the engine's threads, so a request that could only wait there waits here instead, where a cancel
 * removes it from the queue at once.
 */
export class Gate {
  #free: number;
  #waiting: { enter(): void; refuse(reason: unknown): void }[] = [];
  #closed: Error | undefined;

  /** @param limit How many are let in at once. */
  constructor(limit: number) {
    this.#free = limit;
  }

  /**
   * Waits for a place; {@linkcode Gate.leave} gives it back.
   *
   * @param signal Gives up the wait; the promise then rejects with its reason.
   * @returns Undefined if there is a place already, so that the caller can go on at once.
   */
  enter(signal?: AbortSignal): Promise<void> | undefined {
    if (this.#closed) return Promise.reject(this.#closed);
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry = { enter: resolve, refuse: reject };
    const abort = () => {
      const at = this.#waiting.indexOf(entry);
      if (at < 0) return; // let in already: whoever waited holds a place and gives it back
      this.#waiting.splice(at, 1);
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    this.#waiting.push(entry);
    return promise.finally(() => signal?.removeEventListener("abort", abort));
  }

  /** Gives a place back. */
  leave(): void {
    const next = this.#waiting.shift();
    if (next) next.enter();
    else this.#free++;
  }

  /** Refuses those waiting and all that come later. */
  close(error: Error): void {
    this.#closed ??= error;
    for (const { refuse } of this.#waiting.splice(0)) refuse(this.#closed);
  }
}
