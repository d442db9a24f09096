import { isObject } from "../../json.ts";
import { explainFault } from "../checks/explain_fault.ts";
import { json } from "../http/json.ts";
import { cleanError } from "./answer.ts";

/**
 * An error of upstream's as an answer.
 *
 * @param answer Upstream's answer.
 * @param status Its status.
 * @param path The route, as upstream calls it.
 * @param request The body that upstream was given.
 */
export function upstreamError(
  answer: unknown,
  status: number,
  path: string,
  request?: unknown,
): Response {
  if (!isObject(answer) || !isObject(answer.error)) return json(answer, status);
  const { error } = answer;
  cleanError(error);
  Object.assign(error, explainFault(String(error.message), request));
  if (status === 500 && !isInner(String(error.message))) {
    status = 400;
    Object.assign(error, { code: status, type: "invalid_request_error" });
  }
  return json(path.startsWith("/v1/messages") ? { type: "error", ...answer } : answer, status);
}

/**
 * Whether an error of upstream's is of the server itself. The others of its "server errors" are thrown while a request is
 * read, e.g. by a chat template that refuses the messages.
 */
function isInner(message: string): boolean {
  return /^(?:got exception|context shift|the current context|unable to|invalid input batch|context size|compute)/i
    .test(message) || /\b(?:memory|alloc)/i.test(message);
}
