import type { LifeCycle } from "../life/life_cycle.ts";
import { ask, tokens } from "./ask.ts";
import type { Handler } from "./call.ts";
import { control } from "./control.ts";
import { embed, rerank } from "./embed.ts";
import { generate } from "./generate.ts";
import { health, ping } from "./health.ts";
import { metrics } from "./metrics.ts";
import { model, models } from "./models.ts";
import { loraAdapters, props, unchangeable } from "./props.ts";
import { facts, plan } from "./rys.ts";
import { eraseSlot, slots } from "./slots.ts";

/** Answers to whoever looks after the server: without a key, and without a model. */
export type OpenHandler = (life: LifeCycle, request: Request) => Response;

/** A route, found. */
export type Route =
  | { readonly open: OpenHandler }
  | {
    readonly handle: Handler;
    /** The path, as upstream calls it. */
    readonly path: string;
    /** What the path names, e.g. a model. */
    readonly name?: string;
  };

type Method = "GET" | "POST";

const OPEN: readonly [OpenHandler, ...paths: string[]][] = [
  [health, "/health", "/v1/health", "/ready"],
  [ping, "/ping"],
];

const TABLE: readonly [Method, Handler, ...paths: string[]][] = [
  [
    "POST",
    generate,
    "/completion",
    "/completions",
    "/v1/completions",
    "/chat/completions",
    "/v1/chat/completions",
    "/responses",
    "/v1/responses",
    "/v1/messages",
    "/infill",
  ],
  ["POST", embed, "/embedding", "/embeddings", "/v1/embeddings"],
  ["POST", rerank, "/rerank", "/reranking", "/v1/rerank", "/v1/reranking"],
  ["POST", tokens, "/tokenize", "/detokenize"],
  [
    "POST",
    ask,
    "/apply-template",
    "/chat/completions/input_tokens",
    "/v1/chat/completions/input_tokens",
    "/responses/input_tokens",
    "/v1/responses/input_tokens",
    "/v1/messages/count_tokens",
  ],
  ["GET", props, "/props"],
  ["POST", unchangeable, "/props", "/lora-adapters"],
  ["GET", slots, "/slots"],
  ["GET", metrics, "/metrics"],
  ["GET", models, "/models", "/v1/models"],
  ["POST", control, "/v1/chat/completions/control"],
  ["GET", loraAdapters, "/lora-adapters"],
  ["GET", plan, "/rys/plan"],
  ["GET", facts, "/rys"],
];

/** Routes whose path names something. */
const NAMED: readonly [Method, Handler, RegExp][] = [
  ["POST", eraseSlot, /^\/slots\/(\d{1,9})$/],
  ["GET", model, /^(?:\/v1)?\/models\/(.+)$/],
];

const ROUTES = new Map<string, Map<Method, Route>>();
const add = (method: Method, path: string, route: Route) =>
  ROUTES.set(path, (ROUTES.get(path) ?? new Map<Method, Route>()).set(method, route));
for (const [open, ...paths] of OPEN) for (const path of paths) add("GET", path, { open });
for (const [method, handle, ...paths] of TABLE) {
  for (const path of paths) add(method, path, { handle, path });
}

/** All paths of requests. */
export const PATHS: readonly string[] = [...ROUTES.keys()];

/**
 * The route of a request.
 *
 * @param method Its method; HEAD is answered as GET.
 * @param path Its path; a slash at its end changes nothing.
 * @returns The route, the methods that there would be, or nothing.
 */
export function findRoute(method: string, path: string): Route | Method[] | undefined {
  const as = method === "HEAD" ? "GET" : method;
  path = path.replace(/(?<=.)\/+$/, "");
  for (const [its, handle, pattern] of NAMED) {
    const name = pattern.exec(path)?.[1];
    if (name !== undefined) return as === its ? { handle, path, name } : [its];
  }
  const found = ROUTES.get(path);
  return found?.get(as as Method) ?? (found && [...found.keys()]);
}
