import { checkMessages } from "./check_messages.ts";
import { isNestedDeeper, MAX_NESTING } from "./nesting.ts";
import { refused } from "./refused.ts";
import { isObject, type JsonObject as Body } from "../json.ts";

/** The facts that a body is checked against. */
export interface BodyFacts {
  /** Vocabulary of the model. */
  nVocab: number;
  /** Slots of a context. */
  nParallel: number;
}

const INT = 2 ** 31 - 1;
/** How far back a sampler looks, in tokens: it allocates that many. */
const LOOK_BACK = 1 << 18;

/**
 * Fields that are whole numbers: upstream converts any number that it finds, and one outside its type's range ends
 * the engine. Upstream checks narrower limits itself.
 */
const WHOLE: Record<string, [min: number, max: number]> = {
  n_predict: [-INT, INT],
  max_tokens: [-INT, INT],
  max_completion_tokens: [-INT, INT],
  max_output_tokens: [-INT, INT],
  n_indent: [0, INT],
  n_keep: [-INT, INT],
  n_discard: [0, INT],
  n: [1, 256],
  n_cmpl: [1, 256],
  n_cache_reuse: [0, INT],
  t_max_predict_ms: [-1, Number.MAX_SAFE_INTEGER],
  top_k: [-INT, INT],
  repeat_last_n: [-1, LOOK_BACK],
  dry_allowed_length: [0, INT],
  dry_penalty_last_n: [-1, LOOK_BACK],
  mirostat: [0, 2],
  n_probs: [0, INT],
  top_logprobs: [0, INT],
  min_keep: [0, INT],
  reasoning_budget_tokens: [-1, INT],
  thinking_budget_tokens: [-1, INT],
  sse_ping_interval: [-1, 86_400],
  top_n: [0, INT],
  embd_normalize: [-1, 1000],
};

/** Fields that are numbers of 32 bits. */
const REAL = [
  "temperature",
  "top_p",
  "min_p",
  "top_n_sigma",
  "xtc_probability",
  "xtc_threshold",
  "typical_p",
  "dynatemp_range",
  "dynatemp_exponent",
  "repeat_penalty",
  "frequency_penalty",
  "presence_penalty",
  "dry_multiplier",
  "dry_base",
  "mirostat_tau",
  "mirostat_eta",
  "adaptive_target",
  "adaptive_decay",
];

/** Fields that are true or false. */
const YES_NO = [
  "parse_tool_calls",
  "stream",
  "verbose",
  "timings_per_token",
  "cache_prompt",
  "return_tokens",
  "return_progress",
  "backend_sampling",
  "post_sampling_probs",
  "ignore_eos",
  "reasoning_control",
  "parallel_tool_calls",
  "add_generation_prompt",
  "add_special",
  "parse_special",
  "with_pieces",
];

/** Fields that are text. */
const TEXTS = [
  "generation_prompt",
  "model",
  "reasoning_format",
  "reasoning_effort",
  "input_prefix",
  "input_suffix",
];

/** Fields that are objects. */
const OBJECTS = ["stream_options", "chat_template_kwargs"];

/** What upstream's handlers pass to each other in the same object; from outside it would be code, not text. */
const INTERNAL = [
  "chat_format",
  "chat_parser",
  "grammar_type",
  "grammar_lazy",
  "grammar_triggers",
  "preserved_tokens",
  "message_delimiters",
  "reasoning_budget_start_tag",
  "reasoning_budget_end_tag",
  "reasoning_budget_end_tags",
  "reasoning_budget_message",
];

/** Fields that name files on the server's machine in one server or another. */
const PATHS = [
  "model_path",
  "lora_path",
  "lora_paths",
  "mmproj",
  "draft_model",
  "model_draft",
  "slot_save_path",
  "grammar_file",
  "json_schema_file",
  "chat_template_file",
  "media_path",
];

/** Most samplers in a chain: each is made for the request, with memory for as many tokens as it looks back. */
const MAX_SAMPLERS = 32;
/** Most strings that break a sequence for the DRY sampler, and most characters in each. */
const MAX_BREAKERS = 64;
const MAX_BREAKER = 256;
/** Most texts with a bias: each is split into tokens. */
const MAX_BIAS_TEXTS = 1000;
/** Most tokens with a bias, and most fields asked for. */
const MAX_LIST = 65_536;

/** Most prompts or texts in one request. */
const MAX_TEXTS = 2048;
/** Characters of a grammar, and of a schema as JSON. What they come to the engine counts. */
const MAX_GRAMMAR = 1 << 20;

/** Types of content parts that are not text. */
const MEDIA = /^(?:input_)?(image|audio|video|file|document)(?:_url)?$/;

/**
 * Refuses what would end the engine or reach for files. Upstream itself reports whatever else is wrong with a body.
 *
 * @param body A request's body.
 * @param facts The facts that it is checked against.
 * @throws {EngineError} Status 400, with the field and what it may be.
 */
export function checkBody(body: Body, facts: BodyFacts): void {
  for (const [name, value] of Object.entries(body)) {
    if (isNestedDeeper(value, MAX_NESTING - 1)) {
      throw refused(name, `is nested deeper than ${MAX_NESTING - 1} levels`);
    }
  }
  for (const name of [...INTERNAL, ...PATHS]) {
    if (body[name] !== undefined && body[name] !== null) {
      throw refused(name, "is not a field of requests");
    }
  }
  for (const [name, [min, max]] of Object.entries(WHOLE)) whole(body, name, min, max);
  for (const name of REAL) real(body, name);
  const typed = (names: readonly string[], what: string, is: (value: unknown) => boolean) => {
    for (const name of names) {
      const value = body[name];
      if (value === undefined || value === null || is(value)) continue;
      throw refused(name, `must be ${what}, not ${show(value)}`);
    }
  };
  typed(YES_NO, "true or false", (value) => typeof value === "boolean");
  typed(TEXTS, "text", (value) => typeof value === "string");
  typed(OBJECTS, "an object", isObject);
  if (typeof body.logprobs !== "boolean") whole(body, "logprobs", 0, INT);
  whole(body, "seed", -1, 2 ** 32 - 1);
  whole(body, "id_slot", -1, facts.nParallel - 1);
  if (isObject(body.thinking)) whole(body.thinking, "budget_tokens", -1, INT, "thinking.");
  if (isObject(body.reasoning)) whole(body.reasoning, "max_tokens", -1, INT, "reasoning.");
  checkTokens(body, "tokens", facts.nVocab);
  checkTokens(body, "prompt", facts.nVocab);
  checkTokens(body, "content", facts.nVocab);
  checkLogitBias(body.logit_bias);
  checkSamplers(body);
  checkLora(body.lora);
  for (const name of ["stop", "stop_sequences"]) checkStop(body[name], name);
  for (const name of ["messages", "input"]) checkParts(body[name], name);
  checkMessages(body.messages);
  checkGrammar(body);
}

/**
 * Checks texts to embed or to rank.
 *
 * @param body A request's body.
 * @param facts The facts that it is checked against.
 */
export function checkTexts(body: Body, facts: BodyFacts): void {
  checkBody(body, facts);
  checkTokens(body, "input", facts.nVocab);
  for (const name of ["input", "content"]) {
    const list = body[name];
    for (const one of Array.isArray(list) ? list : list === undefined ? [] : [list]) {
      const isText = typeof one === "string" || typeof one === "number" || Array.isArray(one) ||
        (isObject(one) && "prompt_string" in one);
      if (!isText) {
        throw refused(name, `must be text, tokens, or a list of these, not ${show(one)}`);
      }
    }
  }
  for (const name of ["documents", "texts"]) {
    const list = body[name];
    if (Array.isArray(list) && list.length > MAX_TEXTS) {
      throw refused(name, `has ${list.length} texts; ${MAX_TEXTS} is the most`);
    }
  }
}

function show(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 40 ? text.slice(0, 40) + "..." : text;
}

function whole(body: Body, name: string, min: number, max: number, prefix = ""): void {
  const value = body[name];
  if (value === undefined || value === null) return;
  if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
    throw refused(prefix + name, `must be a whole number in ${min}..${max}, not ${show(value)}`);
  }
}

function real(body: Body, name: string): void {
  const value = body[name];
  if (value === undefined || value === null) return;
  if (typeof value !== "number" || Math.abs(value) > 1e9) {
    throw refused(name, `must be a number in -1e9..1e9, not ${show(value)}`);
  }
}

/** Numbers in a prompt are tokens. */
function checkTokens(body: Body, name: string, nVocab: number): void {
  const value = body[name];
  if (Array.isArray(value) && value.length > MAX_TEXTS && typeof value[0] !== "number") {
    throw refused(name, `has ${value.length} parts; ${MAX_TEXTS} is the most`);
  }
  const walk = (part: unknown, depth: number): void => {
    if (typeof part === "number") {
      if (!Number.isInteger(part) || part < 0 || part >= nVocab) {
        throw refused(name, `has token ${part}; tokens are whole numbers in 0..${nVocab - 1}`);
      }
    } else if (Array.isArray(part)) {
      if (depth > 3) throw refused(name, "is nested too deep");
      for (const inner of part) walk(inner, depth + 1);
    } else if (isObject(part)) {
      if (part.multimodal_data !== undefined) throw refused(name, "may have no multimodal_data");
      walk(part.prompt_string, depth + 1);
    }
  };
  walk(value, 0);
}

/** A chain of many samplers, or one with many strings, takes gigabytes and minutes for a token. */
function checkSamplers(body: Body): void {
  const { samplers, dry_sequence_breakers: breakers, response_fields: fields } = body;
  if (Array.isArray(samplers) || typeof samplers === "string") {
    if (samplers.length > MAX_SAMPLERS) {
      throw refused("samplers", `names ${samplers.length} samplers; ${MAX_SAMPLERS} is the most`);
    }
    if (new Set(samplers).size !== samplers.length) {
      throw refused("samplers", "names a sampler twice");
    }
  }
  if (Array.isArray(breakers)) {
    if (breakers.length > MAX_BREAKERS) {
      throw refused("dry_sequence_breakers", `has ${breakers.length}; ${MAX_BREAKERS} is the most`);
    }
    if (breakers.some((one) => typeof one === "string" && one.length > MAX_BREAKER)) {
      throw refused("dry_sequence_breakers", `has one of more than ${MAX_BREAKER} characters`);
    }
  }
  if (Array.isArray(fields) && fields.length > MAX_LIST) {
    throw refused("response_fields", `has ${fields.length}; ${MAX_LIST} is the most`);
  }
}

function checkLogitBias(value: unknown): void {
  const entries = Array.isArray(value) ? value : isObject(value) ? Object.entries(value) : [];
  const texts = entries.filter((one) => Array.isArray(one) && typeof one[0] === "string").length;
  if (!isObject(value) && texts > MAX_BIAS_TEXTS) {
    throw refused("logit_bias", `has ${texts} texts; ${MAX_BIAS_TEXTS} is the most`);
  }
  if (entries.length > MAX_LIST) {
    throw refused("logit_bias", `has ${entries.length} entries; ${MAX_LIST} is the most`);
  }
  for (const entry of entries) {
    if (!Array.isArray(entry)) continue; // upstream ignores it
    const [token, bias] = entry as unknown[];
    if (typeof token === "number" && !(Number.isInteger(token) && Math.abs(token) <= INT)) {
      throw refused("logit_bias", `has token ${token}, which is not in the vocabulary`);
    }
    if (typeof bias === "number" && Math.abs(bias) > 1e9) {
      throw refused("logit_bias", `has a bias of ${bias}; it must be in -1e9..1e9`);
    }
  }
}

function checkLora(value: unknown): void {
  if (value === undefined || value === null) return;
  if (!Array.isArray(value) || !value.every(isObject)) {
    throw refused("lora", `must be a list of objects with "id" and "scale"`);
  }
  for (const adapter of value) {
    for (const name of Object.keys(adapter)) {
      if (name !== "id" && name !== "scale") throw refused("lora", `has no field "${name}"`);
    }
    whole(adapter, "id", 0, INT, "lora.");
    real(adapter, "scale");
  }
}

function checkStop(value: unknown, name: string): void {
  if (value === undefined || value === null) return;
  const list = Array.isArray(value) ? value : [value];
  if (list.some((one) => typeof one !== "string")) {
    throw refused(name, "must be a string or a list of strings");
  }
  if (list.includes("")) throw refused(name, "has an empty string, which would end every answer");
  if (list.length > 256) throw refused(name, `has ${list.length} strings; 256 is the most`);
}

/** Only text is accepted: neither data nor a location to fetch data from. */
function checkParts(value: unknown, path: string): void {
  if (Array.isArray(value)) {
    value.forEach((part, i) => checkParts(part, `${path}[${i}]`));
    return;
  }
  if (!isObject(value)) return;
  const type = MEDIA.exec(String(value.type))?.[1];
  if (type !== undefined) {
    throw refused(
      path,
      `is of type ${show(value.type)}: ${type} input is not offered, only text`,
    );
  }
  for (const name of ["content", "output"]) {
    if (typeof value[name] === "object") checkParts(value[name], `${path}.${name}`);
  }
}

function checkGrammar(body: Body): void {
  const { grammar } = body;
  if (typeof grammar === "string") {
    if (grammar.length > MAX_GRAMMAR) {
      throw refused("grammar", `has ${grammar.length} characters; ${MAX_GRAMMAR} is the most`);
    }
  } else if (grammar !== undefined && grammar !== null) {
    throw refused("grammar", `must be a string, not ${show(grammar)}`);
  }
  const format = isObject(body.response_format) ? body.response_format : {};
  const text = isObject(body.text) && isObject(body.text.format) ? body.text.format : {};
  const schemas: [string, unknown][] = [
    ["json_schema", body.json_schema],
    ["response_format", format.schema ?? format.json_schema],
    ["text.format", text.schema],
    ["output_config", body.output_config],
    ["tools", body.tools],
  ];
  for (const [name, schema] of schemas) {
    if (schema === undefined || schema === null) continue;
    const json = JSON.stringify(schema);
    if (json.length > MAX_GRAMMAR) {
      throw refused(name, `has more than ${MAX_GRAMMAR} characters`);
    }
  }
}
