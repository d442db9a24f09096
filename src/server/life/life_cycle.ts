import { type Context, EngineError } from "../../engine/mod.ts";
import { ApiError, unavailable } from "../http/api_error.ts";
import type { Settings } from "../options.ts";
import type { PoolEntry } from "../plans/plan_pool.ts";
import type { ActiveRequests } from "./active_requests.ts";
import { type LoadedModel, loadsItself, loadWithContexts } from "./loaded_model.ts";
import type { ServerCounts } from "./server_counts.ts";
import type { ServerLog } from "./server_log.ts";

/**
 * Where a server is in its life. `loading`: no model yet, or again none. `draining`: nothing new is taken. `failed`: the
 * model could not be loaded.
 */
export type ServerState = "loading" | "ready" | "draining" | "closed" | "failed";

/** How many times in a row to try to load the model again. */
const MAX_RELOADS = 3;
/** How long to wait for what still runs after `drainTimeout` to stop, in milliseconds. */
const STOP_MS = 1000;
/** How long to wait for the model to be freed, in milliseconds. */
const FREE_MS = 1500;

/** The model's life: loads it, loads it again when the engine has ended, lets requests end and frees it. */
export class LifeCycle {
  /** Resolves when the model is loaded for the first time; rejects where it cannot be. */
  readonly ready: Promise<void>;
  readonly #settings: Settings;
  readonly #requests: ActiveRequests;
  readonly #counts: ServerCounts;
  readonly #log: ServerLog;
  #state: ServerState = "loading";
  #loaded: LoadedModel | undefined;
  #loading: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  /** Contexts that have been asked for a sign of life. */
  readonly #asked = new Set<Context>();

  /**
   * Begins to load the model.
   *
   * @param settings The model, and how long things may take.
   * @param requests The requests that run on it.
   * @param counts Counts of contexts and reloads.
   * @param log Told what happens.
   */
  constructor(
    settings: Settings,
    requests: ActiveRequests,
    counts: ServerCounts,
    log: ServerLog,
  ) {
    this.#settings = settings;
    this.#requests = requests;
    this.#counts = counts;
    this.#log = log;
    this.ready = this.#load();
    this.ready.catch(() => {});
  }

  /** Where the server is in its life. */
  get state(): ServerState {
    this.look();
    return this.#state;
  }

  /** The model, if there is one. */
  get loaded(): LoadedModel | undefined {
    return this.#loaded;
  }

  /**
   * The model, for a request that needs it.
   *
   * @throws {ApiError} 503 if there is none.
   */
  need(): LoadedModel {
    const refusal = this.refusal();
    if (refusal) throw refusal;
    return this.#loaded!;
  }

  /** What requests are told while there is no model; undefined while there is one. */
  refusal(): ApiError | undefined {
    const { state } = this;
    if (state === "ready") return undefined;
    if (state === "loading") return unavailable("Loading model", 2);
    if (state === "failed") return new ApiError(503, "The model could not be loaded");
    return unavailable("The server is shutting down", 5);
  }

  #load(): Promise<void> {
    return this.#loading = (async () => {
      try {
        const again = this.#counts.reloads > 0;
        const loaded = await loadWithContexts(
          this.#settings,
          again,
          this.#requests.stopped,
          (what, entry) => this.#onContext(what, entry),
        );
        if (this.#closing) return void await this.#free(loaded);
        this.#loaded = loaded;
        this.#state = "ready";
        const { boot, model, plans } = loaded;
        this.#log.line(
          `model ready: loaded in ${boot.load_ms} ms, context in ${boot.context_ms} ms`,
        );
        this.#log.model(model.info);
        for (const { plan } of plans.names) this.#log.advise(plan);
      } catch (error) {
        if (this.#closing) return;
        this.#state = "failed";
        throw error;
      }
    })();
  }

  #onContext(what: "made" | "freed", entry: PoolEntry): void {
    if (what === "made") this.#counts.contextsMade++;
    else this.#counts.contextsFreed++;
    this.#log.line(`context of plan ${entry.plan.spec} (${entry.kind}) ${what}`);
    if (what === "freed") return;
    for (const text of entry.context!.info.warnings) this.#log.once(`warning: ${text}`);
  }

  async #free({ pool, model }: LoadedModel): Promise<void> {
    await pool.close(new EngineError("the server is closed"));
    if (loadsItself(this.#settings)) await model.dispose();
  }

  /** Sees whether the engine has ended, and if so loads the model again. */
  look(): void {
    const loaded = this.#loaded;
    if (!loaded || !loaded.model.disposed || this.#closing) return;
    this.#loaded = undefined;
    this.#state = "loading";
    loaded.pool.close(unavailable("Loading model", 2)).catch(() => {});
    if (!loadsItself(this.#settings)) {
      this.#state = "failed";
      return;
    }
    this.#counts.reloads++;
    this.#log.line("the engine ended unexpectedly; loading the model again");
    this.#reload().catch((error) =>
      this.#log.line(`the model cannot be loaded again: ${error.message}`)
    );
  }

  async #reload(): Promise<void> {
    for (let i = 1;; i++) {
      try {
        return await this.#load();
      } catch (error) {
        if (i >= MAX_RELOADS || this.#closing) throw error;
        this.#state = "loading";
        await new Promise((resolve) => setTimeout(resolve, 500 * i));
      }
    }
  }

  /**
   * Watches a context, one of whose requests was stopped. The request leaves at once, but what the context computes for it
   * may go on, in a grammar or a chain of samplers as good as forever, and hold up all others of that context. A context
   * that answers nothing for long ends the engine.
   *
   * @param context The context.
   */
  async watch(context: Context): Promise<void> {
    const loaded = this.#loaded;
    if (context.model !== loaded?.model || this.#asked.has(context)) return;
    this.#asked.add(context);
    const { stuckTimeout: seconds } = this.#settings;
    try {
      await context.request("/slots", undefined, { signal: AbortSignal.timeout(1000 * seconds) });
    } catch (error) {
      const isStuck = (error as Error).name === "TimeoutError" && loaded === this.#loaded;
      if (!isStuck || this.#closing) return;
      this.#log.line(`the engine has not answered for ${seconds} s and is taken to be stuck`);
      await loaded.model.dispose();
      this.look();
    } finally {
      this.#asked.delete(context);
    }
  }

  /** Takes nothing new, lets requests end within `drainTimeout`, stops the rest, frees the model. Harmless a second time. */
  close(): Promise<void> {
    return this.#closing ??= (async () => {
      if (this.#state !== "failed") this.#state = "draining";
      await this.#requests.idle(this.#settings.drainTimeout * 1000);
      this.#requests.stop(unavailable("The server is shutting down", 5));
      await this.#requests.idle(STOP_MS);
      await this.#loading?.catch(() => {});
      const loaded = this.#loaded;
      this.#loaded = undefined;
      if (loaded) await within(FREE_MS, this.#free(loaded));
      this.#state = "closed";
    })();
  }
}

/** Waits for a promise, but no longer than so many milliseconds. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => timer = setTimeout(resolve, ms));
  await Promise.race([promise.catch(() => {}), late]);
  clearTimeout(timer);
}
