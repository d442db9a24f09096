import { isNestedDeeper, MAX_NESTING } from "../../engine/nesting.ts";
import { ApiError, ClientGone, unavailable } from "./api_error.ts";

/** Bytes that bodies of all requests under way may take. */
export class BodyBudget {
  #left: number;

  /** @param bytes How many. */
  constructor(bytes: number) {
    this.#left = bytes;
  }

  /**
   * Takes bytes; {@linkcode BodyBudget.give} gives them back.
   *
   * @throws {ApiError} 503 if there are not so many.
   */
  take(bytes: number): void {
    if (bytes > this.#left) {
      throw unavailable(
        "The bodies of other requests fill the memory for them; try again later",
        5,
      );
    }
    this.#left -= bytes;
  }

  /** Gives bytes back. */
  give(bytes: number): void {
    this.#left += bytes;
  }
}

/**
 * Reads the JSON object that a request carries. Bytes that are not UTF-8 become U+FFFD.
 *
 * @param request The request.
 * @param maxBytes Bytes at most.
 * @param seconds Seconds that it may take.
 * @param take Told of bytes that came; throws where there are too many in all.
 * @throws {ApiError} If it is too large, too slow, or not a JSON object.
 */
export async function readJson(
  request: Request,
  maxBytes: number,
  seconds: number,
  take: (bytes: number) => void = () => {},
): Promise<Record<string, unknown>> {
  const text = new TextDecoder().decode(await readBytes(request, maxBytes, seconds, take));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ApiError(400, `The body is not JSON: ${reason(error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const is = value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
    throw new ApiError(400, `The body must be a JSON object, not ${is}`);
  }
  if (isNestedDeeper(value)) {
    throw new ApiError(400, `The body is nested deeper than ${MAX_NESTING} levels`);
  }
  return value as Record<string, unknown>;
}

async function readBytes(
  request: Request,
  maxBytes: number,
  seconds: number,
  take: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = () => new ApiError(413, `The body is larger than ${maxBytes} bytes`);
  if (Number(request.headers.get("content-length")) > maxBytes) throw tooLarge();
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let n = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new ApiError(408, `The body did not arrive within ${seconds} seconds`)),
      seconds * 1000,
    );
  });
  try {
    for (;;) {
      const { value, done } = await Promise.race([reader.read(), late]);
      if (done) break;
      n += value.length;
      if (n > maxBytes) throw tooLarge();
      take(value.length);
      parts.push(value);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error instanceof ApiError ? error : new ClientGone("the body was cut");
  } finally {
    clearTimeout(timer);
    late.catch(() => {});
  }
  const bytes = new Uint8Array(n);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** What JSON.parse says, without the text that it quotes. */
function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : "";
  const place = /at position \d+(?: \(line \d+ column \d+\))?/.exec(message)?.[0];
  if (/end of JSON input/.test(message)) return "it ends too early";
  return place === undefined ? "it cannot be parsed" : `it cannot be parsed ${place}`;
}
