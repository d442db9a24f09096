import { ApiError } from "./api_error.ts";

/** Characters of a request's URL, and of its headers in all. */
const MAX_URL = 8192;
const MAX_HEADERS = 64 << 10;

/**
 * Refuses a request whose URL or headers are too long.
 *
 * @param request The request.
 * @throws {ApiError} 414 or 431.
 */
export function checkHead(request: Request): void {
  if (request.url.length > MAX_URL) {
    throw new ApiError(414, `The URL is longer than ${MAX_URL} characters`);
  }
  let n = 0;
  for (const [name, value] of request.headers) n += name.length + value.length;
  if (n > MAX_HEADERS) {
    throw new ApiError(431, `The headers are longer than ${MAX_HEADERS} characters`);
  }
}
