// @ts-check
/// <reference lib="dom" />
// One plan's card: the layer bar, the plan as text, what the server says about it.

import { ApiError, call } from "./api.js";
import { LayerBar } from "./layer_bar.js";
import { blocksOf, freeLayer, range, specOf, timesOf } from "./plans.js";

/** @import { PlanAnswer } from "./plans.js" */

let made = 0;

/** Lets a person choose a plan. */
export class PlanPicker {
  /** The plan as text. */
  spec = "none";
  /** Whether the server took the plan. */
  valid = false;
  #asked = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {PromiseWithResolvers<void> | undefined} */
  #pending;
  /** @type {PlanAnswer | undefined} */
  #answer;

  /**
   * @param {string} name What the plan is called on the page.
   * @param {string} className Its colour.
   * @param {(error: ApiError) => void} onError Called with errors that are not about the plan.
   */
  constructor(name, className, onError) {
    this.name = name;
    this.onError = onError;
    const template = /** @type {HTMLTemplateElement} */ (document.getElementById("plan-template"));
    const root = template.content.firstElementChild?.cloneNode(true);
    this.root = /** @type {HTMLElement} */ (root);
    this.root.classList.add(className);
    this.title = this.#find("h2");
    this.field = /** @type {HTMLInputElement} */ (this.#find(".spec"));
    this.passes = /** @type {HTMLInputElement} */ (this.#find(".passes"));
    this.addButton = /** @type {HTMLButtonElement} */ (this.#find(".add"));
    this.removeButton = /** @type {HTMLButtonElement} */ (this.#find(".remove"));
    this.presets = this.#find(".presets");
    this.runs = this.#find(".runs");
    this.cost = this.#find(".cost");
    this.problem = this.#find(".problem");
    this.advice = this.#find(".advice");
    const id = `plan-${++made}`;
    this.title.id = `${id}-title`;
    this.problem.id = `${id}-problem`;
    this.root.setAttribute("aria-labelledby", this.title.id);
    this.presets.setAttribute("aria-label", `${name}: ready-made plans`);
    this.field.setAttribute("aria-label", `${name}, as text`);
    this.passes.setAttribute("aria-label", `${name}: passes of the block`);
    this.addButton.setAttribute("aria-label", `${name}: add block`);
    this.removeButton.setAttribute("aria-label", `${name}: remove block`);
    this.bar = new LayerBar(this.#find(".bar"), name, (blocks) => {
      this.field.value = specOf(blocks);
      this.#ask(80);
      this.#showControls();
    });
    this.field.addEventListener("input", () => this.#ask(150));
    this.passes.addEventListener("input", () => {
      const count = Math.floor(Number(this.passes.value));
      if (count >= 2 && this.bar.active) this.bar.set({ ...this.bar.active, count });
    });
    this.addButton.addEventListener("click", () => {
      const blocks = this.#answer && blocksOf(this.#answer) || [];
      const il = freeLayer(blocks, this.#answer?.n_layer ?? 0);
      if (il !== undefined) this.bar.add({ start: il, end: il + 1, count: 2 });
    });
    this.removeButton.addEventListener("click", () => this.bar.remove());
    this.#showTitle();
  }

  /**
   * @param {string} selector
   * @returns {HTMLElement}
   */
  #find(selector) {
    const found = this.root.querySelector(selector);
    if (!(found instanceof HTMLElement)) throw new Error(`no ${selector} in the plan's template`);
    return found;
  }

  /**
   * Offers plans as buttons.
   *
   * @param {Record<string, string>} plans Text of each plan, by its name.
   */
  offer(plans) {
    this.presets.replaceChildren(
      ...Object.entries(plans).map(([name, spec]) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = name;
        button.setAttribute("aria-label", `${this.name}: take ${name}`);
        if (name !== spec) button.title = spec;
        button.addEventListener("click", () => this.set(spec));
        return button;
      }),
    );
  }

  /**
   * Takes a plan as text.
   *
   * @param {string} spec
   * @returns {Promise<void>} Resolves when the server has said what it thinks.
   */
  set(spec) {
    this.field.value = spec;
    this.#ask(0);
    return this.settled();
  }

  /** Resolves when the server has answered to the plan as it is now. */
  settled() {
    return this.#pending?.promise ?? Promise.resolve();
  }

  /** @param {number} delay Milliseconds to wait for further edits. */
  #ask(delay) {
    const mine = ++this.#asked;
    const spec = this.field.value.trim() || "none";
    this.valid = false;
    this.root.setAttribute("aria-busy", "true");
    this.#pending ??= Promise.withResolvers();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      /** @type {() => void} */
      let show;
      try {
        const response = await call(`rys/plan?spec=${encodeURIComponent(spec)}`);
        const answer = await response.json();
        show = () => this.#take(spec, answer);
      } catch (error) {
        show = () => this.#refuse(error);
      }
      if (mine !== this.#asked) return; // the later question's answer counts
      const pending = this.#pending;
      this.#pending = undefined;
      show();
      this.root.setAttribute("aria-busy", "false");
      pending?.resolve();
    }, delay);
  }

  /**
   * @param {string} spec
   * @param {PlanAnswer} answer
   */
  #take(spec, answer) {
    this.spec = spec;
    this.valid = true;
    this.#answer = answer;
    this.field.removeAttribute("aria-invalid");
    this.field.removeAttribute("aria-describedby");
    this.problem.textContent = "";
    this.bar.show(timesOf(answer), blocksOf(answer));
    this.runs.replaceChildren(...answer.runs.flatMap((run, i) => {
      const many = run.repeat_count > 1;
      const part = document.createElement(many ? "b" : "span");
      part.textContent = range(run.repeat_start, run.repeat_end) +
        (many ? ` ×${run.repeat_count}` : "");
      return i ? [" → ", part] : [part];
    }));
    const { compute_ratio: work, kv_bytes, recurrent_bytes = 0 } = answer;
    this.cost.textContent = [
      work ? `work for a token ×${work.toFixed(2)}` : "",
      kv_bytes ? `cache ${((kv_bytes + recurrent_bytes) / 1e6).toFixed(1)} MB` : "",
    ].filter(Boolean).join(" · ");
    this.advice.replaceChildren(...answer.advisories.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }));
    this.#showTitle();
    this.#showControls();
  }

  /** @param {unknown} error */
  #refuse(error) {
    const isPlan = error instanceof ApiError && error.status === 400;
    if (isPlan) {
      this.field.setAttribute("aria-invalid", "true");
      this.field.setAttribute("aria-describedby", this.problem.id);
    } else if (error instanceof ApiError) this.onError(error);
    this.problem.textContent = error instanceof ApiError
      ? error.message
      : "The server does not answer.";
    this.advice.replaceChildren();
    this.runs.replaceChildren();
    this.cost.textContent = "";
  }

  #showTitle() {
    const count = document.createElement("span");
    if (this.#answer) {
      const { n_layer, n_layer_eff } = this.#answer;
      count.textContent = n_layer === n_layer_eff
        ? `${n_layer} layers`
        : `${n_layer} layers, ${n_layer_eff} run`;
    }
    this.title.replaceChildren(this.name, count);
  }

  #showControls() {
    const { active } = this.bar;
    this.passes.disabled = !active;
    this.removeButton.disabled = !active;
    if (active) this.passes.value = String(active.count);
  }
}
