import { unavailable } from "../http/api_error.ts";

/** One who waits. */
interface Waiter<Wish, Place> {
  readonly wish: Wish;
  resolve(place: Place): void;
  reject(error: unknown): void;
}

/** Limits of a {@linkcode RequestQueue}. */
export interface RequestQueueOptions {
  /** Requests that may wait for a slot. */
  readonly maxQueue: number;
  /** Requests that run at once on one context, to estimate when one that is refused may come again. */
  readonly nParallel: number;
}

/**
 * The line of requests that wait, for all plans. It is the only one: a request that has left it holds its slot, and waits
 * neither in the library's own gate (`Context` lets in as many as there are slots) nor among upstream's deferred tasks
 * (but for one that asks for several answers, whose parts share what slots there are).
 */
export class RequestQueue<Wish extends { readonly slot: boolean }, Place> {
  readonly #options: RequestQueueOptions;
  readonly #onChange: () => void;
  readonly #line: Waiter<Wish, Place>[] = [];
  /** Seconds that a request holds its slot, a moving average. */
  #seconds = 1;
  #closed: Error | undefined;

  /**
   * @param options Limits.
   * @param onChange Called when one has come or gone: places are to be given, see {@linkcode RequestQueue.serve}.
   */
  constructor(options: RequestQueueOptions, onChange: () => void) {
    this.#options = options;
    this.#onChange = onChange;
  }

  /** Requests that wait for a slot. Those that need none are not counted. */
  get length(): number {
    return this.#line.filter(({ wish }) => wish.slot).length;
  }

  /**
   * How many of those who wait have such a wish.
   *
   * @param matches Whether a wish is meant.
   */
  count(matches: (wish: Wish) => boolean): number {
    return this.#line.filter(({ wish }) => wish.slot && matches(wish)).length;
  }

  /**
   * Waits for a place; there may be one at once.
   *
   * @param wish What is needed.
   * @param signal Gives up the wait; the promise then rejects with its reason. Whoever has a place by then gives it back.
   * @throws {ApiError} 503 if too many wait already.
   */
  enter(wish: Wish, signal?: AbortSignal): Promise<Place> {
    if (this.#closed) return Promise.reject(this.#closed);
    const { promise, resolve, reject } = Promise.withResolvers<Place>();
    const waiter: Waiter<Wish, Place> = { wish, resolve, reject };
    this.#line.push(waiter);
    this.#onChange();
    if (!this.#line.includes(waiter)) return promise;
    if (wish.slot && this.length > this.#options.maxQueue) {
      this.#drop(waiter, this.#refusal());
      return promise;
    }
    const abort = () => this.#drop(waiter, signal!.reason);
    signal?.addEventListener("abort", abort, { once: true });
    return promise.finally(() => signal?.removeEventListener("abort", abort));
  }

  #drop(waiter: Waiter<Wish, Place>, reason: unknown): void {
    const at = this.#line.indexOf(waiter);
    if (at < 0) return;
    this.#line.splice(at, 1);
    waiter.reject(reason);
    this.#onChange();
  }

  /** What one is told who may not wait, with the time after which it may come again. */
  #refusal(): Error {
    const { maxQueue, nParallel } = this.#options;
    const seconds = this.#seconds * (maxQueue + 1) / nParallel;
    return unavailable(
      `${maxQueue} requests are waiting already, and no more are taken; try again later`,
      Math.min(120, Math.max(1, seconds)),
    );
  }

  /**
   * Goes along the line, first come first, and lets out who can have a place.
   *
   * @param place Gives a place for a wish, or undefined.
   */
  serve(place: (wish: Wish) => Place | undefined): void {
    for (const waiter of [...this.#line]) {
      const given = place(waiter.wish);
      if (given === undefined) continue;
      this.#line.splice(this.#line.indexOf(waiter), 1);
      waiter.resolve(given);
    }
  }

  /**
   * Takes note of how long a request held its slot.
   *
   * @param seconds How long.
   */
  ran(seconds: number): void {
    this.#seconds += 0.2 * (seconds - this.#seconds);
  }

  /**
   * Refuses those who wait.
   *
   * @param error What they are told.
   * @param matches Whose wish is meant; all, if left out.
   */
  refuse(error: unknown, matches: (wish: Wish) => boolean = () => true): void {
    for (const waiter of [...this.#line]) {
      if (!matches(waiter.wish)) continue;
      this.#line.splice(this.#line.indexOf(waiter), 1);
      waiter.reject(error);
    }
  }

  /** Refuses all who wait and all who come later. */
  close(error: Error): void {
    this.#closed ??= error;
    this.refuse(this.#closed);
  }
}
