import { type Context, type EffectivePlan, EngineError } from "../../engine/mod.ts";
import { Gate } from "../../engine/gate.ts";
import { planHashHex } from "../../plan/mod.ts";
import { ApiError, unavailable } from "../http/api_error.ts";

/** What a context is for. */
export type ContextKind = "text" | "embeddings" | "rerank";

/** A place on a context. */
export interface Lease {
  /** The context. */
  readonly context: Context;
  /** Gives the place back. Harmless a second time. */
  release(): void;
}

/** A context of the pool, as others see it. */
export interface PoolEntry {
  /** What it is for. */
  kind: ContextKind;
  /** Its plan, as first asked for. */
  plan: EffectivePlan;
  /** The context; undefined while it is made. */
  context: Context | undefined;
  /** Requests on it. */
  running: number;
  /** Requests that wait for a place on it. */
  waiting: number;
}

/** Limits of a {@linkcode PlanPool}, and how its contexts are made. */
export interface PoolOptions {
  /** Contexts at once. */
  maxContexts: number;
  /** Bytes that they may take. */
  memoryBudget: number;
  /** Requests at once on one context. */
  nParallel: number;
  /** Requests that may wait. */
  maxQueue: number;
  /** Makes a context. */
  create(kind: ContextKind, plan: EffectivePlan): Promise<Context>;
  /** Bytes that a context will take. */
  estimate(kind: ContextKind, plan: EffectivePlan): number;
  /** Told when a context is made or freed. */
  onChange?: (what: "made" | "freed", entry: PoolEntry) => void;
}

/** A context, who uses it, and what it takes. */
class Entry implements PoolEntry {
  context: Context | undefined;
  ready: Promise<Context>;
  running = 0;
  waiting = 0;
  /** Requests that hold or await it, those without a slot as well. */
  users = 0;
  lastUsed = 0;
  /** Takes nobody new, so that it becomes idle and can make room. */
  retiring = false;
  /** Is being freed. */
  going = false;
  readonly gate: Gate;

  constructor(
    readonly key: string,
    readonly kind: ContextKind,
    readonly plan: EffectivePlan,
    public bytes: number,
    nParallel: number,
    ready: Promise<Context>,
  ) {
    this.gate = new Gate(nParallel);
    this.ready = ready;
  }
}

interface Waiter {
  key: string;
  kind: ContextKind;
  plan: EffectivePlan;
  resolve(entry: Entry): void;
  reject(error: unknown): void;
}

/**
 * Contexts by plan: made when first asked for, shared by requests of the same layers, freed when another plan needs the
 * room, the one first that has been idle for longest.
 */
export class PlanPool {
  readonly #options: PoolOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #waiters: Waiter[] = [];
  /** Requests that hold or await a slot, by context. */
  readonly #inLine = new Map<string, number>();
  #tick = 0;
  #queued = 0;
  /** Seconds that a request holds its place, a moving average. */
  #seconds = 1;
  #closed: Error | undefined;

  /** @param options Limits and the maker of contexts. */
  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Requests that wait for their turn. */
  get queued(): number {
    return this.#queued;
  }

  /** Requests that run. */
  get running(): number {
    return this.entries.reduce((n, entry) => n + entry.running, 0);
  }

  /** The contexts. */
  get entries(): PoolEntry[] {
    return [...this.#entries.values()].filter((entry) => !entry.going);
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
    const waits = slot && !this.#isFree(key, kind, plan);
    if (waits && this.#queued >= this.#options.maxQueue) {
      const seconds = this.#seconds * (this.#queued + 1) / this.#options.nParallel;
      throw unavailable(
        `${this.#queued} requests wait already, and no more are taken; try again later`,
        Math.min(120, Math.max(1, seconds)),
      );
    }
    // Counted before anything is awaited: others may come meanwhile.
    if (waits) this.#queued++;
    if (slot) this.#count(key, 1);
    let entry: Entry;
    try {
      entry = await this.#entry(key, kind, plan, signal);
    } catch (error) {
      if (waits) this.#queued--;
      if (slot) this.#count(key, -1);
      throw error;
    }
    try {
      entry.waiting++;
      const context = await untilAborted(entry.ready, signal);
      signal?.throwIfAborted(); // what comes after it hears no abort that was before
      if (slot) await entry.gate.enter(signal);
      if (signal?.aborted) {
        if (slot) entry.gate.leave();
        throw signal.reason;
      }
      if (slot) entry.running++;
      const start = performance.now();
      let held = true;
      return {
        context,
        release: () => {
          if (!held) return;
          held = false;
          if (slot) {
            entry.running--;
            entry.gate.leave();
            this.#count(key, -1);
            this.#seconds += 0.2 * ((performance.now() - start) / 1000 - this.#seconds);
          }
          this.#leave(entry);
        },
      };
    } catch (error) {
      if (slot) this.#count(key, -1);
      this.#leave(entry);
      throw error;
    } finally {
      entry.waiting--;
      if (waits) this.#queued--;
    }
  }

  /** Frees what is idle and refuses those who wait and all who come. Contexts in use are left to who holds them. */
  async close(error: Error): Promise<void> {
    this.#closed ??= error;
    for (const waiter of this.#waiters.splice(0)) waiter.reject(this.#closed);
    for (const entry of this.#entries.values()) entry.gate.close(this.#closed);
    await Promise.allSettled(
      [...this.#entries.values()].filter((entry) => entry.users === 0).map((e) => this.#free(e)),
    );
  }

  /** Whether a request could run at once. */
  #isFree(key: string, kind: ContextKind, plan: EffectivePlan): boolean {
    if ((this.#inLine.get(key) ?? 0) >= this.#options.nParallel) return false;
    const entry = this.#entries.get(key);
    if (entry) return !entry.retiring && !entry.going;
    if (this.#waiters.length > 0) return false;
    return this.#hasRoom(this.#options.estimate(kind, plan)) || this.#victim() !== undefined;
  }

  #count(key: string, n: number): void {
    const left = (this.#inLine.get(key) ?? 0) + n;
    if (left > 0) this.#inLine.set(key, left);
    else this.#inLine.delete(key);
  }

  #hasRoom(bytes: number): boolean {
    if (this.#entries.size >= this.#options.maxContexts) return false;
    return this.#entries.size === 0 || this.bytes + bytes <= this.#options.memoryBudget;
  }

  #entry(
    key: string,
    kind: ContextKind,
    plan: EffectivePlan,
    signal: AbortSignal | undefined,
  ): Entry | Promise<Entry> {
    const entry = this.#entries.get(key);
    if (entry && !entry.retiring && !entry.going) return this.#enter(entry);
    const bytes = this.#options.estimate(kind, plan);
    if (bytes > this.#options.memoryBudget) {
      throw new ApiError(
        400,
        `A context of plan ${plan.spec} (${plan.nLayerEff} layers) needs about ${
          mib(bytes)
        } MiB, ` +
          `and the server gives all contexts ${mib(this.#options.memoryBudget)} MiB`,
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<Entry>();
    const waiter: Waiter = { key, kind, plan, resolve, reject };
    const abort = () => {
      const at = this.#waiters.indexOf(waiter);
      if (at < 0) return; // it was let in meanwhile, and looks at the signal itself
      this.#waiters.splice(at, 1);
      reject(signal!.reason);
      this.#pump();
    };
    signal?.addEventListener("abort", abort, { once: true });
    this.#waiters.push(waiter);
    this.#pump();
    return promise.finally(() => signal?.removeEventListener("abort", abort));
  }

  #enter(entry: Entry): Entry {
    entry.users++;
    entry.lastUsed = ++this.#tick;
    return entry;
  }

  #leave(entry: Entry): void {
    entry.users--;
    entry.lastUsed = ++this.#tick;
    if (entry.users > 0) return;
    if (this.#closed) void this.#free(entry);
    else this.#pump();
  }

  /** Lets in who waits first, as far as there is room; makes room where there is none. */
  #pump(): void {
    for (;;) {
      const head = this.#waiters[0];
      if (head === undefined) {
        // Nobody needs the room any more.
        for (const entry of this.#entries.values()) entry.retiring = false;
        return;
      }
      const entry = this.#entries.get(head.key);
      if (entry?.going) return; // freed first, then made again
      if (entry) {
        entry.retiring = false;
        this.#waiters.shift();
        head.resolve(this.#enter(entry));
        continue;
      }
      if (this.#hasRoom(this.#options.estimate(head.kind, head.plan))) {
        this.#waiters.shift();
        head.resolve(this.#enter(this.#make(head)));
        continue;
      }
      const victim = this.#victim();
      if (victim) return void this.#free(victim);
      const all = [...this.#entries.values()];
      if (all.some((one) => one.retiring || one.going)) return;
      const oldest = all.sort((a, b) => a.lastUsed - b.lastUsed)[0];
      if (oldest) oldest.retiring = true;
      return;
    }
  }

  /** The context that nobody uses and that was used longest ago. */
  #victim(): Entry | undefined {
    return [...this.#entries.values()]
      .filter((entry) => entry.users === 0 && !entry.going && entry.context !== undefined)
      .sort((a, b) => a.lastUsed - b.lastUsed)[0];
  }

  #make({ key, kind, plan }: Waiter): Entry {
    const { nParallel, estimate, onChange } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<Context>();
    promise.catch(() => {});
    const entry = new Entry(key, kind, plan, estimate(kind, plan), nParallel, promise);
    this.#entries.set(key, entry);
    this.#create(entry).then((context) => {
      entry.context = context;
      const { kvBytes, recurrentBytes, computeBytes } = context.info;
      entry.bytes = kvBytes + recurrentBytes + computeBytes;
      onChange?.("made", entry);
      resolve(context);
      if (this.#closed && entry.users === 0) void this.#free(entry);
    }, (error) => {
      this.#entries.delete(key);
      reject(refusal(error, plan));
      this.#pump();
    });
    return entry;
  }

  /** Makes a context; where memory is short, without those that are idle. */
  async #create(entry: Entry): Promise<Context> {
    for (;;) {
      try {
        return await this.#options.create(entry.kind, entry.plan);
      } catch (error) {
        const victim = this.#victim();
        if (!victim || !isShortOfMemory(error)) throw error;
        await this.#free(victim);
      }
    }
  }

  async #free(entry: Entry): Promise<void> {
    if (entry.going) return;
    entry.going = true;
    await entry.context?.dispose();
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
    this.#options.onChange?.("freed", entry);
    this.#pump();
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
