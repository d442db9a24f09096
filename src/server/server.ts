import { type Context, EngineError, type ModelInfo } from "../engine/mod.ts";
import { type EffectivePlan, planHashHex } from "../plan/mod.ts";
import { estimateFacts } from "./plans/plan_facts.ts";
import { cleanError, eventMarker, markAnswer, type Ran, ran, shortSpec } from "./routes/answer.ts";
import { ApiError, ClientGone, toApiError, unavailable, withoutPlaces } from "./http/api_error.ts";
import { withoutPrefix } from "./http/api_prefix.ts";
import { ApiKeys } from "./http/api_keys.ts";
import { checkBody, checkTexts } from "../engine/check_body.ts";
import { askContexts } from "./plans/ask_contexts.ts";
import { checkFields } from "./checks/check_fields.ts";
import { checkFormats } from "./checks/check_formats.ts";
import { checkShape, chooseTool, leavesOutTools } from "./checks/check_shape.ts";
import { Cors } from "./http/cors.ts";
import { errorEvent } from "./http/error_event.ts";
import { explainFault } from "./checks/explain_fault.ts";
import { ItemStore } from "./routes/item_store.ts";
import { unknownFields } from "./checks/known_fields.ts";
import { leftOutTools } from "./checks/left_out_tools.ts";
import { metricsText, type ServerCounts } from "./routes/metrics.ts";
import { type Host, loadHost, loadsItself, modelName } from "./life/model_host.ts";
import { type ServerOptions, type Settings, settings } from "./options.ts";
import { Outgoing } from "./http/outgoing.ts";
import { page } from "./page/page.ts";
import type { NamedPlan } from "./plans/plan_choice.ts";
import type { ContextKind, Lease } from "./plans/plan_pool.ts";
import { BodyBudget, readJson } from "./http/read_body.ts";
import { responseFields } from "./routes/response_fields.ts";
import { findRoute, PATHS, type Route } from "./routes/routes.ts";
import { schemaWarnings } from "./checks/schema_warnings.ts";
import { VERSION } from "./version.ts";

/**
 * Where a server is in its life. `loading`: no model yet, or again none. `draining`: nothing new is taken. `failed`: the
 * model could not be loaded.
 */
export type ServerState = "loading" | "ready" | "draining" | "closed" | "failed";

/** What is known of where a request came from; Deno's own object fits. */
export interface FetchInfo {
  /** The other end of the connection. */
  remoteAddr?: unknown;
}

/** A server without a socket: takes a `Request`, gives a `Response`. */
export interface RysServer extends AsyncDisposable {
  /** Where it is in its life. */
  readonly state: ServerState;
  /** Resolves when the model is loaded for the first time; rejects where it cannot be. */
  readonly ready: Promise<void>;
  /** Requests that run or wait. */
  readonly inFlight: number;
  /**
   * Answers a request. Never rejects: what goes wrong is an answer with an error's status.
   *
   * @param request The request; its `signal` stops what it asked for.
   * @param info Where it came from.
   */
  fetch(request: Request, info?: FetchInfo): Promise<Response>;
  /**
   * Takes nothing new, lets what runs end within `drainTimeout`, stops the rest, frees the model. Harmless a second time.
   */
  close(): Promise<void>;
}

/**
 * Makes a server and begins to load its model. It answers at once: `/health` with 503 until the model is there.
 *
 * @param options Model, plans, limits.
 * @throws {TypeError | RangeError} If an option is wrong.
 *
 * @example
 * ```ts
 * import { createServer } from "@rys/edge/serve";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = createServer({ model: "models/demo.gguf", nCtx: 512 });
 * assertEquals((await server.fetch(new Request("http://localhost/health"))).status, 503);
 * await server.ready;
 * assertEquals((await server.fetch(new Request("http://localhost/health"))).status, 200);
 * ```
 */
export function createServer(options: ServerOptions): RysServer {
  return new Server(settings(options));
}

/**
 * The model behind a server, for tests that look inside.
 *
 * @param server The server.
 * @returns Nothing while there is no model.
 */
export function hostOf(server: RysServer): Host | undefined {
  return server instanceof Server ? server.host : undefined;
}

/** Characters of a request's URL, and of its headers in all. */
const MAX_URL = 8192;
const MAX_HEADERS = 64 << 10;
/** How long a context may take to say its numbers. */
const METRICS_MS = 2000;
/** Times in a row that loading the model again is tried. */
const MAX_RELOADS = 3;
/** Bytes of the bodies of all requests under way. */
const MAX_BODIES = 256 << 20;
/** What is left after `drainTimeout` to stop what still runs, in milliseconds. */
const STOP_MS = 1000;
/** Plans whose warnings are remembered as logged. */
const MAX_ADVISED = 1000;
/** How long freeing the model is waited for, in milliseconds. */
const FREE_MS = 1500;

const json = (value: unknown, status = 200, headers: Record<string, string> = {}) =>
  Response.json(value, { status, headers });

class Server implements RysServer {
  readonly ready: Promise<void>;
  readonly #settings: Settings;
  readonly #keys: ApiKeys;
  readonly #cors: Cors;
  readonly #counts: ServerCounts = {
    requests: 0,
    refused: 0,
    failed: 0,
    cancelled: 0,
    contextsMade: 0,
    contextsFreed: 0,
    reloads: 0,
  };
  /** Aborted when requests have had their time to end. */
  readonly #stop = new AbortController();
  readonly #bodies: BodyBudget;
  readonly #items = new ItemStore();
  readonly #startedAt = performance.now();
  #state: ServerState = "loading";
  #host: Host | undefined;
  #loading: Promise<void> | undefined;
  #why = "";
  /** Hashes of the plans whose warnings are logged. */
  readonly #advised = new Set<string>();
  readonly #told = new Set<string>();
  #toldOfTools = false;
  #inFlight = 0;
  #idle: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(of: Settings) {
    this.#settings = of;
    this.#keys = new ApiKeys(of.apiKeys ?? []);
    this.#bodies = new BodyBudget(Math.max(MAX_BODIES, of.maxBodyBytes));
    this.#cors = new Cors(of.cors ?? false);
    this.ready = this.#load();
    this.ready.catch(() => {});
  }

  get state(): ServerState {
    this.#look();
    return this.#state;
  }

  get host(): Host | undefined {
    return this.#host;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  #log(line: string): void {
    try {
      this.#settings.onLog?.(line);
    } catch {
      // A log that throws ends no request.
    }
  }

  /** Logs a plan's warnings, once. */
  #advise(plan: EffectivePlan): void {
    if (plan.advisories.length === 0) return;
    const hash = planHashHex(plan.layers);
    if (this.#advised.has(hash)) return;
    if (this.#advised.size >= MAX_ADVISED) this.#advised.clear();
    this.#advised.add(hash);
    for (const text of plan.advisories) this.#log(`plan ${shortSpec(plan)}: ${text}`);
  }

  /** Logs a warning, once. */
  #tell(text: string): void {
    if (this.#told.has(text)) return;
    this.#told.add(text);
    this.#log(`warning: ${text}`);
  }

  #tellModel(info: ModelInfo): void {
    try {
      this.#settings.onModel?.(info);
    } catch {
      // Who is told ends no server.
    }
  }

  #load(): Promise<void> {
    return this.#loading = (async () => {
      try {
        const again = this.#counts.reloads > 0;
        const host = await loadHost(this.#settings, again, this.#stop.signal, (what, entry) => {
          if (what === "made") this.#counts.contextsMade++;
          else this.#counts.contextsFreed++;
          this.#log(`context of plan ${entry.plan.spec} (${entry.kind}) ${what}`);
          if (what === "made") {
            for (const text of entry.context!.info.warnings) this.#tell(text);
          }
        });
        if (this.#closing) return void await this.#free(host);
        this.#host = host;
        this.#state = "ready";
        this.#log(
          `model ready: loaded in ${host.boot.load_ms} ms, context in ${host.boot.context_ms} ms`,
        );
        this.#tellModel(host.model.info);
        for (const { plan } of host.plans.names) this.#advise(plan);
      } catch (error) {
        if (this.#closing) return;
        this.#why = error instanceof Error ? error.message : String(error);
        this.#state = "failed";
        throw error;
      }
    })();
  }

  async #free(host: Host): Promise<void> {
    const gone = new EngineError("the server is closed");
    await host.pool.close(gone);
    if (loadsItself(this.#settings)) await host.model.dispose();
  }

  /** Sees whether the engine's instance has ended, and then loads the model again. */
  #look(): void {
    const host = this.#host;
    if (!host || !host.model.disposed || this.#closing) return;
    this.#host = undefined;
    this.#state = "loading";
    host.pool.close(unavailable("Loading model", 2)).catch(() => {});
    if (!loadsItself(this.#settings)) {
      this.#state = "failed";
      this.#why = "the model is disposed";
      return;
    }
    this.#counts.reloads++;
    this.#log("the engine ended unexpectedly; loading the model again");
    this.#reload().catch((error) =>
      this.#log(`the model cannot be loaded again: ${error.message}`)
    );
  }

  /** Contexts that are asked for a sign of life. */
  readonly #asked = new Set<Context>();

  /**
   * A stopped request leaves at once, but what its context computes for it may go on, in a grammar or a chain of samplers
   * for as good as ever, and holds up all others of that context. One that answers nothing for long ends the engine.
   */
  async #watch(host: Host, context: Context): Promise<void> {
    if (this.#asked.has(context)) return;
    this.#asked.add(context);
    const seconds = this.#settings.stuckTimeout;
    try {
      await context.request("/slots", undefined, { signal: AbortSignal.timeout(1000 * seconds) });
    } catch (error) {
      if ((error as Error).name !== "TimeoutError" || host !== this.#host || this.#closing) return;
      this.#log(`the engine has not answered for ${seconds} s: it is taken for stuck`);
      await host.model.dispose();
      this.#look();
    } finally {
      this.#asked.delete(context);
    }
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

  async fetch(given: Request, _info?: FetchInfo): Promise<Response> {
    let cors: Record<string, string> = {};
    let path = "";
    try {
      const request = withoutPrefix(given, this.#settings.apiPrefix);
      if (request === undefined) throw new ApiError(404, "File Not Found");
      path = new URL(request.url).pathname;
      checkHead(request);
      cors = this.#cors.check(request);
      if (request.method === "OPTIONS") return this.#cors.preflight(request, cors);
      const response = await this.#route(request, path);
      for (const [name, value] of Object.entries(cors)) response.headers.set(name, value);
      return response;
    } catch (error) {
      return this.#errorResponse(error, path, cors);
    }
  }

  #errorResponse(error: unknown, path: string, headers: Record<string, string>): Response {
    if (error instanceof ClientGone || (error as Error)?.name === "AbortError") {
      return new Response(null, { status: 499, headers });
    }
    const known = toApiError(error);
    if (known.status === 500) {
      this.#counts.failed++;
      const said = error instanceof Error ? error.stack ?? error.message : String(error);
      this.#log(`request failed: ${said}`);
    }
    if (known.status === 503 && known.more.headers) this.#counts.refused++;
    const isAnthropic = path.startsWith("/v1/messages");
    const body = { ...isAnthropic ? { type: "error" } : {}, error: known.toJson() };
    return json(body, known.status, { ...headers, ...known.more.headers });
  }

  async #route(request: Request, path: string): Promise<Response> {
    if (this.#settings.page) {
      const file = page(request);
      if (file) return file;
    }
    const route = findRoute(request.method, path);
    if (route !== undefined && !Array.isArray(route)) {
      switch (route.kind) {
        case "health":
          return this.#health(request);
        case "ready":
          return this.#health(request);
        case "ping":
          return this.#ping();
      }
    }
    if (!this.#keys.allow(request.headers)) {
      throw new ApiError(401, "Invalid API Key", {
        headers: { "www-authenticate": "Bearer" },
      });
    }
    if (route === undefined) {
      if (path === "/") return json({ name: "rys-edge", version: VERSION, routes: PATHS });
      throw new ApiError(404, "File Not Found");
    }
    if (Array.isArray(route)) {
      throw new ApiError(405, `${path} takes ${route.join(" or ")} requests`, {
        headers: { allow: route.join(", ") },
      });
    }
    return await this.#serve(request, route);
  }

  #health(request: Request): Response {
    this.#look();
    const head = request.method === "HEAD";
    if (this.#state === "ready") return head ? new Response(null) : json({ status: "ok" });
    const error = this.#unready();
    return head
      ? new Response(null, { status: error.status })
      : json({ error: error.toJson() }, error.status, error.more.headers);
  }

  /** Runpod's way: 204 while it begins, 200 when it works. */
  #ping(): Response {
    this.#look();
    if (this.#state === "ready") return json({ status: "healthy" });
    if (this.#state === "loading") return new Response(null, { status: 204 });
    const error = this.#unready();
    return json({ error: error.toJson() }, error.status, error.more.headers);
  }

  #unready(): ApiError {
    if (this.#state === "loading") return unavailable("Loading model", 2);
    if (this.#state === "failed") return new ApiError(503, "The model could not be loaded");
    return unavailable("The server is shutting down", 5);
  }

  #ready(): Host {
    this.#look();
    if (this.#state !== "ready" || !this.#host) throw this.#unready();
    return this.#host;
  }

  async #serve(request: Request, route: Route): Promise<Response> {
    this.#ready(); // before the body is read
    this.#counts.requests++;
    const job = new Job(request.signal, this.#stop.signal, this.#settings.requestTimeout, () => {
      this.#bodies.give(job.bytes);
      this.#inFlight--;
      if (this.#inFlight === 0) this.#idle?.();
    });
    this.#inFlight++;
    let handed = false;
    try {
      const response = await this.#handle(request, route, job, () => handed = true);
      return response;
    } catch (error) {
      handed = false;
      if (job.signal.aborted && !(error instanceof EngineError && error.fatal)) {
        if (request.signal.aborted) this.#counts.cancelled++;
        throw job.signal.reason;
      }
      if (error instanceof EngineError && error.fatal) this.#look();
      throw error;
    } finally {
      if (!handed) job.end();
    }
  }

  async #handle(
    request: Request,
    route: Route,
    job: Job,
    hand: () => void,
  ): Promise<Response> {
    const host = this.#ready();
    const { pool, plans } = host;
    const query = new URL(request.url).searchParams;
    const byQuery = () => plans.choose(query.get("model") ?? undefined, query.get("repeat_layers"));
    switch (route.kind) {
      case "generate":
      case "embed":
      case "rerank":
      case "ask":
      case "control": {
        const body = await readJson(
          request,
          this.#settings.maxBodyBytes,
          this.#settings.bodyTimeout,
          (bytes) => {
            this.#bodies.take(bytes);
            job.bytes += bytes;
          },
        );
        job.signal.throwIfAborted();
        return await this.#post(this.#ready(), route, body, job, hand);
      }
      case "slot": {
        if (query.get("action") !== "erase") {
          throw new ApiError(
            501,
            `This server offers the action "erase" alone; it keeps no files of slots`,
          );
        }
        const slot = Number(route.name);
        if (slot >= this.#settings.nParallel) {
          throw new ApiError(
            400,
            `There is no slot ${slot}; there are 0..${this.#settings.nParallel - 1}`,
          );
        }
        return await this.#ask(host, byQuery(), `${route.path}?action=erase`, {}, job);
      }
      case "refused":
        throw new ApiError(501, "This server's properties are not changed by requests");
      case "props":
      case "lora":
        return await this.#ask(host, byQuery(), route.path, undefined, job, (answer) => {
          if (route.kind !== "props" || typeof answer !== "object" || answer === null) return;
          Object.assign(answer, {
            model_path: modelName(this.#settings, host.model),
            model_alias: plans.base.name,
            endpoint_slots: this.#settings.slots,
            rys: this.#facts(host),
          });
        });
      case "slots": {
        if (!this.#settings.slots) {
          throw new ApiError(
            501,
            "This server does not show its slots: it was started with --no-slots",
          );
        }
        const slots: unknown[] = [];
        const texts = pool.entries.filter(({ kind }) => kind === "text");
        for await (const { entry, text } of askContexts(texts, "/slots", job.signal)) {
          for (const slot of JSON.parse(text)) {
            slots.push({ ...slot, rys: { plan: entry.plan.spec } });
          }
        }
        const isFull = slots.every((slot) => (slot as { is_processing: boolean }).is_processing);
        if (query.get("fail_on_no_slot") && isFull) throw unavailable("no slot available", 1);
        return json(slots);
      }
      case "metrics":
        return await this.#metrics(host, job);
      case "models":
        return await this.#ask(host, plans.base, "/v1/models", undefined, job, (answer) => {
          const list = answer as {
            data: Record<string, unknown>[];
            models: Record<string, unknown>[];
          };
          const [model] = list.data;
          list.data = plans.names.map(({ name, plan }) => ({
            ...model,
            id: name,
            aliases: [],
            rys: ran(name, plan).rys,
          }));
          const [entry] = list.models;
          list.models = plans.names.map(({ name }) => ({ ...entry, name, model: name }));
          Object.assign(list, { rys: this.#facts(host) });
        });
      case "model": {
        const name = decode(route.name!);
        const named = plans.names.find((one) => one.name === name) ??
          (name.includes("@") ? plans.choose(name, undefined) : undefined);
        if (!named) {
          throw new ApiError(404, `There is no model ${JSON.stringify(name.slice(0, 100))}`);
        }
        return await this.#ask(host, plans.base, "/v1/models", undefined, job, (answer) => {
          const { data } = answer as { data: Record<string, unknown>[] };
          return { ...data[0], id: named.name, rys: ran(named.name, named.plan).rys };
        });
      }
      case "plan": {
        const spec = query.get("spec");
        const { plan } = plans.choose(query.get("model") ?? undefined, spec === "" ? null : spec);
        return json(estimateFacts(host, plan));
      }
      case "facts":
        return json(this.#facts(host));
      default:
        throw new ApiError(404, "File Not Found");
    }
  }

  /** What a page or a client may want to know of the server. */
  #facts(host: Host): Record<string, unknown> {
    const { model, plans, pool, boot } = host;
    const { plan } = plans.base;
    const { gpu, gpuWhy } = model.info;
    return {
      version: VERSION,
      model: plans.base.name,
      desc: model.info.desc,
      architecture: model.info.arch,
      n_layer: model.info.nLayer,
      n_layer_eff: plan.nLayerEff,
      plan: plan.spec,
      advisories: plan.advisories,
      aliases: Object.fromEntries(plans.aliases.map(({ name, plan }) => [name, plan.spec])),
      n_ctx: pool.entries[0]?.context?.info.nCtx ?? null,
      n_parallel: this.#settings.nParallel,
      max_contexts: this.#settings.maxContexts,
      contexts: pool.entries.map(({ kind, plan, context, running, waiting }) => ({
        kind,
        plan: plan.spec,
        n_layer_eff: plan.nLayerEff,
        kv_bytes: context?.info.kvBytes ?? null,
        recurrent_bytes: context?.info.recurrentBytes ?? null,
        compute_bytes: context?.info.computeBytes ?? null,
        running,
        waiting,
      })),
      queued: pool.queued,
      running: pool.running,
      device: gpu ? "gpu" : "cpu",
      gpu: gpu && {
        vendor: gpu.vendor,
        description: gpu.description,
        software: gpu.software,
        layers: gpu.layers,
        bytes: gpu.bytes,
        cpu_bytes: gpu.cpuBytes,
      },
      gpu_why: withoutPlaces(gpuWhy),
      model_bytes: model.info.modelBytes,
      boot,
      up_ms: Math.round(performance.now() - this.#startedAt),
      deno: Deno.version.deno,
    };
  }

  async #metrics(host: Host, job: Job): Promise<Response> {
    const { pool } = host;
    const contexts = [];
    for await (
      const { entry, text } of askContexts(pool.entries, "/metrics", job.signal, METRICS_MS)
    ) {
      contexts.push({ labels: { plan: entry.plan.spec, kind: entry.kind }, text });
    }
    const text = metricsText(this.#counts, {
      queued: pool.queued,
      running: pool.running,
      contexts: pool.entries.length,
      contextBytes: pool.bytes,
      ready: this.#state === "ready" ? 1 : 0,
    }, contexts);
    return new Response(text, { headers: { "content-type": "text/plain; version=0.0.4" } });
  }

  /** A question to upstream that takes no slot; `change` may change the answer, or give another. */
  async #ask(
    host: Host,
    named: NamedPlan,
    path: string,
    body: unknown,
    job: Job,
    change: (answer: unknown) => unknown = () => undefined,
  ): Promise<Response> {
    const lease = await host.pool.acquire("text", named.plan, job.signal, false);
    try {
      const { status, body: bytes } = await lease.context.request(path, body, {
        signal: job.signal,
      });
      const answer = JSON.parse(new TextDecoder().decode(bytes));
      if (status !== 200) return upstreamError(answer, status, path, body);
      return json(change(answer) ?? answer);
    } finally {
      lease.release();
    }
  }

  async #post(
    host: Host,
    route: Route,
    body: Record<string, unknown>,
    job: Job,
    hand: () => void,
  ): Promise<Response> {
    const { repeat_layers: repeatLayers, ...rest } = body;
    const named = host.plans.choose(body.model, repeatLayers);
    const isResponse = /\/responses(?:\/input_tokens)?$/.test(route.path);
    if (isResponse) rest.input = this.#items.resolve(rest.input);
    const facts = { nVocab: host.model.info.nVocab, nParallel: this.#settings.nParallel };
    if (route.kind === "control") return await this.#control(host, rest, job);
    if (route.kind === "embed" || route.kind === "rerank") checkTexts(rest, facts);
    else checkBody(rest, facts);
    checkShape(route.path, rest);
    checkFields(route.path, rest, { ...facts, nEmbd: host.model.info.nEmbd });
    checkFormats(route.path, rest);
    chooseTool(rest);
    const warnings = [...unknownFields(route.path, rest), ...schemaWarnings(rest)];
    if (!host.hasTools && leavesOutTools(route.path, rest) && !this.#toldOfTools) {
      this.#toldOfTools = true;
      this.#log("a request has tools; the model's chat template has none, so they are left out");
    }
    if (route.kind === "rerank" && !host.canRank) {
      throw new ApiError(
        501,
        `This model does not rank texts; serve a reranking model, whose GGUF file has the pooling type "rank" ` +
          `(serve --pooling rank -m FILE)`,
      );
    }
    this.#advise(named.plan);
    if (route.kind === "ask") {
      return await this.#ask(host, named, route.path, rest, job, (answer) => {
        if (route.path !== "/tokenize" && route.path !== "/detokenize") {
          markAnswer(answer, ran(named.name, named.plan, undefined, warnings));
        } else if (warnings.length > 0) return { ...answer as object, rys: { warnings } };
      });
    }
    const kind: ContextKind = route.kind === "embed"
      ? "embeddings"
      : route.kind === "rerank"
      ? "rerank"
      : "text";
    let seed: number | undefined;
    if (route.kind === "generate") {
      const given = rest.seed ?? this.#settings.seed;
      seed = typeof given === "number" && given >= 0
        ? given
        : crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1;
      rest.seed = seed;
      if (typeof rest.n_probs === "number") rest.n_probs = Math.min(rest.n_probs, facts.nVocab);
    }
    const what = ran(named.name, named.plan, seed, warnings);
    if (isResponse) {
      what.fields = responseFields(body);
      const left = leftOutTools(body.tools);
      if (left.length > 0) what.rys.warnings = [...what.rys.warnings ?? [], ...left];
      if (body.store !== false) what.keep = (output) => this.#items.keep(output);
    }
    const lease = await host.pool.acquire(kind, named.plan, job.signal);
    return await this.#run(host, lease, route, rest, what, job, hand);
  }

  /** Hands a request to upstream, and its answer on as it comes. */
  async #run(
    host: Host,
    lease: Lease,
    route: Route,
    body: Record<string, unknown>,
    what: Ran,
    job: Job,
    hand: () => void,
  ): Promise<Response> {
    const head = Promise.withResolvers<{ status: number; contentType: string }>();
    let out: Outgoing | undefined;
    let early: Uint8Array[] = [];
    const mark = eventMarker(what);
    const running = lease.context.request(route.path, body, {
      signal: job.signal,
      onHead: (status, contentType) => {
        if (contentType.startsWith("text/event-stream")) {
          // Here and not after the await below: the body follows at once.
          out = new Outgoing(this.#settings.readTimeout, (why) => job.abort(new ClientGone(why)));
        }
        head.resolve({ status, contentType });
      },
      onChunk: (bytes) => {
        if (out) out.write(mark(bytes));
        else early.push(bytes);
      },
    }).finally(() => {
      if (job.signal.aborted) this.#watch(host, lease.context).catch(() => {});
      lease.release();
    });
    running.catch(() => {});
    running.then(() => {}, head.reject);
    await Promise.race([head.promise, running]);
    if (!out) {
      await running;
      const { status } = await head.promise;
      const answer = JSON.parse(new TextDecoder().decode(join(early)));
      early = [];
      if (status !== 200) return upstreamError(answer, status, route.path, body);
      markAnswer(answer, what);
      return json(answer);
    }
    const stream = out;
    running.then(() => stream.write(mark()), (error) => {
      const cause = job.signal.aborted && !(error instanceof EngineError && error.fatal)
        ? job.signal.reason
        : error;
      if (cause instanceof ClientGone) this.#counts.cancelled++;
      else stream.write(mark(new TextEncoder().encode(errorEvent(cause, route.path))));
      if (error instanceof EngineError && error.fatal) {
        this.#counts.failed++;
        this.#log(`request failed: ${error.message}`);
        this.#look();
      }
    }).finally(() => {
      stream.end();
      job.end();
    });
    hand();
    job.detach();
    return new Response(stream.stream, {
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
      },
    });
  }

  /** Reaches a running chat by its id, whichever plan it runs on. */
  async #control(host: Host, body: Record<string, unknown>, job: Job): Promise<Response> {
    let last: { answer: unknown; status: number } | undefined;
    for (const entry of host.pool.entries) {
      const { context } = entry;
      if (entry.kind !== "text" || !context || context.disposed) continue;
      let answer: Awaited<ReturnType<Context["request"]>>;
      try {
        answer = await context.request("/v1/chat/completions/control", body, {
          signal: job.signal,
        });
      } catch (error) {
        if (host.model.disposed || !context.disposed) throw error;
        continue; // freed meanwhile: what it ran has ended
      }
      const { status, body: bytes } = answer;
      last = { answer: JSON.parse(new TextDecoder().decode(bytes)), status };
      if (status === 200 && (last.answer as { success?: unknown }).success !== false) break;
    }
    if (!last) throw unavailable("Loading model", 2);
    return last.status === 200 ? json(last.answer) : upstreamError(last.answer, last.status, "");
  }

  close(): Promise<void> {
    return this.#closing ??= (async () => {
      if (this.#state !== "failed") this.#state = "draining";
      await this.#drained(this.#settings.drainTimeout * 1000);
      this.#stop.abort(unavailable("The server is shutting down", 5));
      await this.#drained(STOP_MS);
      await this.#loading?.catch(() => {});
      const host = this.#host;
      this.#host = undefined;
      if (host) await within(FREE_MS, this.#free(host));
      this.#state = "closed";
    })();
  }

  /** Waits until nothing runs, at most so long. */
  async #drained(ms: number): Promise<void> {
    if (this.#inFlight === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    this.#idle = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** What one request holds while it is answered: its signal, its time, its place among those in flight. */
class Job {
  /** Bytes of its body. */
  bytes = 0;
  readonly #abort = new AbortController();
  readonly #client: AbortSignal;
  readonly #server: AbortSignal;
  readonly #onClient = () => this.abort(new ClientGone("the client is gone"));
  readonly #onServer = () => this.abort(this.#server.reason);
  readonly #timer: ReturnType<typeof setTimeout>;
  #onEnd: (() => void) | undefined;

  constructor(client: AbortSignal, server: AbortSignal, seconds: number, onEnd: () => void) {
    this.#client = client;
    this.#server = server;
    this.#onEnd = onEnd;
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

  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  /**
   * Hears the client's signal no more: Deno's aborts also when an answer was read to its end, and the stream's own cancel
   * tells of a client that leaves.
   */
  detach(): void {
    this.#client.removeEventListener("abort", this.#onClient);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.detach();
    this.#server.removeEventListener("abort", this.#onServer);
    this.#onEnd?.();
    this.#onEnd = undefined;
  }
}

/** Waits for a promise, but no longer than so many milliseconds. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => timer = setTimeout(resolve, ms));
  await Promise.race([promise.catch(() => {}), late]);
  clearTimeout(timer);
}

function checkHead(request: Request): void {
  if (request.url.length > MAX_URL) {
    throw new ApiError(414, `The URL is longer than ${MAX_URL} characters`);
  }
  let n = 0;
  for (const [name, value] of request.headers) n += name.length + value.length;
  if (n > MAX_HEADERS) {
    throw new ApiError(431, `The headers are longer than ${MAX_HEADERS} characters`);
  }
}

/** An error of upstream's as an answer. */
function upstreamError(
  answer: unknown,
  status: number,
  path: string,
  request?: unknown,
): Response {
  const body = answer as { error?: unknown };
  if (typeof body?.error === "object" && body.error !== null) {
    const error = body.error as Record<string, unknown>;
    cleanError(error);
    Object.assign(error, explainFault(String(error.message), request));
    if (status === 500 && !isInner(String(error.message))) {
      status = 400;
      Object.assign(error, { code: status, type: "invalid_request_error" });
    }
    if (path.startsWith("/v1/messages")) return json({ type: "error", ...body }, status);
  }
  return json(answer, status);
}

/**
 * Whether an error of upstream's is of the server itself. The others of its "server errors" are thrown while a request is
 * read, e.g. by a chat template that refuses the messages.
 */
function isInner(message: string): boolean {
  return /^(?:got exception|context shift|the current context|unable to|invalid input batch|context size|compute)/i
    .test(message) || /\b(?:memory|alloc)/i.test(message);
}

function join(parts: Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const bytes = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
