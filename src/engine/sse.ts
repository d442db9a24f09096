import { SseParser } from "../sse.js";

/**
 * Reads the JSON in a stream of server-sent events.
 *
 * @returns A function that takes the next bytes and returns the objects that became whole. `[DONE]` and comments are
 * left out.
 */
export function sseParser(): (bytes: Uint8Array) => unknown[] {
  const parser = new SseParser();
  return (bytes) =>
    parser.take(bytes)
      .filter(({ data }) => data && data !== "[DONE]")
      .map(({ data }) => JSON.parse(data!));
}
