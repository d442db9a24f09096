import { ApiError } from "../http/api_error.ts";
import { isObject, type JsonObject as Body } from "../../json.ts";

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
  const isResponse = /\/responses(?:\/input_tokens)?$/.test(path);
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
      throw wrong(
        name,
        `cannot be used: of a response only the items are kept here, for references to them; ${instead}`,
      );
    }
  }
  if (body.background === true) {
    throw wrong("background", "must be false: no responses are kept here");
  }
  const { tools, tool_choice: choice } = body;
  const isFunction = (tool: unknown) => isObject(tool) && tool.type === "function";
  if (choice === "required" && Array.isArray(tools) && !tools.some(isFunction)) {
    throw wrong("tool_choice", `requires a call of a tool, but none is of type "function"`);
  }
  if (Array.isArray(body.input)) body.input.forEach(checkItem);
  const text = objectOr(body, "text");
  checkFormat("text.format", text.format, ["text", "json_object", "json_schema"]);
}

const ROLES = ["user", "assistant", "system", "developer"];

/** What an item of a type needs, beside a message and thoughts. */
const NEEDS: Record<string, string[]> = {
  function_call: ["call_id", "name", "arguments"],
  function_call_output: ["call_id"],
};

/** Says of an item of a response's input what upstream calls "Cannot determine type of 'item'". */
function checkItem(item: unknown, i: number): void {
  const at = `input[${i}]`;
  if (!isObject(item)) throw wrong(at, "must be an object");
  const { type } = item;
  if (!isGiven(type) || type === "message") {
    if (!ROLES.includes(String(item.role))) {
      throw wrong(`${at}.role`, `must be ${list(ROLES)}`);
    }
    if (typeof item.content !== "string" && !Array.isArray(item.content)) {
      throw wrong(`${at}.content`, "must be text or a list of parts");
    }
    return;
  }
  if (type === "reasoning") return;
  const needs = typeof type === "string" ? NEEDS[type] : undefined;
  if (!needs) {
    throw wrong(`${at}.type`, `must be ${list(["message", "reasoning", ...Object.keys(NEEDS)])}`);
  }
  for (const name of needs) {
    if (typeof item[name] !== "string") throw wrong(`${at}.${name}`, "must be text");
  }
  if (
    type === "function_call_output" && typeof item.output !== "string" &&
    !Array.isArray(item.output)
  ) {
    throw wrong(`${at}.output`, "must be text or a list of parts");
  }
}

/** `"a", "b" or "c"`. */
function list(names: string[]): string {
  const quoted = names.map((name) => `"${name}"`);
  const last = quoted.pop();
  return quoted.length === 0 ? last! : `${quoted.join(", ")} or ${last}`;
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
    throw wrong(`${name}.type`, `must be ${list(types)}`);
  }
  if (format.type === "json_schema" && !isObject(format.schema)) {
    throw wrong(name, `of type "json_schema" needs a schema, an object`);
  }
}
