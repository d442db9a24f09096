/** What a route does. */
export type RouteKind =
  /** Lives without a model. */
  | "health"
  | "ready"
  | "ping"
  /** Generates text in a slot. */
  | "generate"
  /** Embeds texts. */
  | "embed"
  /** Ranks texts. */
  | "rerank"
  /** Asks upstream something that takes no slot. */
  | "ask"
  | "props"
  | "slots"
  | "slot"
  | "metrics"
  | "models"
  | "model"
  | "control"
  | "lora"
  | "plan"
  | "facts"
  | "refused";

/** A route, found. */
export interface Route {
  kind: RouteKind;
  /** Upstream's path. */
  path: string;
  /** What the path names, e.g. a model. */
  name?: string;
}

type Method = "GET" | "POST";

const TABLE: [Method, RouteKind, string[]][] = [
  ["GET", "health", ["/health", "/v1/health"]],
  ["GET", "ready", ["/ready"]],
  ["GET", "ping", ["/ping"]],
  ["POST", "generate", [
    "/completion",
    "/completions",
    "/v1/completions",
    "/chat/completions",
    "/v1/chat/completions",
    "/responses",
    "/v1/responses",
    "/v1/messages",
    "/infill",
  ]],
  ["POST", "embed", ["/embedding", "/embeddings", "/v1/embeddings"]],
  ["POST", "rerank", ["/rerank", "/reranking", "/v1/rerank", "/v1/reranking"]],
  ["POST", "ask", [
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/chat/completions/input_tokens",
    "/v1/chat/completions/input_tokens",
    "/responses/input_tokens",
    "/v1/responses/input_tokens",
    "/v1/messages/count_tokens",
  ]],
  ["GET", "props", ["/props"]],
  ["POST", "refused", ["/props", "/lora-adapters"]],
  ["GET", "slots", ["/slots"]],
  ["GET", "metrics", ["/metrics"]],
  ["GET", "models", ["/models", "/v1/models"]],
  ["POST", "control", ["/v1/chat/completions/control"]],
  ["GET", "lora", ["/lora-adapters"]],
  ["GET", "plan", ["/rys/plan"]],
  ["GET", "facts", ["/rys"]],
];

const ROUTES = new Map<string, Map<Method, RouteKind>>();
for (const [method, kind, paths] of TABLE) {
  for (const path of paths) {
    ROUTES.set(path, (ROUTES.get(path) ?? new Map<Method, RouteKind>()).set(method, kind));
  }
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
  const slot = /^\/slots\/(\d{1,9})$/.exec(path);
  if (slot) return as === "POST" ? { kind: "slot", path, name: slot[1]! } : ["POST"];
  const model = /^(?:\/v1)?\/models\/(.+)$/.exec(path);
  if (model) return as === "GET" ? { kind: "model", path, name: model[1]! } : ["GET"];
  const found = ROUTES.get(path);
  if (!found) return undefined;
  const kind = found.get(as as Method);
  return kind === undefined ? [...found.keys()] : { kind, path };
}
