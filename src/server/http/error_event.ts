import { toApiError } from "./api_error.ts";

/**
 * An error in the middle of a stream, in the form of the stream.
 *
 * @param error What was thrown.
 * @param path The route, as upstream calls it.
 */
export function errorEvent(error: unknown, path: string): string {
  const told = toApiError(error).toJson();
  if (path.endsWith("/responses")) {
    // Text here, where llama-server's code is the status.
    const { type, message, param = null } = told;
    const inner = { type, code: type, message, param };
    return event({ ...inner, type: "error", error: inner });
  }
  if (path === "/v1/messages") return event({ type: "error", error: told });
  return `data: ${JSON.stringify({ error: told })}\n\n`;
}

function event(data: { type: string } & Record<string, unknown>): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
