import { refused } from "./refused.ts";
import { isObject } from "../json.ts";

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** The name of a value's type, for an error. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "string":
      return "text";
    case "boolean":
      return String(value);
    case "object":
      return "an object";
    default:
      return `a ${typeof value}`;
  }
}

/** Refuses what is given but not text. */
function text(value: unknown, path: string): void {
  if (isGiven(value) && typeof value !== "string") {
    throw refused(path, `must be text, not ${kindOf(value)}`);
  }
}

/**
 * Refuses chat messages with fields of a wrong type, which upstream's parser would report in its own terms.
 *
 * @param messages The field `messages`; anything but a list is left to others.
 * @throws {EngineError} Status 400, with the field and what it may be.
 */
export function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages)) return;
  messages.forEach((message, i) => {
    const at = `messages[${i}]`;
    if (!isObject(message)) throw refused(at, `must be an object, not ${kindOf(message)}`);
    if (!isGiven(message.role)) throw refused(`${at}.role`, "is missing");
    for (const name of ["role", "name", "tool_call_id", "reasoning_content"]) {
      text(message[name], `${at}.${name}`);
    }
    checkContent(message.content, `${at}.content`);
    checkCalls(message.tool_calls, `${at}.tool_calls`);
  });
}

function checkContent(content: unknown, at: string): void {
  if (!isGiven(content) || typeof content === "string") return;
  if (!Array.isArray(content)) {
    throw refused(at, `must be text or a list of parts, not ${kindOf(content)}`);
  }
  content.forEach((part, i) => {
    if (!isObject(part)) throw refused(`${at}[${i}]`, `must be an object, not ${kindOf(part)}`);
    if (!isGiven(part.type)) throw refused(`${at}[${i}].type`, "is missing");
    text(part.type, `${at}[${i}].type`);
    if (part.type !== "text") return;
    if (!isGiven(part.text)) throw refused(`${at}[${i}].text`, "is missing");
    text(part.text, `${at}[${i}].text`);
  });
}

function checkCalls(calls: unknown, at: string): void {
  if (!isGiven(calls)) return;
  if (!Array.isArray(calls)) throw refused(at, `must be a list, not ${kindOf(calls)}`);
  calls.forEach((call, i) => {
    const here = `${at}[${i}]`;
    if (!isObject(call)) throw refused(here, `must be an object, not ${kindOf(call)}`);
    text(call.id, `${here}.id`);
    if (call.type !== "function") {
      const is = isGiven(call.type) ? `must be "function"` : `is missing; it must be "function"`;
      throw refused(`${here}.type`, is);
    }
    const { function: fn } = call;
    if (!isObject(fn)) throw refused(`${here}.function`, `must be an object, not ${kindOf(fn)}`);
    if (typeof fn.name !== "string" || fn.name === "") {
      throw refused(`${here}.function.name`, "must be the name of a tool");
    }
    const { arguments: args } = fn;
    if (isGiven(args) && typeof args !== "string" && !isObject(args)) {
      throw refused(`${here}.function.arguments`, "must be a JSON object, as text");
    }
  });
}
