// @ts-check
/// <reference lib="dom" />
// One answer on the page: asks, shows the text as it comes, and what it took.

import { ApiError, call, errorText, events } from "./api.js";

/**
 * @typedef {object} Question
 * @property {{ role: string, content: string }[]} messages
 * @property {string} spec The plan.
 * @property {number} temperature
 * @property {number} maxTokens
 * @property {number} seed
 */

/**
 * @typedef {object} Chunk A chunk of a streamed chat completion.
 * @property {{ delta?: { content?: string, reasoning_content?: string }, finish_reason?: string }[]} [choices]
 * @property {{ n_layer_eff?: number, plan?: string | { spec?: string, n_layer_eff?: number } }} [rys]
 * @property {{ predicted_n?: number, predicted_per_second?: number }} [timings]
 * @property {unknown} [error]
 */

/** A number with so many digits after the point, as the reader's country writes it. */
const number = (/** @type {number} */ x, /** @type {number} */ digits) =>
  x.toLocaleString(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits });

const END = /** @type {Record<string, string>} */ ({
  length: "token limit reached",
  tool_calls: "asks for a tool",
});

/** An answer as a part of the page. */
export class Answer {
  /** Text so far. */
  text = "";
  /** @type {"running" | "done" | "stopped" | "failed"} */
  state = "running";
  #thought = "";
  #tokens = 0;
  #first = 0;
  #last = 0;
  #start = performance.now();
  /** @type {number | undefined} */
  #perSecond;

  /**
   * @param {string} name The plan's name on the page.
   * @param {string} spec The plan.
   * @param {string} className Its colour.
   */
  constructor(name, spec, className) {
    this.root = document.createElement("article");
    this.root.className = `answer running ${className}`;
    this.root.setAttribute("aria-label", `Answer of ${name}, ${spec}`);
    this.root.setAttribute("aria-busy", "true");
    const title = document.createElement("h3");
    const plan = document.createElement("small");
    plan.textContent = ` ${spec}`;
    title.append(name, plan);
    this.plan = plan;
    this.thoughts = document.createElement("details");
    this.thoughts.hidden = true;
    const summary = document.createElement("summary");
    summary.textContent = "Reasoning";
    this.thought = document.createElement("div");
    this.thought.className = "thought";
    this.thoughts.append(summary, this.thought);
    this.body = document.createElement("div");
    this.body.className = "text";
    this.numbers = document.createElement("div");
    this.numbers.className = "numbers";
    this.root.append(title, this.thoughts, this.body, this.numbers);
  }

  /**
   * Asks and shows what comes.
   *
   * @param {Question} question
   * @param {AbortSignal} signal Stops it.
   * @param {() => void} onGrow Called after each change.
   * @returns {Promise<ApiError | undefined>} The error that is shown, if the server gave one.
   */
  async run({ messages, spec, temperature, maxTokens, seed }, signal, onGrow) {
    this.#start = performance.now();
    let failed;
    let end = "";
    try {
      const { body } = await call("v1/chat/completions", {
        signal,
        body: {
          messages,
          stream: true,
          repeat_layers: spec,
          temperature,
          max_tokens: maxTokens,
          seed,
          timings_per_token: true,
        },
      });
      if (!body) throw new TypeError("an answer without a body");
      let whole = false;
      for await (const data of events(body)) {
        end = this.#take(JSON.parse(data)) || end;
        whole ||= end !== "";
        onGrow();
      }
      signal.throwIfAborted();
      if (!whole) throw new TypeError("the stream ended early");
      this.state = "done";
    } catch (error) {
      if (signal.aborted) this.state = "stopped";
      else {
        this.state = "failed";
        if (error instanceof ApiError) failed = error;
        const says = document.createElement("p");
        says.className = "alert";
        says.setAttribute("role", "alert");
        says.textContent = error instanceof ApiError
          ? error.message
          : "The connection to the server broke.";
        this.root.append(says);
      }
    }
    this.root.classList.remove("running");
    this.root.setAttribute("aria-busy", "false");
    this.#count(
      this.state === "stopped" ? "stopped" : END[end] ?? "",
      `seed ${seed}`,
    );
    onGrow();
    return failed;
  }

  /**
   * @param {Chunk} chunk
   * @returns {string} Why the answer ended, or nothing.
   */
  #take(chunk) {
    if (chunk.error) throw new ApiError(500, errorText(JSON.stringify(chunk)));
    const choice = chunk.choices?.[0];
    const { content, reasoning_content } = choice?.delta ?? {};
    const { rys } = chunk;
    const layers = rys?.n_layer_eff ??
      (typeof rys?.plan === "object" ? rys.plan.n_layer_eff : undefined);
    if (layers && !this.plan.dataset.layers) {
      this.plan.dataset.layers = String(layers);
      this.plan.textContent += `, ${layers} layers run`;
    }
    if (reasoning_content) {
      this.#thought += reasoning_content;
      this.thoughts.hidden = false;
      this.thought.textContent = this.#thought;
    }
    if (content) {
      this.text += content;
      this.body.textContent = this.text;
    }
    if (content || reasoning_content) {
      this.#last = performance.now();
      this.#first ||= this.#last;
      this.#tokens++;
    }
    this.#tokens = chunk.timings?.predicted_n ?? this.#tokens;
    this.#perSecond = chunk.timings?.predicted_per_second ?? this.#perSecond;
    this.#count();
    return choice?.finish_reason ?? "";
  }

  /** @param {string[]} more */
  #count(...more) {
    const seconds = (this.#last - this.#first) / 1000;
    const counted = seconds > 0 ? (this.#tokens - 1) / seconds : 0;
    const speed = this.#perSecond ?? counted;
    this.numbers.textContent = [
      `${this.#tokens} ${this.#tokens === 1 ? "token" : "tokens"}`,
      speed > 0 ? `${number(speed, 1)} tokens/s` : "",
      this.#first ? `first after ${number((this.#first - this.#start) / 1000, 2)} s` : "",
      ...more,
    ].filter(Boolean).join(" · ");
  }
}
