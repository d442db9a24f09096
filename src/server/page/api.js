// @ts-check
// Requests to the server that this page came from.

import { SseParser } from "../../sse.js";

/** An answer that is not a success. */
export class ApiError extends Error {
  /**
   * @param {number} status HTTP status.
   * @param {string} message What the server says.
   */
  constructor(status, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** The server's root: the page may live behind a proxy that adds a path. */
const root = new URL("../", import.meta.url);

const KEY = "rys.api-key";

/**
 * Keeps the key until the tab is closed.
 *
 * @param {string} key
 */
export function keepKey(key) {
  sessionStorage.setItem(KEY, key);
}

/** Whether there is a key. */
export const hasKey = () => !!sessionStorage.getItem(KEY);

/**
 * Makes a request.
 *
 * @param {string} path Without a slash at its start.
 * @param {{ body?: unknown, signal?: AbortSignal }} [options] With a body it is a POST.
 * @returns {Promise<Response>}
 * @throws {ApiError} If the answer is not a success.
 */
export async function call(path, { body, signal } = {}) {
  const key = sessionStorage.getItem(KEY);
  const response = await fetch(new URL(path, root), {
    method: body === undefined ? "GET" : "POST",
    headers: {
      ...body === undefined ? {} : { "Content-Type": "application/json" },
      ...key ? { Authorization: `Bearer ${key}` } : {},
    },
    ...body === undefined ? {} : { body: JSON.stringify(body) },
    ...signal ? { signal } : {},
  });
  if (response.ok) return response;
  const text = await response.text();
  throw new ApiError(response.status, errorText(text) || `the server answers ${response.status}`);
}

/**
 * The sentence in an error as the server's routes give it.
 *
 * @param {string} text A body, or the data of an event.
 * @returns {string}
 */
export function errorText(text) {
  try {
    const { error } = JSON.parse(text);
    return String(typeof error === "string" ? error : error.message);
  } catch {
    return text.trim().slice(0, 500);
  }
}

/**
 * The data of each event of a stream, up to `[DONE]`.
 *
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} stream
 * @returns {AsyncGenerator<string>}
 */
export async function* events(stream) {
  const reader = stream.getReader();
  const parser = new SseParser();
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const { data } of parser.take(value)) {
        if (data === "[DONE]") return;
        if (data !== undefined) yield data;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
