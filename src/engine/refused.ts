import { EngineError } from "./client.ts";

/**
 * The error for a request with a field that cannot be accepted.
 *
 * @param name The field.
 * @param what What is wrong with it, or what it may be.
 */
export function refused(name: string, what: string): EngineError {
  return new EngineError(`"${name}" ${what}`, {
    status: 400,
    type: "invalid_request_error",
    details: { param: name },
  });
}
