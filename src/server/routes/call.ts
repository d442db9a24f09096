import { readJson } from "../http/read_body.ts";
import type { ActiveRequest } from "../life/active_request.ts";
import type { LifeCycle } from "../life/life_cycle.ts";
import type { ServerCounts } from "../life/server_counts.ts";
import type { ServerLog } from "../life/server_log.ts";
import type { JsonObject } from "../../json.ts";
import type { Settings } from "../options.ts";
import type { NamedPlan } from "../plans/plan_choice.ts";
import type { ItemStore } from "./item_store.ts";

/** What handlers know of the server. */
export interface ServerParts {
  /** Options, with their defaults. */
  readonly settings: Settings;
  /** The model and its life. */
  readonly life: LifeCycle;
  /** What has happened. */
  readonly counts: ServerCounts;
  /** Items of the last responses. */
  readonly items: ItemStore;
  /** Told what happens. */
  readonly log: ServerLog;
  /** When the server began, as `performance.now()` says it. */
  readonly startedAt: number;
}

/** A request for a route, as its handler gets it. */
export interface Call extends ServerParts {
  /** The request. */
  readonly request: Request;
  /** The path, as upstream calls it. */
  readonly path: string;
  /** What the path names, e.g. a model. */
  readonly name: string | undefined;
  /** The URL's query. */
  readonly query: URLSearchParams;
  /** The request's life. */
  readonly active: ActiveRequest;
}

/** An answer whose body goes on after its handler has returned. */
export interface Streaming {
  /** The answer. */
  readonly response: Response;
  /** Resolves with the end of its body; never rejects. */
  readonly ended: Promise<void>;
}

/** Answers requests for a route. What it throws becomes an answer with an error's status. */
export type Handler = (call: Call) => Response | Promise<Response | Streaming>;

/**
 * Reads the JSON object that a request carries.
 *
 * @param call The request.
 * @throws {ApiError} See {@linkcode readJson}.
 */
export async function bodyOf({ request, settings, active }: Call): Promise<JsonObject> {
  const { maxBodyBytes, bodyTimeout } = settings;
  const body = await readJson(request, maxBodyBytes, bodyTimeout, (n) => active.takeBytes(n));
  active.signal.throwIfAborted();
  return body;
}

/**
 * The plan that a request without a body asks for: by `repeat_layers` or `model` in its query.
 *
 * @param call The request.
 * @throws {ApiError} If there is no such plan.
 */
export function planByQuery({ life, query }: Call): NamedPlan {
  return life.need().plans.choose(query.get("model") ?? undefined, query.get("repeat_layers"));
}
