import { ApiError } from "../http/api_error.ts";
import { isObject, type JsonObject as Body } from "../../json.ts";

/** What a request's fields are checked against. */
export interface FieldFacts {
  /** Vocabulary of the model. */
  nVocab: number;
  /** Numbers in an embedding. */
  nEmbd: number;
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** Whether a route goes on from a prompt, without a chat template. */
const isText = (path: string): boolean =>
  /\/(?:completions?|infill)$/.test(path) && !path.includes("/chat/");

function wrong(name: string, what: string): ApiError {
  return new ApiError(400, `"${name}" ${what}`, { fields: { param: name } });
}

function show(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? text.slice(0, 60) + "..." : text;
}

/** llama.cpp's names of samplers; each may be written without its underscores, or with hyphens. */
const SAMPLERS = [
  "dry",
  "top_k",
  "top_p",
  "top_n_sigma",
  "typ_p",
  "min_p",
  "temperature",
  "xtc",
  "infill",
  "penalties",
  "adaptive_p",
];
const SAMPLER_NAMES = new Set([
  ...SAMPLERS.flatMap((name) => [name, name.replaceAll("_", "-"), name.replaceAll("_", "")]),
  "nucleus",
  "temp",
  "typ",
]);
/** Their letters, for a chain in one word. */
const SAMPLER_LETTERS = "dkypmtxieas";

/**
 * Honours what upstream would leave out, or refuses it: nothing that a request asks for is dropped without a word.
 *
 * @param path The route, as upstream calls it.
 * @param body The request's body.
 * @param facts What it is checked against.
 * @returns The body as upstream understands it.
 * @throws {ApiError} 400, with the field and what it may be.
 */
export function checkFields(path: string, body: Readonly<Body>, facts: FieldFacts): Body {
  const own = { ...body };
  honour(path, own, facts);
  return own;
}

/** Changes a body that is nobody else's. */
function honour(path: string, body: Body, facts: FieldFacts): void {
  checkEcho(path, body);
  if (isText(path)) checkText(path, body);
  checkSamplerNames(body.samplers);
  checkBias(body.logit_bias, facts.nVocab);
  const { chat_template_kwargs: kwargs, messages, dimensions } = body;
  if (isGiven(kwargs) && !isObject(kwargs)) {
    throw wrong("chat_template_kwargs", `must be an object, not ${show(kwargs)}`);
  }
  if (Array.isArray(messages) && messages.length === 0) {
    throw wrong("messages", "has nothing in it; it must have one message at least");
  }
  if (path.includes("embedding") && isGiven(dimensions)) {
    if (dimensions !== facts.nEmbd) {
      throw wrong(
        "dimensions",
        `must be ${facts.nEmbd}, which this model's embeddings have, not ${show(dimensions)}`,
      );
    }
    delete body.dimensions;
  }
  if (isGiven(body.grammar) && body.grammar !== "" && isGiven(body.json_schema)) {
    throw wrong("grammar", `and "json_schema" exclude each other`);
  }
  checkFormat(path, body);
}

/** In a chat it is about a message that is continued; a completion would have its prompt before its text. */
function checkEcho(path: string, body: Body): void {
  if (!isGiven(body.echo)) return void delete body.echo;
  if (typeof body.echo !== "boolean") {
    throw wrong("echo", `must be true or false, not ${show(body.echo)}`);
  }
  if (!isText(path)) return;
  if (body.echo) {
    throw wrong("echo", `is not offered on ${path}: the answer is the new text alone`);
  }
  delete body.echo;
}

/** OpenAI's fields of a completion that upstream does not have. */
function checkText(path: string, body: Body): void {
  const { suffix, best_of: bestOf } = body;
  if (isGiven(suffix) && suffix !== "") {
    throw wrong(
      "suffix",
      `is not offered on ${path}; /infill takes "input_prefix" and "input_suffix"`,
    );
  }
  delete body.suffix;
  if (isGiven(bestOf) && bestOf !== (body.n ?? 1)) {
    throw wrong("best_of", `must be "n", which is ${show(body.n ?? 1)}, not ${show(bestOf)}`);
  }
  delete body.best_of;
}

function checkSamplerNames(samplers: unknown): void {
  if (!isGiven(samplers)) return;
  if (typeof samplers === "string") {
    const letter = [...samplers].find((one) => !SAMPLER_LETTERS.includes(one));
    if (letter === undefined) return;
    throw wrong(
      "samplers",
      `has the letter ${show(letter)}; a chain in one word has ${
        [...SAMPLER_LETTERS].join(", ")
      }, as llama.cpp's --sampler-seq has`,
    );
  }
  if (!Array.isArray(samplers)) {
    throw wrong("samplers", `must be a list of names, or text, not ${show(samplers)}`);
  }
  for (const name of samplers) {
    if (typeof name !== "string" || !SAMPLER_NAMES.has(name.toLowerCase())) {
      throw wrong("samplers", `has ${show(name)}; there are ${SAMPLERS.join(", ")}`);
    }
  }
}

function checkBias(value: unknown, nVocab: number): void {
  if (!isGiven(value)) return;
  if (typeof value !== "object") {
    throw wrong("logit_bias", "must be an object of tokens and numbers, or a list of such pairs");
  }
  const pairs: unknown[] = Array.isArray(value) ? value : Object.entries(value as Body);
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2) {
      throw wrong("logit_bias", `has ${show(pair)}, which is not a pair of a token and a number`);
    }
    const [token, bias] = pair as [unknown, unknown];
    const id = typeof token === "string" && !Array.isArray(value) && /^[-+]?\d+$/.test(token)
      ? Number(token)
      : token;
    if (typeof id === "number") {
      if (!Number.isInteger(id) || id < 0 || id >= nVocab) {
        throw wrong("logit_bias", `has token ${show(id)}; tokens are 0..${nVocab - 1}`);
      }
    } else if (typeof id !== "string") {
      throw wrong("logit_bias", `has ${show(id)}, which is neither a token nor text`);
    }
    if (typeof bias !== "number" && bias !== false) {
      throw wrong("logit_bias", `has a bias of ${show(bias)}; it must be a number or false`);
    }
  }
}

/** Takes a schema beside the type as well as inside `json_schema`, and honours the format in plain completions. */
function checkFormat(path: string, body: Body): void {
  const { response_format: format } = body;
  if (!isGiven(format)) return;
  if (!isObject(format)) {
    throw wrong("response_format", `must be an object with a "type", not ${show(format)}`);
  }
  if (!["text", "json_object", "json_schema"].includes(String(format.type))) {
    throw wrong(
      "response_format",
      `has the type ${
        show(format.type ?? null)
      }; there are "text", "json_object" and "json_schema"`,
    );
  }
  if (format.type === "json_schema" && !isObject(format.json_schema)) {
    const { type, schema, ...rest } = format;
    body.response_format = { type, json_schema: { ...rest, schema } };
  }
  if (!isText(path)) return;
  const chosen = body.response_format as Body;
  delete body.response_format;
  if (chosen.type === "text") return;
  if (isGiven(body.json_schema) || (isGiven(body.grammar) && body.grammar !== "")) {
    throw wrong("response_format", `excludes "json_schema" and "grammar"`);
  }
  body.json_schema = chosen.type === "json_schema"
    ? (chosen.json_schema as Body).schema
    : chosen.schema ?? { type: "object" };
}
