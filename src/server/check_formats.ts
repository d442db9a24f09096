import { ApiError } from "./api_error.ts";

type Body = Record<string, unknown>;

const isObject = (value: unknown): value is Body =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

function wrong(name: string, what: string): ApiError {
  return new ApiError(400, `"${name}" ${what}`, { fields: { param: name } });
}

/** Fields of `/v1/responses` that need a server that keeps responses. */
const KEPT: [name: string, instead: string][] = [
  ["previous_response_id", 'send the earlier items in "input"'],
  ["conversation", 'send the earlier items in "input"'],
  ["prompt", 'send its text in "instructions" or "input"'],
];

/**
 * Refuses what `/v1/responses` and `/v1/messages` have beside a chat and cannot be had here.
 *
 * @param path The route, as upstream calls it.
 * @param body The request's body.
 * @throws {ApiError} 400, with the field and what it may be.
 */
export function checkFormats(path: string, body: Body): void {
  const isResponse = path.endsWith("/responses");
  const isMessage = path.startsWith("/v1/messages");
  if (!isResponse && !isMessage) return;
  for (const name of ["n", "n_cmpl"]) {
    if (typeof body[name] === "number" && body[name] !== 1) {
      throw wrong(name, "must be 1: this route gives one answer");
    }
  }
  if (isMessage) {
    const config = objectOr(body, "output_config");
    checkFormat("output_config.format", config.format, ["json_schema"]);
    return;
  }
  for (const [name, instead] of KEPT) {
    if (isGiven(body[name])) {
      throw wrong(name, `cannot be used: no responses are kept here; ${instead}`);
    }
  }
  if (body.background === true) {
    throw wrong("background", "must be false: no responses are kept here");
  }
  const text = objectOr(body, "text");
  checkFormat("text.format", text.format, ["text", "json_object", "json_schema"]);
}

function objectOr(body: Body, name: string): Body {
  const value = body[name];
  if (!isGiven(value)) return {};
  if (!isObject(value)) throw wrong(name, "must be an object");
  return value;
}

function checkFormat(name: string, format: unknown, types: string[]): void {
  if (!isGiven(format)) return;
  if (!isObject(format)) throw wrong(name, "must be an object");
  if (!types.includes(String(format.type))) {
    throw wrong(`${name}.type`, `must be ${types.map((type) => `"${type}"`).join(", ")}`);
  }
  if (format.type === "json_schema" && !isObject(format.schema)) {
    throw wrong(name, `of type "json_schema" needs a schema, an object`);
  }
}
