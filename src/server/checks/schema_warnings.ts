import { ApiError } from "../http/api_error.ts";
import { isObject, type JsonObject as Json } from "../../json.ts";

/** Repetitions that a grammar counts; a greater maximum is not enforced. */
const MAX_REPEAT = 2000;
/** Warnings in one answer. */
const MOST = 20;
/** Levels that are looked into; deeper ones are refused. */
const MAX_DEPTH = 250;

/** Formats that a grammar has. */
const FORMATS = /^(?:date|time|date-time|uuid[1-5]?)$/;

/** What is not enforced wherever it stands. */
const NEVER = ["not", "if", "then", "else", "dependentRequired", "dependentSchemas"];

/** What is not enforced, by the type that it is about. */
const NOT_ENFORCED: Record<string, string[]> = {
  object: [
    "minProperties",
    "maxProperties",
    "propertyNames",
    "patternProperties",
    "dependencies",
    "unevaluatedProperties",
  ],
  array: [
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "additionalItems",
    "unevaluatedItems",
  ],
  integer: ["multipleOf"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  string: ["contentEncoding", "contentMediaType"],
};

/** What narrows a value, and is left out beside a keyword that decides alone. */
const NARROWING = [
  "type",
  "properties",
  "required",
  "items",
  "pattern",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "allOf",
  "anyOf",
  "oneOf",
  "enum",
  "const",
];

/** Bounds, the lower first. */
const BOUNDS = [
  ["minLength", "maxLength"],
  ["minItems", "maxItems"],
  ["minProperties", "maxProperties"],
  ["minContains", "maxContains"],
  ["minimum", "maximum"],
  ["exclusiveMinimum", "maximum"],
  ["minimum", "exclusiveMaximum"],
  ["exclusiveMinimum", "exclusiveMaximum"],
] as const;

/** Places of schemas in a schema: one each, a list, or by name. */
const ONE = ["items", "additionalProperties"];
const LISTS = ["anyOf", "oneOf", "allOf", "items", "prefixItems"];
const NAMED = ["properties", "$defs", "definitions"];

/** Why a pattern cannot be a grammar, outside of sets of characters. */
const UNSUPPORTED: readonly [what: string, text: RegExp][] = [
  ["look-ahead", /^\(\?[=!]/],
  ["look-behind", /^\(\?<[=!]/],
  ["flags", /^\(\?(?![:<=!]|P<)/],
  ["word boundaries", /^\\[bB]/],
  ["Unicode properties", /^\\[pP]/],
  ["references to groups", /^\\(?:k|[1-9])/],
  ["unknown escapes", /^\\(?![dDwWsStnrfvxcuAZz0])[A-Za-z]/],
];

/**
 * Why a pattern cannot be honoured, as far as is seen without reading it whole.
 *
 * @param pattern JSON schema's `pattern`.
 */
export function unsupportedInPattern(pattern: string): string | undefined {
  let inSet = false;
  for (let i = 0; i < pattern.length; i++) {
    const rest = pattern.slice(i, i + 8);
    if (inSet) {
      if (/^\[[:.=]/.test(rest)) return "POSIX classes";
      if (/^\\[pP]/.test(rest)) return "Unicode properties";
      if (rest[0] === "]") inSet = false;
    } else {
      const found = UNSUPPORTED.find(([, text]) => text.test(rest));
      if (found) return found[0];
      if (rest[0] === "[") inSet = true;
    }
    if (rest[0] === "\\") i++;
  }
  const often = [...pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g)]
    .some(([, min, max]) => Math.max(Number(min), Number(max ?? 0)) > MAX_REPEAT);
  return often ? `more than ${MAX_REPEAT} repetitions` : undefined;
}

/** What a walk has found. */
class Walk {
  readonly found: string[] = [];
  more = 0;

  constructor(readonly of: string, readonly isTool: boolean) {}

  tell(path: string, keyword: string, why = "is not enforced"): void {
    if (this.found.length < MOST) this.found.push(`"${this.of}": "${keyword}" at ${path} ${why}`);
    else this.more++;
  }

  walk(schema: unknown, path: string, depth: number): void {
    if (!isObject(schema) || depth > MAX_DEPTH || this.more > 0) return;
    this.#look(schema, path);
    for (const name of ONE) {
      if (isObject(schema[name])) this.walk(schema[name], `${path}/${name}`, depth + 1);
    }
    for (const name of LISTS) {
      const list = schema[name];
      if (!Array.isArray(list)) continue;
      list.forEach((one, i) => this.walk(one, `${path}/${name}/${i}`, depth + 1));
    }
    for (const name of NAMED) {
      const named = schema[name];
      if (!isObject(named)) continue;
      for (const [key, one] of Object.entries(named)) {
        this.walk(one, `${path}/${name}/${key}`, depth + 1);
      }
    }
  }

  /** Refuses a maximum below its minimum: the engine does too, but a tool's schema it may not look at. */
  #bounds(schema: Json, path: string): void {
    const refuse = (what: string) => {
      const param = this.of.replace(/\[.*/, "");
      const message = `"${this.of}" has a JSON schema that cannot be used: at ${path}: ${what}`;
      throw new ApiError(400, message, { fields: { param } });
    };
    for (const [low, high] of BOUNDS) {
      const [min, max] = [schema[low], schema[high]];
      if (typeof min === "number" && typeof max === "number" && max < min) {
        refuse(`${high} of ${max} is below ${low} of ${min}`);
      }
    }
    if (typeof schema.pattern !== "string") return;
    for (const [, min, max] of schema.pattern.matchAll(/(?<!\\)\{(\d+),(\d+)\}/g)) {
      if (Number(max) >= Number(min)) continue;
      refuse(
        `the pattern ${
          JSON.stringify(schema.pattern)
        } has a repetition whose maximum of ${max} is below its minimum of ${min}`,
      );
    }
  }

  #look(schema: Json, path: string): void {
    this.#bounds(schema, path);
    for (const name of NEVER) if (name in schema) this.tell(path, name);
    const deciding = ["$ref", "oneOf", "anyOf", "const", "enum"].find((name) => name in schema);
    if (deciding !== undefined) {
      for (const name of NARROWING) {
        if (name === deciding || !(name in schema)) continue;
        if (name === "type" && deciding !== "$ref") continue; // the values have types of their own
        this.tell(path, name, `is not enforced beside "${deciding}"`);
      }
      if (deciding === "oneOf") this.tell(path, "oneOf", `is enforced as "anyOf"`);
      return;
    }
    const types = Array.isArray(schema.type) ? schema.type : [schema.type ?? guess(schema)];
    for (const type of types) {
      for (const name of NOT_ENFORCED[String(type)] ?? []) {
        if (name in schema && schema[name] !== false) this.tell(path, name);
      }
      if (type === "string") this.#string(schema, path);
      if (type === "array") this.#array(schema, path);
      if (type === "object") this.#object(schema, path);
      if (type === "integer") this.#integer(schema, path);
    }
  }

  #string(schema: Json, path: string): void {
    const { pattern, format } = schema;
    let alone: string | undefined;
    if (typeof pattern === "string" && pattern !== "") {
      const why = this.isTool ? unsupportedInPattern(pattern) : undefined;
      if (why === undefined) alone = "pattern";
      else this.tell(path, "pattern", `is not enforced: ${why} cannot be honoured`);
    }
    if (typeof format === "string") {
      if (!FORMATS.test(format)) {
        this.tell(path, "format", `of ${JSON.stringify(format)} is not enforced`);
      } else if (alone !== undefined) {
        this.tell(path, "format", `is not enforced beside "${alone}"`);
      } else alone = "format";
    }
    for (const name of ["minLength", "maxLength"]) {
      if (alone !== undefined && name in schema) {
        this.tell(path, name, `is not enforced beside "${alone}"`);
      }
    }
    if (alone === undefined) this.#most(schema, "maxLength", path);
  }

  #array(schema: Json, path: string): void {
    if ("items" in schema && "prefixItems" in schema) {
      this.tell(path, "prefixItems", `is not enforced beside "items"`);
    }
    if (Array.isArray(schema.items ?? schema.prefixItems)) {
      for (const name of ["minItems", "maxItems"]) {
        if (name in schema) {
          this.tell(path, name, "is not enforced: all items of a tuple are required");
        }
      }
    } else this.#most(schema, "maxItems", path);
  }

  #object(schema: Json, path: string): void {
    const { properties, required } = schema;
    if ("properties" in schema && "allOf" in schema) {
      this.tell(path, "allOf", `is not enforced beside "properties"`);
    }
    if (!Array.isArray(required)) return;
    const names = isObject(properties) ? properties : {};
    for (const name of required) {
      if (typeof name === "string" && !Object.hasOwn(names, name)) {
        this.tell(path, "required", `names ${JSON.stringify(name)}, which is not in "properties"`);
      }
    }
  }

  #integer(schema: Json, path: string): void {
    for (
      const [plain, exclusive] of [["minimum", "exclusiveMinimum"], [
        "maximum",
        "exclusiveMaximum",
      ]] as const
    ) {
      if (plain in schema && exclusive in schema) {
        this.tell(path, exclusive, `is not enforced beside "${plain}"`);
      }
    }
  }

  #most(schema: Json, name: string, path: string): void {
    const most = schema[name];
    if (typeof most === "number" && most > MAX_REPEAT) {
      this.tell(path, name, `of ${most} is not enforced; ${MAX_REPEAT} is the most that is`);
    }
  }
}

/** The type of a schema without one, as the converter guesses it. */
function guess(schema: Json): string | undefined {
  const has = (...names: string[]) => names.some((name) => name in schema);
  if (has("properties", "additionalProperties")) return "object";
  if (has("allOf")) return undefined;
  if (has("items", "prefixItems")) return "array";
  if (has("pattern", "minLength", "maxLength", "format")) return "string";
  if (has("required", ...NOT_ENFORCED.object!)) return "object";
  if (has("minItems", "maxItems", ...NOT_ENFORCED.array!)) return "array";
  return has(...NOT_ENFORCED.number!) ? "number" : undefined;
}

/** Schemas of a request, and what they are called. */
function schemasOf(body: Json): [name: string, schema: unknown, isTool: boolean][] {
  const format = isObject(body.response_format) ? body.response_format : {};
  const inner = isObject(format.json_schema) ? format.json_schema.schema : format.schema;
  const text = isObject(body.text) && isObject(body.text.format) ? body.text.format : {};
  const config = isObject(body.output_config) && isObject(body.output_config.format)
    ? body.output_config.format
    : {};
  const found: [string, unknown, boolean][] = [
    ["json_schema", body.json_schema, false],
    ["response_format", inner, false],
    ["text.format", text.schema, false],
    ["output_config", config.schema, false],
  ];
  if (Array.isArray(body.tools) && body.tool_choice !== "none") {
    body.tools.forEach((tool, i) => {
      if (!isObject(tool)) return;
      const parameters = isObject(tool.function)
        ? tool.function.parameters
        : tool.parameters ?? tool.input_schema;
      found.push([`tools[${i}]`, parameters, true]);
    });
  }
  return found;
}

/**
 * What of a request's schemas and grammar is not enforced. What cannot be used at all the engine refuses.
 *
 * @param body The request's body.
 * @throws {ApiError} 400 where a maximum is below its minimum.
 */
export function schemaWarnings(body: Json): string[] {
  const found: string[] = [];
  for (const [name, schema, isTool] of schemasOf(body)) {
    const walk = new Walk(name, isTool);
    walk.walk(schema, "#", 0);
    found.push(...walk.found);
    if (walk.more > 0) found.push(`"${name}": further keywords are not enforced either`);
  }
  if (typeof body.grammar === "string") {
    for (const [text, most] of body.grammar.matchAll(/\{\s*\d+\s*,\s*(\d+)\s*\}/g)) {
      if (Number(most) <= MAX_REPEAT) continue;
      found.push(
        `"grammar": the maximum of ${text} is not enforced; ${MAX_REPEAT} is the most that is`,
      );
      break;
    }
  }
  return found.length <= MOST
    ? found
    : [...found.slice(0, MOST), `and ${found.length - MOST} more of the kind`];
}
