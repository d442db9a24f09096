/** Bytes that may wait for a reader. */
const MAX_WAITING = 16 << 20;

/** A streamed body. Its source is not held up by its reader; a reader that falls too far behind is given up. */
export class Outgoing {
  /** The body. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #parts: Uint8Array<ArrayBuffer>[] = [];
  readonly #onGone: (why: string) => void;
  readonly #watch: ReturnType<typeof setInterval>;
  #bytes = 0;
  #since = performance.now();
  #ended = false;
  #wake: (() => void) | undefined;

  /**
   * @param seconds How long the reader may leave bytes unread.
   * @param onGone Told when the reader has gone or is given up; not after the end was read.
   */
  constructor(seconds: number, onGone: (why: string) => void) {
    this.#onGone = onGone;
    let controller!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
    this.stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (given) => {
        controller = given;
      },
      pull: async () => {
        while (this.#parts.length === 0 && !this.#ended) {
          await new Promise<void>((resolve) => this.#wake = resolve);
        }
        this.#since = performance.now();
        const part = this.#parts.shift();
        if (part === undefined) {
          clearInterval(this.#watch);
          return controller.close();
        }
        this.#bytes -= part.length;
        controller.enqueue(part);
      },
      cancel: () => this.#stop("the client is gone"),
    }, { highWaterMark: 0 });
    this.#watch = setInterval(() => {
      const isStalled = this.#bytes > 0 && performance.now() - this.#since > seconds * 1000;
      if (!isStalled && this.#bytes <= MAX_WAITING) return;
      controller.error(new Error("the reader is too slow"));
      this.#stop("the reader is too slow");
    }, Math.max(20, Math.min(1000, seconds * 250)));
    Deno.unrefTimer(this.#watch);
  }

  /** Adds bytes. */
  write(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#ended || bytes.length === 0) return;
    if (this.#bytes === 0) this.#since = performance.now();
    this.#parts.push(bytes);
    this.#bytes += bytes.length;
    this.#wake?.();
  }

  /** Ends the body after what was written. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  #stop(why: string): void {
    clearInterval(this.#watch);
    this.#ended = true;
    this.#parts.length = 0;
    this.#bytes = 0;
    this.#wake?.();
    this.#onGone(why);
  }
}
