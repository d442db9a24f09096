import { checkOptions, wholeNumber } from "../options/check_option.ts";
import { knownNames, namesOf } from "../options/names.ts";
import { optionsOf } from "../options/table.ts";
import { callContext, type LiveContext } from "./call_context.ts";
import { type EngineClient, EngineError, toJson } from "./client.ts";
import { isObject } from "../json.ts";
import { sayGrammarFault } from "./grammar_fault.ts";
import { sseParser } from "./sse.ts";

/** One message of a chat. */
export interface ChatMessage {
  /** Who speaks: `system`, `user`, `assistant`, `tool`. */
  role: string;
  /** What is said, or OpenAI's content parts. */
  content: string | Record<string, unknown>[] | null;
  /** Further fields of OpenAI's message, e.g. `tool_calls` and `tool_call_id`. */
  [field: string]: unknown;
}

/** A token that could have been chosen, and how likely it was. */
export interface TokenLogprob {
  /** Token id. */
  id: number;
  /** Its text. If several tokens make one character, the text is with the last of them. */
  token: string;
  /** Natural logarithm of its probability. */
  logprob: number;
  /** The likeliest tokens in its place. */
  top?: TokenLogprob[];
}

/** Why a generation ended: a stop string or end token, the length or context limit, or tool calls. A cancel throws. */
export type FinishReason = "stop" | "length" | "tool_calls";

/** What a generation cost, as llama.cpp measured it. */
export interface Timings {
  /** Prompt tokens that were computed (those from the cache are not). */
  promptTokens: number;
  /** Prompt tokens that were taken from the cache. */
  cachedTokens: number;
  /** Milliseconds for the prompt. */
  promptMs: number;
  /** Prompt tokens per second. */
  promptPerSecond: number;
  /** Tokens generated. */
  predictedTokens: number;
  /** Milliseconds for generating them. */
  predictedMs: number;
  /** Tokens per second. */
  predictedPerSecond: number;
  /** Tokens drafted, with speculative decoding. */
  draftTokens?: number;
  /** Drafted tokens that were right. */
  draftAccepted?: number;
}

/** A part of the answer: whole characters of text and, in the last one, why the answer ended. */
export interface Piece {
  /** Text, possibly empty. Never ends inside a character. */
  text: string;
  /** Reasoning, if the model's template separates it (chat only). */
  reasoning?: string;
  /** Tokens generated since the last piece. Their text may come later: characters and stop strings span tokens. */
  tokens: number[];
  /** Their probabilities, when `logprobs` was asked for. */
  logprobs?: TokenLogprob[];
  /** Tool calls of a chat answer, in OpenAI's streaming form. */
  toolCalls?: Record<string, unknown>[];
  /** Set on the last piece. */
  finishReason?: FinishReason;
  /** The end of the whole generation; on the last piece. */
  end?: GenerationEnd;
}

/** What is known once a generation has ended. */
export interface GenerationEnd {
  /** Why it ended. */
  finishReason: FinishReason;
  /** The stop string that ended it, or "". */
  stoppingWord: string;
  /** Tokens of the prompt. */
  nPrompt: number;
  /** Tokens generated. */
  nGenerated: number;
  /** The seed that was used. */
  seed: number;
  /** Slot of the context that it ran in; the slot holds its prompt and answer for the next prompt to reuse. */
  slot: number;
  /** What it cost. */
  timings: Timings;
  /** What is unsatisfactory about the answer, e.g. that it does not have the form that the chat template asks for. */
  warnings?: string[];
}

/** A whole answer. */
export interface Completion extends GenerationEnd {
  /** All text. */
  text: string;
  /** All reasoning, or "". */
  reasoning: string;
  /** All tokens. */
  tokens: number[];
  /** Their probabilities, when `logprobs` was asked for. */
  logprobs?: TokenLogprob[];
  /** Tool calls in OpenAI's form. */
  toolCalls: Record<string, unknown>[];
}

/** Options of {@linkcode Context.generate}. For one that is left out, llama-server's default applies. */
export interface GenerateOptions {
  /** Most tokens to generate. Default: until the model ends or the context is full. */
  maxTokens?: number | undefined;
  /** Temperature; 0 takes the likeliest token. Default 0.8. */
  temperature?: number | undefined;
  /** Seed of the sampler. Default: a random one, reported at the end. */
  seed?: number | undefined;
  /** Strings that end the answer; they are not part of it. */
  stop?: string | string[] | undefined;
  /** Keep the K likeliest tokens. Default 40; 0 keeps all. */
  topK?: number | undefined;
  /** Keep the likeliest tokens up to this much probability. Default 0.95. */
  topP?: number | undefined;
  /** Keep tokens at least this likely, relative to the likeliest. Default 0.05. */
  minP?: number | undefined;
  /** Penalty on repeated tokens. Default 1: none. */
  repeatPenalty?: number | undefined;
  /** How many tokens back `repeatPenalty` looks. Default 64. */
  repeatLastN?: number | undefined;
  /** OpenAI's presence penalty. Default 0. */
  presencePenalty?: number | undefined;
  /** OpenAI's frequency penalty. Default 0. */
  frequencyPenalty?: number | undefined;
  /** A GBNF grammar that the answer must follow. */
  grammar?: string | undefined;
  /** A JSON schema that the answer must follow. */
  jsonSchema?: Record<string, unknown> | undefined;
  /** Give this many of the likeliest tokens for each position. */
  logprobs?: number | undefined;
  /** Keep going past the model's end token. Default false. */
  ignoreEos?: boolean | undefined;
  /** Reuse the part that the prompt has in common with the slot's last one. Default true. */
  cachePrompt?: boolean | undefined;
  /** Slot of the context to run in, waiting while it is taken. Default: llama-server chooses by the prompt. */
  slot?: number | undefined;
  /** Tools in OpenAI's form (chat only). */
  tools?: Record<string, unknown>[] | undefined;
  /** OpenAI's `tool_choice` (chat only). */
  toolChoice?: string | Record<string, unknown> | undefined;
  /** Further fields of llama-server's request, in its own names. */
  extra?: Record<string, unknown> | undefined;
  /** Stops the generation within one token or one micro-batch; the iteration then throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** What to continue: text, tokens, or a chat to answer. */
export type Prompt = string | readonly number[] | readonly ChatMessage[];

function isChat(prompt: Prompt): prompt is readonly ChatMessage[] {
  return Array.isArray(prompt) && prompt.length > 0 && typeof prompt[0] === "object";
}

/**
 * Refuses content parts that cannot be given to a model here.
 *
 * @throws {EngineError} If a part is not text.
 */
export function checkContent(message: ChatMessage | null, i: number): void {
  const content = message?.content;
  if (!Array.isArray(content)) return;
  for (const part of content) {
    const kind = MEDIA.exec(String(part?.type))?.[1];
    if (!kind) continue;
    throw new EngineError(
      `The prompt's message ${i} has a part of type ${
        JSON.stringify(part.type)
      }: ${kind} input is not offered, only text`,
      { type: "invalid_request_error", status: 400 },
    );
  }
}

/** Types of content parts that llama-server would pass to a multimodal projector. */
const MEDIA = /^(?:input_)?(image|audio|video)(?:_url)?$/;

function checkPrompt(prompt: Prompt, nVocab: number): void {
  if (typeof prompt === "string") return;
  if (!Array.isArray(prompt)) {
    throw new TypeError("The prompt must be a string, a list of tokens, or a list of messages");
  }
  if (isChat(prompt)) {
    prompt.forEach((message, i) => {
      if (typeof message?.role !== "string") {
        throw new TypeError(`The prompt's message ${i} must be an object with a role`);
      }
      checkContent(message, i);
    });
  } else {(prompt as readonly number[]).forEach((token, i) =>
      wholeNumber(`prompt[${i}]`, token, 0, nVocab - 1)
    );}
}

const OPTIONS = namesOf<GenerateOptions, "generate">(["generate"], {
  logprobs: 1,
  cachePrompt: 1,
  slot: 1,
  tools: 1,
  toolChoice: 1,
  extra: 1,
  signal: 1,
});

/** Fields of llama-server's request that decide the form of its answer, or that already are options. */
const RESERVED = [
  "stream",
  "prompt",
  "messages",
  "n",
  "n_cmpl",
  "response_fields",
  "return_tokens",
  "return_progress",
  "verbose",
  "grammar_lazy",
  "grammar_triggers",
];

function checkGenerate(options: GenerateOptions, nSlots: number): void {
  knownNames("generate()", options, OPTIONS);
  if (options.slot !== undefined) wholeNumber("slot", options.slot, 0, nSlots - 1);
  if (options.logprobs !== undefined) wholeNumber("logprobs", options.logprobs, 0);
  checkOptions("generate", options);
  const must = (name: keyof GenerateOptions, what: string, is: (value: unknown) => boolean) => {
    const value = options[name];
    if (value !== undefined && !is(value)) throw new TypeError(`${name} must be ${what}`);
  };
  must(
    "stop",
    "a string or a list of strings, none of them empty",
    (v) => [v].flat().every((s) => typeof s === "string" && s !== ""),
  );
  must("grammar", "a string", (v) => typeof v === "string");
  must("jsonSchema", "a schema object", isObject);
  must("cachePrompt", "true or false", (v) => typeof v === "boolean");
  must("tools", "a list", Array.isArray);
  must("toolChoice", "a string or an object", (v) => typeof v === "string" || isObject(v));
  must("extra", "an object", isObject);
  must("signal", "an AbortSignal", (v) => v instanceof AbortSignal);
  for (const key of Object.keys(options.extra ?? {})) {
    if (RESERVED.includes(key)) {
      throw new TypeError(
        `extra.${key} would change the form of the answer; use context.request() for that`,
      );
    }
  }
  if (options.grammar !== undefined && options.jsonSchema !== undefined) {
    throw new TypeError("grammar and jsonSchema exclude each other");
  }
}

/** A request to llama-server's handlers. */
export interface GenerateRequest {
  /** Route. */
  path: string;
  /** JSON body. */
  body: Record<string, unknown>;
  /** Whether the answer has OpenAI's chat form. */
  chat: boolean;
  /** Seed of the sampler. */
  seed: number;
}

/**
 * The JSON body of llama-server's request, and the route it goes to.
 *
 * @throws {TypeError | RangeError} If an option is wrong.
 */
export function requestBody(
  prompt: Prompt,
  options: GenerateOptions,
  nVocab: number,
  nSlots: number,
  nCtx: number,
): GenerateRequest {
  checkPrompt(prompt, nVocab);
  checkGenerate(options, nSlots);
  const chat = isChat(prompt);
  const seed = options.seed === undefined || options.seed === -1
    ? crypto.getRandomValues(new Uint32Array(1))[0]! >>> 1
    : options.seed;
  const body: Record<string, unknown> = { stream: true, seed, return_tokens: true };
  const put = (key: string, value: unknown) => {
    if (value !== undefined) body[key] = value;
  };
  for (const { id, field } of optionsOf("generate")) {
    if (field !== undefined && id !== "seed") put(field, options[id as keyof GenerateOptions]);
  }
  if (options.repeatLastN === -1) body.repeat_last_n = nCtx; // llama.cpp refuses its own older value for it
  put("cache_prompt", options.cachePrompt);
  put("id_slot", options.slot);
  put("stop", options.stop === undefined ? undefined : [options.stop].flat());
  if (chat) {
    put("messages", prompt);
    put("tools", options.tools);
    put("tool_choice", options.toolChoice);
    if (options.maxTokens !== undefined) put("max_tokens", options.maxTokens);
    if (options.logprobs) Object.assign(body, { logprobs: true, top_logprobs: options.logprobs });
    body.verbose = true; // carries tokens and timings beside OpenAI's fields
  } else {
    put("prompt", prompt);
    if (options.logprobs) put("n_probs", options.logprobs);
  }
  return {
    path: chat ? "/v1/chat/completions" : "/completion",
    body: { ...body, ...options.extra },
    chat,
    seed,
  };
}

// The shapes of llama-server's answers, as far as they are read here.
interface RawProb {
  id: number;
  token: string;
  logprob: number;
  top_logprobs?: RawProb[];
}
interface RawTimings {
  cache_n?: number;
  prompt_n: number;
  prompt_ms: number;
  prompt_per_second: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_second: number;
  draft_n?: number;
  draft_n_accepted?: number;
}
interface RawPiece {
  content: string;
  tokens: number[];
  stop: boolean;
  id_slot: number;
  stop_type?: string;
  stopping_word?: string;
  tokens_predicted: number;
  tokens_evaluated: number;
  timings?: RawTimings;
  completion_probabilities?: RawProb[];
}
interface RawChunk {
  choices?: {
    finish_reason: FinishReason | null;
    delta: {
      content?: string | null;
      reasoning_content?: string;
      tool_calls?: Record<string, unknown>[];
    };
    logprobs?: { content?: RawProb[] } | null;
  }[];
  __verbose?: RawPiece;
  rys?: { warnings: string[] };
}
interface RawError {
  error: { message: string; type: string; code: number; [field: string]: unknown };
}

const toLogprob = (p: RawProb): TokenLogprob => ({
  id: p.id,
  token: p.token,
  logprob: p.logprob,
  ...(p.top_logprobs ? { top: p.top_logprobs.map(toLogprob) } : {}),
});

const toTimings = (t: RawTimings): Timings => ({
  promptTokens: t.prompt_n,
  cachedTokens: t.cache_n ?? 0,
  promptMs: t.prompt_ms,
  promptPerSecond: t.prompt_per_second,
  predictedTokens: t.predicted_n,
  predictedMs: t.predicted_ms,
  predictedPerSecond: t.predicted_per_second,
  ...(t.draft_n !== undefined
    ? { draftTokens: t.draft_n, draftAccepted: t.draft_n_accepted ?? 0 }
    : {}),
});

/** What upstream says, as a server error, when the cache has no cell left for one more token. */
const FULL = "Context size has been exceeded.";

/** llama-server's error object as an exception. */
export function toEngineError(raw: unknown, status: number, nCtx?: number): EngineError {
  const error = (raw as Partial<RawError> | null)?.error;
  const { message = `HTTP ${status}`, type, code, ...details } = error ?? {};
  if (message === FULL) {
    const size = nCtx === undefined ? "" : ` of ${nCtx} tokens`;
    return new EngineError(
      `The context${size} is full: the requests that ran at once share it, and together needed more`,
      { type: "exceed_context_size_error", status: 400, details: { n_ctx: nCtx } },
    );
  }
  return new EngineError(sayGrammarFault(message), {
    status: typeof code === "number" ? code : status,
    ...(typeof type === "string" ? { type } : {}),
    ...(Object.keys(details).length ? { details } : {}),
  });
}

/**
 * A generation under way. Iterate it for pieces, or await {@linkcode Generation.completion} for the whole answer; either
 * starts it, once. Leaving the loop early cancels it.
 */
export class Generation implements AsyncIterable<Piece> {
  readonly #run: () => AsyncGenerator<Piece, void, void>;
  #started = false;

  /**
   * Use {@linkcode Context.generate}.
   *
   * @param run Starts the request.
   */
  constructor(run: () => AsyncGenerator<Piece, void, void>) {
    this.#run = run;
  }

  /** Iterates the pieces. */
  [Symbol.asyncIterator](): AsyncGenerator<Piece, void, void> {
    if (this.#started) throw new TypeError("A generation can be iterated only once");
    this.#started = true;
    return this.#run();
  }

  /** Runs to the end and returns the whole answer. */
  async completion(): Promise<Completion> {
    let text = "";
    let reasoning = "";
    const tokens: number[] = [];
    const logprobs: TokenLogprob[] = [];
    const toolCalls: Record<string, unknown>[] = [];
    let end: GenerationEnd | undefined;
    for await (const piece of this) {
      text += piece.text;
      reasoning += piece.reasoning ?? "";
      tokens.push(...piece.tokens);
      logprobs.push(...piece.logprobs ?? []);
      mergeToolCalls(toolCalls, piece.toolCalls ?? []);
      end = piece.end ?? end;
    }
    return {
      text,
      reasoning,
      tokens,
      toolCalls,
      ...(logprobs.length ? { logprobs } : {}),
      ...end!,
    };
  }

  /** Runs to the end and returns the text. */
  async text(): Promise<string> {
    return (await this.completion()).text;
  }
}

/** Adds the deltas of OpenAI's streaming form to the calls so far. */
function mergeToolCalls(calls: Record<string, unknown>[], deltas: Record<string, unknown>[]): void {
  for (const delta of deltas) {
    const index = Number(delta.index ?? calls.length);
    const call = calls[index] ??= {};
    for (const [key, value] of Object.entries(delta)) {
      if (key === "index") continue;
      if (key === "function") {
        const target = (call.function ??= {}) as Record<string, string>;
        for (const [k, v] of Object.entries(value as Record<string, string>)) {
          target[k] = (target[k] ?? "") + v;
        }
      } else call[key] = value;
    }
  }
}

/** Sends the request and yields its pieces. */
export async function* runGeneration(
  client: EngineClient,
  live: LiveContext,
  request: GenerateRequest,
  signal: AbortSignal | undefined,
  onEnd: (end: GenerationEnd) => void,
): AsyncGenerator<Piece, void, void> {
  signal?.throwIfAborted();
  const { nCtx } = live.info;
  const stop = new AbortController();
  const both = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  const queue: Piece[] = [];
  let wake = Promise.withResolvers<void>();
  let done = false;
  let status = 200;
  let ended = false;
  let failure: Error | undefined;
  let plain = "";
  const parse = sseParser();
  const read = request.chat ? chatReader(request.seed) : completionReader(request.seed);
  const body = new TextEncoder().encode(toJson(request.body));

  const finished = callContext(
    client,
    live,
    { method: "POST", path: request.path, query: "", body },
    {
      head: (code) => status = code,
      chunk(bytes) {
        try {
          if (status !== 200) plain += new TextDecoder().decode(bytes);
          else {
            for (const object of parse(bytes)) {
              if (isError(object)) throw toEngineError(object, 500, nCtx);
              for (const piece of read(object)) {
                queue.push(piece);
                if (!piece.end) continue;
                ended = true;
                onEnd(piece.end);
              }
            }
          }
        } catch (error) {
          failure ??= error as Error;
        }
        wake.resolve();
      },
    },
    both,
    live.requests,
  ).then(
    () => {
      if (status !== 200) failure ??= toEngineError(parseJson(plain), status, nCtx);
    },
    (error) => void (failure ??= error),
  ).finally(() => {
    done = true;
    wake.resolve();
  });

  try {
    while (true) {
      while (queue.length) yield queue.shift()!;
      if (failure || done) break;
      await wake.promise;
      wake = Promise.withResolvers();
    }
    while (queue.length) yield queue.shift()!;
    await finished;
    signal?.throwIfAborted();
    if (failure) throw failure;
    if (!ended) throw new EngineError("The engine's answer has no end");
  } finally {
    stop.abort();
    await finished;
  }
}

const isError = (object: unknown): object is RawError =>
  typeof object === "object" && object !== null && "error" in object;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function endOf(raw: RawPiece, seed: number, finishReason: FinishReason): GenerationEnd {
  return {
    finishReason,
    stoppingWord: raw.stopping_word ?? "",
    nPrompt: raw.tokens_evaluated,
    nGenerated: raw.tokens_predicted,
    seed,
    slot: raw.id_slot,
    timings: toTimings(raw.timings!),
  };
}

function completionReader(seed: number): (object: unknown) => Piece[] {
  return (object) => {
    const raw = object as RawPiece;
    const piece: Piece = { text: raw.content, tokens: raw.tokens ?? [] };
    if (raw.completion_probabilities) piece.logprobs = raw.completion_probabilities.map(toLogprob);
    if (raw.stop) {
      piece.finishReason = raw.stop_type === "limit" ? "length" : "stop";
      piece.end = endOf(raw, seed, piece.finishReason);
    }
    return [piece];
  };
}

function chatReader(seed: number): (object: unknown) => Piece[] {
  let last: RawPiece | undefined;
  return (object) => {
    const raw = object as RawChunk;
    if (raw.__verbose?.stop) last = raw.__verbose;
    const choice = raw.choices?.[0];
    if (!choice) return [];
    const { content, reasoning_content, tool_calls } = choice.delta;
    const piece: Piece = {
      text: content ?? "",
      tokens: raw.__verbose?.tokens ?? [],
    };
    if (reasoning_content) piece.reasoning = reasoning_content;
    if (tool_calls) piece.toolCalls = tool_calls;
    if (choice.logprobs?.content) piece.logprobs = choice.logprobs.content.map(toLogprob);
    if (choice.finish_reason && last) {
      piece.finishReason = choice.finish_reason;
      piece.end = endOf(last, seed, choice.finish_reason);
      if (raw.rys) piece.end.warnings = raw.rys.warnings;
    }
    return [piece];
  };
}
