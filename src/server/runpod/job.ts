import { isObject } from "../../json.ts";

/** A job as the host hands it out. */
export interface Job {
  /** Its name at the host. */
  readonly id: string;
  /** What the caller sent. */
  readonly input: unknown;
}

/** The form in which a job's caller expects its answer. */
export type AnswerForm =
  /** The server's JSON; of a stream, its objects. */
  | "objects"
  /** A list of one JSON object; of a stream, its events as text. What `openai_route` callers expect. */
  | "events"
  /** A list of `{ choices: [{ tokens }], usage: { input, output } }`, as vLLM's worker gives for `sampling_params`, with the plan. */
  | "tokens";

/** A job as a request to the server. */
export interface JobRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body: Record<string, unknown> | undefined;
  readonly form: AnswerForm;
}

/** A job's input that cannot be a request. */
export class JobInputError extends TypeError {
  override name = "JobInputError";
}

/** Routes that a job may ask for: those that compute or tell, none that changes the server. */
const ROUTES: Readonly<Record<string, "GET" | "POST">> = {
  "/v1/models": "GET",
  "/v1/chat/completions": "POST",
  "/v1/completions": "POST",
  "/v1/responses": "POST",
  "/v1/messages": "POST",
  "/v1/messages/count_tokens": "POST",
  "/v1/embeddings": "POST",
  "/v1/rerank": "POST",
  "/completion": "POST",
  "/embedding": "POST",
  "/reranking": "POST",
  "/infill": "POST",
  "/tokenize": "POST",
  "/detokenize": "POST",
  "/apply-template": "POST",
};

/** vLLM's names of sampling parameters that llama.cpp calls otherwise. */
const RENAMED: Readonly<Record<string, string>> = {
  repetition_penalty: "repeat_penalty",
};

/** vLLM's parameters that would change the answer, but that nothing here can do, with the value that asks for nothing. */
const UNKNOWN_HERE: Readonly<Record<string, unknown>> = {
  best_of: 1,
  use_beam_search: false,
  length_penalty: 1,
  min_tokens: 0,
  stop_token_ids: [],
  bad_words: [],
  include_stop_str_in_output: false,
  prompt_logprobs: null,
};

/** Fields beside `sampling_params` that say how vLLM's worker groups tokens; here a part is what has come so far. */
const GROUPING = ["max_batch_size", "min_batch_size", "batch_size_growth_factor"];

/**
 * The request that a job's input asks for. Three forms are read:
 *
 * - `{ openai_route, openai_input }`, which Runpod's OpenAI address sends;
 * - `{ prompt | messages, sampling_params, stream }`, as vLLM's worker has it;
 * - the body of an OpenAI request: `messages` is a chat, `prompt` a completion, `input` an embedding, `query` with
 *   `documents` a ranking.
 *
 * `model` and `repeat_layers` choose the plan in all of them.
 *
 * @param input The job's input.
 * @returns The request.
 * @throws {JobInputError} If it is none of these.
 */
export function jobRequest(input: unknown): JobRequest {
  const fields = object(input, "input");
  if (fields["openai_route"] !== undefined) return routeRequest(fields);
  if (fields["sampling_params"] !== undefined) return samplingRequest(fields);
  const path = "messages" in fields
    ? "/v1/chat/completions"
    : "prompt" in fields
    ? "/v1/completions"
    : "input" in fields
    ? "/v1/embeddings"
    : "query" in fields && "documents" in fields
    ? "/v1/rerank"
    : undefined;
  if (path === undefined) {
    const names = Object.keys(fields).slice(0, 8).join(", ") || "nothing";
    throw new JobInputError(
      `input has ${names}; expected messages, prompt, input, query with documents, or openai_route with openai_input`,
    );
  }
  return { method: "POST", path, body: fields, form: "objects" };
}

function routeRequest(fields: Record<string, unknown>): JobRequest {
  const route = fields["openai_route"];
  const path = typeof route === "string" && !route.startsWith("/v1/") && `/v1${route}` in ROUTES
    ? `/v1${route}`
    : String(route);
  const method = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined;
  if (typeof route !== "string" || method === undefined) {
    throw new JobInputError(
      `input.openai_route is ${JSON.stringify(route)}; expected one of ${
        Object.keys(ROUTES).join(", ")
      }`,
    );
  }
  if (method === "GET") return { method, path, body: undefined, form: "events" };
  const body = { ...object(fields["openai_input"], "input.openai_input") };
  if (fields["repeat_layers"] !== undefined && body["repeat_layers"] === undefined) {
    body["repeat_layers"] = fields["repeat_layers"];
  }
  return { method, path, body, form: "events" };
}

function samplingRequest(fields: Record<string, unknown>): JobRequest {
  const { sampling_params, apply_chat_template, ...rest } = fields;
  const sampling = object(sampling_params, "input.sampling_params");
  const wrong = Object.keys(UNKNOWN_HERE).find((name) => {
    const value = sampling[name] ?? null;
    return value !== null && JSON.stringify(value) !== JSON.stringify(UNKNOWN_HERE[name]);
  });
  if (wrong !== undefined) {
    throw new JobInputError(`input.sampling_params.${wrong} is not supported; leave it out`);
  }
  const body: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(sampling)) {
    if (!(name in UNKNOWN_HERE)) body[RENAMED[name] ?? name] = value;
  }
  // vLLM writes "all tokens" as -1, llama.cpp as 0.
  if (body["top_k"] === -1) body["top_k"] = 0;
  for (const [name, value] of Object.entries(rest)) {
    if (!GROUPING.includes(name)) body[name] = value;
  }
  if (body["stream"] === true) body["stream_options"] = { include_usage: true };
  if (apply_chat_template === true && typeof body["prompt"] === "string") {
    body["messages"] = [{ role: "user", content: body["prompt"] }];
    delete body["prompt"];
  }
  if (!("messages" in body) && !("prompt" in body)) {
    throw new JobInputError("input.sampling_params needs a prompt or messages beside it");
  }
  const path = "messages" in body ? "/v1/chat/completions" : "/v1/completions";
  return { method: "POST", path, body, form: "tokens" };
}

function object(value: unknown, name: string): Record<string, unknown> {
  if (isObject(value)) return value;
  const kind = value === undefined
    ? "missing"
    : Array.isArray(value)
    ? "a list"
    : JSON.stringify(value);
  throw new JobInputError(`${name} must be an object; it is ${kind}`);
}
