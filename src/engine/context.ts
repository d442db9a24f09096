import { callContext, disposedError, type LiveContext } from "./call_context.ts";
import { checkBody } from "./check_body.ts";
import { type EngineClient, EngineError, toJson } from "./client.ts";
import { wholeNumber } from "../options/check_option.ts";
import { knownNames } from "../options/names.ts";
import type { ContextInfo } from "./context_info.ts";
import type { ContextModel, Logits } from "./context_model.ts";
import type { ContextOptions } from "./context_options.ts";
import {
  type ChatMessage,
  checkContent,
  type GenerateOptions,
  Generation,
  type Prompt,
  requestBody,
  runGeneration,
  toEngineError,
} from "./generate.ts";
import { packState, type StateIdentity, unpackState } from "./state.ts";

/** Options of {@linkcode Context.request}. */
export interface RequestOptions {
  /** Stops the request. */
  signal?: AbortSignal;
  /** Called with status and content type, before the body arrives. */
  onHead?: (status: number, contentType: string) => void;
  /** Receives the body as it arrives. */
  onChunk?: (bytes: Uint8Array) => void;
}

/** Routes that take a slot of the context. */
const TAKES_SLOT = /\/(completions?|responses|messages|infill|embeddings?|rerank(ing)?)$/;

/** A context with its own plan. Made by {@linkcode Model.createContext}. */
export class Context implements AsyncDisposable {
  /** What the context holds. */
  readonly info: ContextInfo;
  /** The model it runs on. */
  readonly model: ContextModel;
  readonly #client: EngineClient;
  readonly #live: LiveContext;
  readonly #create: (extra: string[]) => Promise<LiveContext>;
  readonly #options: ContextOptions;
  readonly #onDispose: () => void;
  #embedding: Promise<LiveContext> | undefined;
  #nextState = 1;
  /** Where the last generation ended, or the last state was loaded. */
  #lastSlot = 0;

  /** Use {@linkcode Model.createContext}. */
  constructor(
    model: ContextModel,
    client: EngineClient,
    live: LiveContext,
    create: (extra: string[]) => Promise<LiveContext>,
    options: ContextOptions,
    onDispose: () => void,
  ) {
    this.model = model;
    this.info = live.info;
    this.#client = client;
    this.#live = live;
    this.#create = create;
    this.#options = options;
    this.#onDispose = onDispose;
  }

  /**
   * Continues a text or tokens, or answers a chat. Several generations at once are batched, up to `nParallel`.
   *
   * @param prompt Text, tokens, or messages (the model's chat template is applied).
   * @param options Length, sampling, grammar, stop strings, cancel.
   * @returns An iterable of pieces; nothing runs before it is iterated.
   * @throws {TypeError | RangeError} If an option is wrong.
   *
   * The iteration throws {@linkcode EngineError} where llama-server would answer with an error, e.g. `type`
   * `"exceed_context_size_error"` with `details.n_ctx`, and with `details.n_prompt_tokens` where one prompt alone is too
   * long. Without `n_prompt_tokens`, requests that ran at once did not fit together: all of them end with it.
   *
   * @example An answer as it comes
   * ```ts
   * import { loadModel } from "@rys/edge";
   * import { assert } from "@std/assert";
   *
   * await using model = await loadModel("models/demo.gguf");
   * await using context = await model.createContext({ nCtx: 512 });
   * const chat = [{ role: "user", content: "What is the capital of Norway?" }];
   * let text = "";
   * for await (const piece of context.generate(chat, { maxTokens: 8, temperature: 0 })) text += piece.text;
   * assert(text.length > 0);
   * ```
   */
  generate(prompt: Prompt, options: GenerateOptions = {}): Generation {
    const request = requestBody(
      prompt,
      options,
      this.model.info.nVocab,
      this.info.nParallel,
      this.info.nCtx,
    );
    return new Generation(() => {
      this.#check();
      this.#checkBody(request.body);
      return runGeneration(this.#client, this.#live, request, options.signal, ({ slot }) => {
        this.#lastSlot = slot;
      });
    });
  }

  /**
   * One request to llama-server's own handlers, as `POST path` with a JSON body (or `GET` without one).
   *
   * @param path Route, e.g. `/v1/chat/completions`, with a query if it takes one.
   * @param body The request.
   * @param options `signal`; `onHead` gets status and content type before the body; `onChunk` receives the body as it
   * arrives (server-sent events when `stream` is true).
   * @returns Status, content type, and the body unless `onChunk` took it. A body that the engine could not stand is
   * answered with 400, as by llama-server.
   *
   * @example OpenAI's form
   * ```ts
   * import { loadModel } from "@rys/edge";
   * import { assertEquals } from "@std/assert";
   *
   * await using model = await loadModel("models/demo.gguf");
   * await using context = await model.createContext({ nCtx: 512 });
   * const { status, body } = await context.request("/v1/chat/completions", {
   *   messages: [{ role: "user", content: "Hello" }],
   *   max_tokens: 4,
   * });
   * const { choices } = JSON.parse(new TextDecoder().decode(body));
   * assertEquals([status, choices[0].message.role], [200, "assistant"]);
   * ```
   */
  async request(
    path: string,
    body?: unknown,
    options: RequestOptions = {},
  ): Promise<{ status: number; contentType: string; body: Uint8Array<ArrayBuffer> }> {
    this.#check();
    knownNames("request()", options, ["signal", "onHead", "onChunk"]);
    const refusal = this.#refusal(body);
    if (refusal) {
      const contentType = "application/json; charset=utf-8";
      const bytes = new TextEncoder().encode(JSON.stringify({ error: refusal }));
      options.onHead?.(400, contentType);
      options.onChunk?.(bytes);
      return { status: 400, contentType, body: options.onChunk ? new Uint8Array() : bytes };
    }
    return await this.#request(this.#live, path, body, options);
  }

  #checkBody(body: Record<string, unknown>): void {
    checkBody(body, { nVocab: this.model.info.nVocab, nParallel: this.info.nParallel });
  }

  /** What llama-server would say about a body that would end the engine. */
  #refusal(body: unknown): Record<string, unknown> | undefined {
    if (typeof body !== "object" || body === null) return undefined;
    try {
      this.#checkBody(body as Record<string, unknown>);
    } catch (error) {
      const { status: code, message, type, details } = error as EngineError;
      return { code, message, type, ...details };
    }
  }

  async #request(
    live: LiveContext,
    path: string,
    body: unknown,
    options: RequestOptions,
  ): Promise<{ status: number; contentType: string; body: Uint8Array<ArrayBuffer> }> {
    const [route, query = ""] = path.split("?", 2) as [string, string?];
    let status = 500;
    let contentType = "";
    const parts: Uint8Array[] = [];
    await callContext(
      this.#client,
      live,
      {
        method: body === undefined ? "GET" : "POST",
        path: route,
        query,
        body: new TextEncoder().encode(body === undefined ? "" : toJson(body)),
      },
      {
        head: (code, type) => {
          [status, contentType] = [code, type];
          options.onHead?.(code, type);
        },
        chunk: options.onChunk ?? ((bytes) => parts.push(bytes)),
      },
      options.signal,
      TAKES_SLOT.test(route) ? live.requests : live.others,
    );
    return {
      status,
      contentType,
      body: new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer()),
    };
  }

  async #json<T>(live: LiveContext, path: string, body?: unknown): Promise<T> {
    const response = await this.#request(live, path, body, {});
    const object = JSON.parse(new TextDecoder().decode(response.body) || "null");
    if (response.status !== 200) throw toEngineError(object, response.status);
    return object;
  }

  /** See {@linkcode Model.tokenize}. */
  tokenize(
    text: string,
    options: { addSpecial?: boolean; parseSpecial?: boolean } = {},
  ): Promise<number[]> {
    return this.model.tokenize(text, options);
  }

  /** See {@linkcode Model.detokenize}. */
  detokenize(tokens: readonly number[], options: { special?: boolean } = {}): Promise<string> {
    return this.model.detokenize(tokens, options);
  }

  /**
   * The prompt that the model's template makes of a chat.
   *
   * @param messages The chat.
   * @param options `tools`, and llama-server's further fields in `extra`.
   * @returns The text.
   * @throws {EngineError} If it is not a chat, or the template refuses it.
   */
  async applyTemplate(
    messages: readonly ChatMessage[],
    options: { tools?: Record<string, unknown>[]; extra?: Record<string, unknown> } = {},
  ): Promise<string> {
    this.#check();
    knownNames("applyTemplate()", options, ["tools", "extra"]);
    if (Array.isArray(messages)) messages.forEach(checkContent);
    const body = { messages, ...(options.tools ? { tools: options.tools } : {}), ...options.extra };
    this.#checkBody(body);
    return (await this.#json<{ prompt: string }>(this.#live, "/apply-template", body)).prompt;
  }

  /**
   * Embeddings of texts, under this context's plan. The first call makes a second context for them.
   *
   * @param input One text or several.
   * @returns One vector for each text, of length `model.info.nEmbd`, with Euclidean norm 1.
   * @throws {TypeError | RangeError} If there is no text, or something other than text.
   * @throws {EngineError} If a text is longer than the context.
   *
   * @example Two texts
   * ```ts
   * import { loadModel } from "@rys/edge";
   * import { assertEquals } from "@std/assert";
   *
   * await using model = await loadModel("models/demo.gguf");
   * await using context = await model.createContext({ nCtx: 512 });
   * const [a, b] = await context.embed(["The cat sat.", "A wolf eats meat."]);
   * assertEquals([a!.length, b!.length], [model.info.nEmbd, model.info.nEmbd]);
   * ```
   */
  async embed(input: string | readonly string[]): Promise<Float32Array[]> {
    this.#check();
    const texts = [input].flat();
    if (texts.length === 0) throw new RangeError("There is no text to embed: the list is empty");
    texts.forEach((text, i) => {
      if (typeof text !== "string") {
        throw new TypeError(`Text ${i} to embed must be a string, not ${typeof text}`);
      }
    });
    const live = await (this.#embedding ??= this.#create(["--embedding", "--pooling", "mean"]));
    const { data } = await this.#json<{ data: { index: number; embedding: number[] }[] }>(
      live,
      "/v1/embeddings",
      { input: texts },
    );
    return data.toSorted((a, b) => a.index - b.index).map((d) => Float32Array.from(d.embedding));
  }

  /** See {@linkcode Model.logits}; runs this context's plan. */
  async logits(
    prompt: string | readonly number[],
    options: { signal?: AbortSignal } = {},
  ): Promise<Logits> {
    this.#check();
    return await this.model.logits(prompt, { ...this.#options, ...options });
  }

  /**
   * The state of one slot: its tokens, its cache, and the hash of the plan.
   *
   * @param slot Which of the `nParallel` slots. Default: the one that the last generation to end ran in, or that the
   * last state was loaded into.
   * @returns Bytes for {@linkcode Context.loadState}.
   * @throws {EngineError} If the slot is empty.
   *
   * @example Going on elsewhere
   * ```ts
   * import { loadModel } from "@rys/edge";
   * import { assert } from "@std/assert";
   *
   * await using model = await loadModel("models/demo.gguf");
   * const options = { repeatLayers: "26,34", nCtx: 512 };
   * await using first = await model.createContext(options);
   * await first.generate("Once upon a time", { maxTokens: 4, temperature: 0 }).text();
   * const state = await first.saveState();
   *
   * await using second = await model.createContext(options);
   * await second.loadState(state);
   * const { timings } = await second.generate("Once upon a time there", { maxTokens: 1 }).completion();
   * assert(timings.cachedTokens > 0);
   * ```
   */
  async saveState(slot: number = this.#lastSlot): Promise<Uint8Array> {
    this.#check();
    const filename = `state-${this.#live.handle}-${this.#nextState++}`;
    const { n_saved } = await this.#json<{ n_saved: number }>(
      this.#live,
      `/slots/${this.#slot(slot)}?action=save`,
      { filename },
    );
    const bytes = await this.#client.takeMem(filename);
    if (n_saved === 0) throw new EngineError(`Slot ${slot} is empty: there is no state to save`);
    if (!bytes) throw new EngineError("The state could not be saved");
    return await packState(bytes, this.#identity());
  }

  /**
   * Loads a saved state into a slot, replacing what is there. A prompt that begins with its tokens then continues from
   * there: llama-server takes the slot that has the most in common with the prompt, if that is at least a tenth of it;
   * {@linkcode GenerateOptions.slot} takes it whatever the prompt.
   *
   * @param state The result of {@linkcode Context.saveState} on a context with the same plan, model and cache types.
   * @param slot Which slot. Default 0.
   * @throws {EngineError} If the state belongs to another plan or model, or has another form.
   */
  async loadState(state: Uint8Array, slot = 0): Promise<void> {
    this.#check();
    const filename = `state-${this.#live.handle}-${this.#nextState++}`;
    await this.#client.putMem(filename, await unpackState(state, this.#identity()));
    try {
      await this.#json(this.#live, `/slots/${this.#slot(slot)}?action=restore`, { filename });
      this.#lastSlot = slot;
    } finally {
      await this.#client.takeMem(filename).catch(() => {});
    }
  }

  /** What a state and the context it is loaded into must agree on. */
  #identity(): StateIdentity {
    const { arch, name, nLayer, nEmbd, nVocab, nParams, modelBytes } = this.model.info;
    return {
      model: [arch, name, nLayer, nEmbd, nVocab, nParams, modelBytes].join("/"),
      plan: this.info.plan.spec,
      planHash: this.info.planHash,
      cacheTypeK: this.#options.cacheTypeK ?? "f16",
      cacheTypeV: this.#options.cacheTypeV ?? "f16",
    };
  }

  #slot(slot: number): number {
    return wholeNumber("slot", slot, 0, this.info.nParallel - 1);
  }

  #check(): void {
    if (this.#client.gone) throw this.#client.gone;
    if (this.#disposing) throw disposedError();
  }

  #disposing: Promise<void> | undefined;

  /** True when {@linkcode Context.dispose} was called or the engine's instance is gone. */
  get disposed(): boolean {
    return this.#disposing !== undefined || this.#client.gone !== undefined;
  }

  /** Stops the context's requests and frees it; the model stays. Harmless a second time. */
  dispose(): Promise<void> {
    return this.#disposing ??= (async () => {
      this.#onDispose();
      const embedding = await this.#embedding?.catch(() => undefined);
      for (const live of [this.#live, embedding]) {
        if (!live) continue;
        live.disposed = true;
        live.requests.close(disposedError());
        live.others.close(disposedError());
        await this.#client.call({ fn: "context_free", context: live.handle }).catch(() => {});
      }
    })();
  }

  /** Same as {@linkcode Context.dispose}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
