import { EngineError } from "../engine/mod.ts";
import { ApiError, ClientGone, toApiError } from "./http/api_error.ts";
import { ApiKeys } from "./http/api_keys.ts";
import { withoutPrefix } from "./http/api_prefix.ts";
import { checkHead } from "./http/check_head.ts";
import { Cors } from "./http/cors.ts";
import { json } from "./http/json.ts";
import { ActiveRequests } from "./life/active_requests.ts";
import { LifeCycle, type ServerState } from "./life/life_cycle.ts";
import type { LoadedModel } from "./life/loaded_model.ts";
import { type ServerCounts, serverCounts } from "./life/server_counts.ts";
import { ServerLog } from "./life/server_log.ts";
import { type ServerOptions, type Settings, settings } from "./options.ts";
import { page } from "./page/page.ts";
import type { Call, ServerParts } from "./routes/call.ts";
import { ItemStore } from "./routes/item_store.ts";
import { findRoute, PATHS, type Route } from "./routes/routes.ts";
import { VERSION } from "./version.ts";

export type { ServerState };

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
export function loadedModelOf(server: RysServer): LoadedModel | undefined {
  return server instanceof Server ? server.loaded : undefined;
}

class Server implements RysServer {
  readonly #keys: ApiKeys;
  readonly #cors: Cors;
  readonly #counts: ServerCounts = serverCounts();
  readonly #log: ServerLog;
  readonly #requests: ActiveRequests;
  readonly #life: LifeCycle;
  readonly #parts: ServerParts;

  constructor(of: Settings) {
    this.#keys = new ApiKeys(of.apiKeys ?? []);
    this.#cors = new Cors(of.cors ?? false);
    this.#log = new ServerLog(of);
    this.#requests = new ActiveRequests(of);
    this.#life = new LifeCycle(of, this.#requests, this.#counts, this.#log);
    this.#parts = {
      settings: of,
      life: this.#life,
      counts: this.#counts,
      items: new ItemStore(),
      log: this.#log,
      startedAt: performance.now(),
    };
  }

  get state(): ServerState {
    return this.#life.state;
  }

  get ready(): Promise<void> {
    return this.#life.ready;
  }

  get loaded(): LoadedModel | undefined {
    return this.#life.loaded;
  }

  get inFlight(): number {
    return this.#requests.size;
  }

  async fetch(given: Request, _info?: FetchInfo): Promise<Response> {
    let cors: Record<string, string> = {};
    let path = "";
    try {
      const request = withoutPrefix(given, this.#parts.settings.apiPrefix);
      if (request === undefined) throw new ApiError(404, "File Not Found");
      path = new URL(request.url).pathname;
      checkHead(request);
      cors = this.#cors.check(request);
      if (request.method === "OPTIONS") return this.#cors.preflight(request, cors);
      const response = await this.#answer(request, path);
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
      this.#log.line(`request failed: ${said}`);
    }
    if (known.status === 503 && known.more.headers) this.#counts.refused++;
    const isAnthropic = path.startsWith("/v1/messages");
    const body = { ...isAnthropic ? { type: "error" } : {}, error: known.toJson() };
    return json(body, known.status, { ...headers, ...known.more.headers });
  }

  async #answer(request: Request, path: string): Promise<Response> {
    const file = this.#parts.settings.page ? page(request) : undefined;
    if (file) return file;
    const route = findRoute(request.method, path);
    if (route && "open" in route) return route.open(this.#life, request);
    if (!this.#keys.allow(request.headers)) {
      throw new ApiError(401, "Invalid API Key", { headers: { "www-authenticate": "Bearer" } });
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
    return await this.#run(request, route);
  }

  /** Lets a route's handler answer, for as long as the request lives. */
  async #run(request: Request, route: Exclude<Route, { open: unknown }>): Promise<Response> {
    this.#life.need(); // before the body is read
    this.#counts.requests++;
    const active = this.#requests.begin(request.signal);
    let streams = false;
    try {
      const call: Call = {
        ...this.#parts,
        request,
        path: route.path,
        name: route.name,
        query: new URL(request.url).searchParams,
        active,
      };
      const answer = await route.handle(call);
      if (answer instanceof Response) return answer;
      active.streamUntil(answer.ended);
      streams = true;
      return answer.response;
    } catch (error) {
      const isFatal = error instanceof EngineError && error.fatal;
      if (isFatal) this.#life.look();
      if (isFatal || !active.signal.aborted) throw error;
      if (active.clientHasGone) this.#counts.cancelled++;
      throw active.signal.reason;
    } finally {
      if (!streams) active.end();
    }
  }

  close(): Promise<void> {
    return this.#life.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
