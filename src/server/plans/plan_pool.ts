import { type Context, type EffectivePlan, EngineError } from "../../engine/mod.ts";
import { planHashHex } from "../../plan/mod.ts";
import { ApiError, unavailable } from "../http/api_error.ts";
import { RequestQueue, type RequestQueueOptions } from "../queue/request_queue.ts";

/** What a context is for. */
export type ContextKind = "text" | "embeddings" | "rerank";

/** A place on a context. */
export interface Lease {
  /** The context. */
  readonly context: Context;
  /** Gives the place back. Harmless a second time. */
  release(): void;
}

/** A context of the pool, as it is when asked. */
export interface PoolEntry {
  /** What it is for. */
  readonly kind: ContextKind;
  /** Its plan, as first asked for. */
  readonly plan: EffectivePlan;
  /** The context; undefined while it is made. */
  readonly context: Context | undefined;
  /** Requests on it. */
  readonly running: number;
  /** Requests that wait for a place on it. */
  readonly waiting: number;
}

/** Limits of a {@linkcode PlanPool}, and how its contexts are made. */
export interface PoolOptions extends RequestQueueOptions {
  /** Contexts at once. */
  maxContexts: number;
  /** Bytes that they may take. */
  memoryBudget: number;
  /** Makes a context. */
  create(kind: ContextKind, plan: EffectivePlan): Promise<Context>;
  /** Bytes that a context will take. */
  estimate(kind: ContextKind, plan: EffectivePlan): number;
  /** Told when a context is made or freed. */
  onChange?: (what: "made" | "freed", entry: PoolEntry) => void;
}

/** A context, who uses it, and what it takes. */
class Entry {
  context: Context | undefined;
  /** Slots that requests hold; while the context is made, those that they will have. */
  taken = 0;
  /** Requests that hold it, those without a slot as well. */
  users = 0;
  lastUsed = 0;
  /** Takes nobody new who is behind one that needs room, so that it becomes idle and can make room. */
  retiring = false;

  constructor(
    readonly key: string,
    readonly kind: ContextKind,
    readonly plan: EffectivePlan,
    public bytes: number,
    readonly ready: Promise<Context>,
  ) {}
}

/** What a request needs. */
interface Wish {
  readonly key: string;
  readonly kind: ContextKind;
  readonly plan: EffectivePlan;
  readonly slot: boolean;
}

/**
 * Contexts by plan: made when first asked for, shared by requests of the same layers, freed when another plan needs the
 * room, the one first that has been idle for longest.
 */
export class PlanPool {
  readonly #options: PoolOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #queue: RequestQueue<Wish, Entry>;
  /** Settles when all contexts are freed that were to be: new ones are made after them. */
  #freed: Promise<void> = Promise.resolve();
  #tick = 0;
  #closed: Error | undefined;

  /** @param options Limits and the maker of contexts. */
  constructor(options: PoolOptions) {
    this.#options = options;
    this.#queue = new RequestQueue(options, () => this.#serve());
  }

  /** Requests that wait for their turn. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Requests that run. */
  get running(): number {
    return this.entries.reduce((n, entry) => n + entry.running, 0);
  }

  /** The contexts. */
  get entries(): PoolEntry[] {
    return [...this.#entries.values()].map((entry) => this.#show(entry));
  }

  #show({ key, kind, plan, context, taken }: Entry): PoolEntry {
    const waiting = this.#queue.count((wish) => wish.key === key);
    return context
      ? { kind, plan, context, running: taken, waiting }
      : { kind, plan, context, running: 0, waiting: waiting + taken };
  }

  /** Bytes that the contexts take. */
  get bytes(): number {
    return [...this.#entries.values()].reduce((n, entry) => n + entry.bytes, 0);
  }

  /**
   * A place on the context of a plan. Waits for a free slot, and for room where there is no such context yet.
   *
   * @param kind What the context is for.
   * @param plan The plan.
   * @param signal Gives up the wait; the promise then rejects with its reason.
   * @param slot Whether a slot is needed; what only looks at the context needs none.
   * @throws {ApiError} 503 if too many wait already; 400 if the plan's context cannot be made.
   */
  async acquire(
    kind: ContextKind,
    plan: EffectivePlan,
    signal: AbortSignal | undefined,
    slot = true,
  ): Promise<Lease> {
    if (this.#closed) throw this.#closed;
    signal?.throwIfAborted();
    const key = `${kind} ${planHashHex(plan.layers)}`;
    if (!this.#entries.has(key)) this.#checkSize(kind, plan);
    const entry = await this.#queue.enter({ key, kind, plan, slot }, signal);
    try {
      const context = await untilAborted(entry.ready, signal);
      signal?.throwIfAborted(); // what comes after it hears no abort that was before
      const start = performance.now();
      let held = true;
      return {
        context,
        release: () => {
          if (!held) return;
          held = false;
          if (slot) this.#queue.ran((performance.now() - start) / 1000);
          this.#leave(entry, slot);
        },
      };
    } catch (error) {
      this.#leave(entry, slot);
      throw error;
    }
  }

  /** Frees what is idle and refuses those who wait and all who come. Contexts in use are left to who holds them. */
  async close(error: Error): Promise<void> {
    this.#closed ??= error;
    this.#queue.close(this.#closed);
    for (const entry of this.#entries.values()) {
      if (entry.users === 0 && entry.context !== undefined) this.#free(entry);
    }
    await this.#freed;
  }

  /** Refuses a plan that could never have a context. */
  #checkSize(kind: ContextKind, plan: EffectivePlan): void {
    const bytes = this.#options.estimate(kind, plan);
    const { memoryBudget } = this.#options;
    if (bytes <= memoryBudget) return;
    throw new ApiError(
      400,
      `A context of plan ${plan.spec} (${plan.nLayerEff} layers) needs about ${mib(bytes)} MiB, ` +
        `and the server gives all contexts ${mib(memoryBudget)} MiB`,
    );
  }

  /** Gives places to those who wait, as far as there are slots and room; makes room where there is none. */
  #serve(): void {
    let isShort = false; // somebody ahead waits for room
    this.#queue.serve((wish) => {
      const entry = this.#entries.get(wish.key);
      if (entry) {
        if (isShort && entry.retiring) return undefined;
        if (wish.slot && entry.taken >= this.#options.nParallel) return undefined;
        return this.#enter(entry, wish.slot);
      }
      if (isShort) return undefined;
      if (this.#makeRoom(this.#options.estimate(wish.kind, wish.plan))) {
        return this.#enter(this.#make(wish), wish.slot);
      }
      isShort = true;
      return undefined;
    });
    if (isShort) return;
    for (const entry of this.#entries.values()) entry.retiring = false;
  }

  #enter(entry: Entry, slot: boolean): Entry {
    entry.users++;
    if (slot) entry.taken++;
    entry.lastUsed = ++this.#tick;
    return entry;
  }

  #leave(entry: Entry, slot: boolean): void {
    entry.users--;
    if (slot) entry.taken--;
    entry.lastUsed = ++this.#tick;
    this.#settle(entry);
  }

  /** After a change of a context: frees it if it is the last one's, else goes on with the queue. */
  #settle(entry: Entry): void {
    if (!this.#closed) this.#serve();
    else if (entry.users === 0 && entry.context !== undefined) this.#free(entry);
  }

  /** Frees what is idle until so many bytes fit. Where that is not enough, one in use takes nobody new. */
  #makeRoom(bytes: number): boolean {
    const { maxContexts, memoryBudget } = this.#options;
    const hasRoom = () =>
      this.#entries.size === 0 ||
      this.#entries.size < maxContexts && this.bytes + bytes <= memoryBudget;
    while (!hasRoom()) {
      const victim = this.#victim();
      if (victim) {
        this.#free(victim);
        continue;
      }
      const all = [...this.#entries.values()];
      if (!all.some((entry) => entry.retiring)) {
        all.sort((a, b) => a.lastUsed - b.lastUsed)[0]!.retiring = true;
      }
      return false;
    }
    return true;
  }

  /** The context that nobody uses and that was used longest ago. */
  #victim(): Entry | undefined {
    return [...this.#entries.values()]
      .filter((entry) => entry.users === 0 && entry.context !== undefined)
      .sort((a, b) => a.lastUsed - b.lastUsed)[0];
  }

  #make({ key, kind, plan }: Wish): Entry {
    const { promise, resolve, reject } = Promise.withResolvers<Context>();
    promise.catch(() => {});
    const entry = new Entry(key, kind, plan, this.#options.estimate(kind, plan), promise);
    this.#entries.set(key, entry);
    this.#create(entry).then((context) => {
      entry.context = context;
      const { kvBytes, recurrentBytes, computeBytes } = context.info;
      entry.bytes = kvBytes + recurrentBytes + computeBytes;
      this.#options.onChange?.("made", this.#show(entry));
      resolve(context);
      // Those who wanted it may all have gone meanwhile.
      if (entry.users === 0) this.#settle(entry);
    }, (error) => {
      this.#entries.delete(key);
      const told = refusal(error, plan);
      reject(told);
      this.#queue.refuse(told, (wish) => wish.key === key);
      this.#serve();
    });
    return entry;
  }

  /** Makes a context when those that make room for it are freed; where memory is short, without those that are idle. */
  async #create(entry: Entry): Promise<Context> {
    for (;;) {
      await this.#freed;
      try {
        return await this.#options.create(entry.kind, entry.plan);
      } catch (error) {
        const victim = this.#victim();
        if (!victim || !isShortOfMemory(error)) throw error;
        this.#free(victim);
      }
    }
  }

  #free(entry: Entry): void {
    this.#entries.delete(entry.key);
    this.#freed = this.#freed.then(async () => {
      await entry.context?.dispose();
      this.#options.onChange?.("freed", this.#show(entry));
      if (!this.#closed) this.#serve();
    }).catch(() => {});
  }
}

const mib = (bytes: number): number => Math.ceil(bytes / 2 ** 20);

function isShortOfMemory(error: unknown): boolean {
  return error instanceof EngineError && !error.fatal &&
    /could not be created|memory|alloc|no room/i.test(error.message);
}

/** A context that cannot be made is the request's fault where the model cannot run the plan. */
function refusal(error: unknown, plan: EffectivePlan): unknown {
  if (!(error instanceof EngineError) || error.fatal || error.status !== undefined) return error;
  if (isShortOfMemory(error)) {
    const answer = unavailable(`There is not enough memory for a context of plan ${plan.spec}`, 30);
    answer.cause = error;
    return answer;
  }
  return new ApiError(400, error.message, { fields: { param: "repeat_layers" } });
}

/** A promise's value, unless the signal aborts first. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return await promise;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
    aborted.catch(() => {});
  }
}
