// @ts-check
/// <reference lib="dom" />
// The page: what the server runs, one or two plans, a conversation with each.

import { Answer } from "./answer.js";
import { ApiError, call, hasKey, keepKey } from "./api.js";
import { PlanPicker } from "./plan_picker.js";

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
function byId(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`no ${id} on the page`);
  return found;
}

const status = byId("status", HTMLElement);
const log = byId("log", HTMLElement);
const plans = byId("plans", HTMLElement);
const message = byId("message", HTMLTextAreaElement);
const send = byId("send", HTMLButtonElement);
const stop = byId("stop", HTMLButtonElement);
const compare = byId("compare", HTMLButtonElement);
const dialog = byId("key-dialog", HTMLDialogElement);
const keyNote = byId("key-note", HTMLElement);
const keyField = byId("key", HTMLInputElement);

/** A plan's column: what it was asked and what it answered. */
class Column {
  /** @type {{ question: string, answer: Answer }[]} */
  turns = [];

  /**
   * @param {string} name
   * @param {string} className
   */
  constructor(name, className) {
    this.className = className;
    this.picker = new PlanPicker(name, className, fail);
  }

  /**
   * The conversation so far, and what comes next.
   *
   * @param {string} question
   */
  messages(question) {
    const system = byId("system", HTMLTextAreaElement).value.trim();
    return [
      ...system ? [{ role: "system", content: system }] : [],
      ...this.turns.filter(({ answer }) => answer.text).flatMap(({ question, answer }) => [
        { role: "user", content: question },
        { role: "assistant", content: answer.text },
      ]),
      { role: "user", content: question },
    ];
  }
}

const columns = [new Column("Plan A", "a"), new Column("Plan B", "b")];
/** @type {AbortController | undefined} */
let running;

const isTwo = () => compare.getAttribute("aria-pressed") === "true";
const shown = () => columns.slice(0, isTwo() ? 2 : 1);

/**
 * @param {string} text
 * @param {boolean} [bad]
 */
function say(text, bad = false) {
  status.textContent = text;
  status.classList.toggle("bad", bad);
}

/** @param {unknown} error */
function fail(error) {
  if (error instanceof ApiError && error.status === 401) {
    if (!dialog.open) {
      keyField.value = "";
      keyNote.textContent = hasKey()
        ? "The server does not take the key that was given."
        : "It is kept until this tab is closed.";
      dialog.showModal();
    }
  } else {
    say(error instanceof ApiError ? error.message : "The server does not answer.", true);
  }
}

/**
 * Shows Stop in the place of Send while answers run.
 *
 * @param {AbortController | undefined} controller What stops them.
 */
function setRunning(controller) {
  const focused = document.activeElement;
  running = controller;
  stop.hidden = !controller;
  send.hidden = !!controller;
  if (focused === send) stop.focus();
  else if (focused === stop) send.focus();
}

/** Puts as many columns on the page as are asked for. */
function arrange() {
  plans.replaceChildren(...shown().map(({ picker }) => picker.root));
  plans.classList.toggle("two", isTwo());
}

// What the server runs

/**
 * @typedef {object} Facts What the server says of itself, as far as the page shows it.
 * @property {number} [n_layer]
 * @property {string | { spec: string }} [plan] The plan of requests that name none.
 * @property {Record<string, string | { spec: string }>} [aliases]
 * @property {string} [architecture]
 * @property {string} [device] Where it computes.
 * @property {{ description: string, layers: number, bytes: number } | null} [gpu]
 * @property {string} [gpu_why] Why no GPU computes.
 * @property {number} [model_bytes]
 * @property {number} [n_ctx]
 * @property {number} [n_parallel]
 * @property {number} [max_contexts]
 * @property {string} [version]
 * @property {string} [deno]
 * @property {Record<string, unknown>} [boot]
 */

/**
 * A fact's name and value for people.
 *
 * @param {string} name
 * @param {unknown} value
 * @returns {[string, string][]}
 */
function fact(name, value) {
  if (value === null || value === undefined || value === "") return [];
  if (typeof value === "object") {
    return Object.entries(value).flatMap(([key, inner]) =>
      fact(Array.isArray(value) ? name : `${name} ${key}`.trim(), inner)
    );
  }
  const words = name.replaceAll("_", " ");
  if (typeof value !== "number") return [[words, String(value)]];
  if (/ ms$/.test(words)) return [[words.slice(0, -3), `${(value / 1000).toFixed(2)} s`]];
  if (/ bytes$/.test(words)) return [[words.slice(0, -6), `${(value / 1e6).toFixed(1)} MB`]];
  return [[words, value.toLocaleString(undefined, { maximumFractionDigits: 2 })]];
}

/** @param {string | { spec: string } | undefined} plan */
const specText = (plan) => typeof plan === "object" ? plan.spec : plan ?? "none";

const sleep = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for the model, then shows it. */
async function start() {
  while ((await call("ping")).status === 204) {
    say("The model is being loaded");
    await sleep(300);
  }
  const props = await (await call("props")).json();
  const models = await (await call("v1/models")).json();
  /** @type {Facts} */
  const rys = { ...models.rys, ...props.rys };
  const model = models.data?.[0] ?? {};
  const name = String(model.id ?? props.model_alias ?? "model");
  const facts = [
    ...fact("model", name),
    ...fact("architecture", rys.architecture),
    ...fact("layers", rys.n_layer),
    ...fact("parameters", model.meta?.n_params),
    ...fact("weights bytes", rys.model_bytes ?? model.meta?.size),
    ...fact("context, tokens", rys.n_ctx ?? props.default_generation_settings?.n_ctx),
    ...fact("answers at once", rys.n_parallel ?? props.total_slots),
    ...fact("plans at once", rys.max_contexts),
    ...fact("computes on", rys.device?.toUpperCase()),
    ...rys.gpu
      ? [
        ...fact("GPU", rys.gpu.description),
        ...fact("layers on the GPU", rys.gpu.layers),
        ...fact("weights on the GPU bytes", rys.gpu.bytes),
      ]
      : fact("GPU not used", rys.gpu_why),
    ...fact("start:", rys.boot),
    ...fact("RYS Edge", rys.version),
    ...fact("Deno", rys.deno),
  ];
  byId("fact-list", HTMLElement).replaceChildren(...facts.flatMap(([name, value]) => {
    const term = document.createElement("dt");
    term.textContent = name;
    const definition = document.createElement("dd");
    definition.textContent = value;
    return [term, definition];
  }));
  say(
    [name, rys.n_layer ? `${rys.n_layer} layers` : "", rys.device].filter(Boolean).join(" · "),
  );
  const byDefault = specText(rys.plan);
  /** @type {Record<string, string>} */
  const offers = { none: "none" };
  if (byDefault !== "none") offers[byDefault] = byDefault;
  for (const [alias, plan] of Object.entries(rys.aliases ?? {})) offers[alias] = specText(plan);
  for (const { picker } of columns) picker.offer(offers);
  const n = rys.n_layer ?? 0;
  const middle = n >> 1;
  const example = `${middle},${middle + Math.max(1, n >> 3)}`;
  const [a, b] = byDefault === "none" ? ["none", example] : [byDefault, "none"];
  await Promise.all([columns[0]?.picker.set(a ?? "none"), columns[1]?.picker.set(b ?? "none")]);
  send.disabled = false;
}

// Conversation

/** @param {string} question */
async function ask(question) {
  const asked = shown();
  await Promise.all(asked.map(({ picker }) => picker.settled()));
  const wrong = asked.find(({ picker }) => !picker.valid);
  if (wrong) {
    wrong.picker.field.focus();
    return;
  }
  const stopping = new AbortController();
  message.value = "";
  setRunning(stopping);
  byId("empty", HTMLElement).hidden = true;
  const turn = document.createElement("div");
  turn.className = "turn";
  const words = document.createElement("p");
  words.className = "question";
  words.textContent = question;
  const row = document.createElement("div");
  row.className = asked.length > 1 ? "columns two" : "columns";
  turn.append(words, row);
  log.append(turn);
  const value = (/** @type {string} */ id, /** @type {number} */ other) => {
    const { value, valueAsNumber } = byId(id, HTMLInputElement);
    return value === "" || Number.isNaN(valueAsNumber) ? other : valueAsNumber;
  };
  // Plans are compared on the same seed, so that only the plan differs.
  const seed = value("seed", (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) >>> 1);
  const scroller = getComputedStyle(log).overflowY === "auto" ? log : document.documentElement;
  let follow = true;
  const grow = () => {
    if (follow) scroller.scrollTop = scroller.scrollHeight;
  };
  const onScroll = () => {
    follow = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
  };
  const target = scroller === log ? log : document;
  target.addEventListener("scroll", onScroll, { passive: true });
  const errors = await Promise.all(asked.map(async (column) => {
    const { picker: { name, spec }, className } = column;
    const answer = new Answer(name, spec, className);
    const messages = column.messages(question);
    column.turns.push({ question, answer });
    row.append(answer.root);
    grow();
    return await answer.run(
      {
        messages,
        spec,
        temperature: value("temperature", 0.8),
        maxTokens: value("max-tokens", 256),
        seed,
      },
      stopping.signal,
      grow,
    );
  }));
  target.removeEventListener("scroll", onScroll);
  setRunning(undefined);
  const noKey = errors.find((error) => error?.status === 401);
  if (noKey) fail(noKey);
}

byId("composer", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  const question = message.value.trim();
  if (question && !running && !send.disabled) ask(question);
});
message.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("composer", HTMLFormElement).requestSubmit();
});
stop.addEventListener("click", () => running?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  running?.abort();
  for (const menu of document.querySelectorAll("details.menu")) menu.removeAttribute("open");
});
document.addEventListener("pointerdown", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (event.target instanceof Node && !menu.contains(event.target)) menu.removeAttribute("open");
  }
});
byId("clear", HTMLButtonElement).addEventListener("click", () => {
  running?.abort();
  for (const column of columns) column.turns = [];
  for (const turn of log.querySelectorAll(".turn")) turn.remove();
  byId("empty", HTMLElement).hidden = false;
  message.focus();
});
compare.addEventListener("click", () => {
  compare.setAttribute("aria-pressed", String(!isTwo()));
  arrange();
});
for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", (event) => event.preventDefault());
}
byId("key-form", HTMLFormElement).addEventListener("submit", () => {
  keepKey(keyField.value);
  dialog.close();
  if (send.disabled) start().catch(fail);
});
dialog.addEventListener("cancel", () => {
  if (send.disabled) say("This server asks for a key: reload the page to give it one", true);
});

arrange();
start().catch(fail);
