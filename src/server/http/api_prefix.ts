/**
 * A request as it is without what all paths begin with.
 *
 * @param request The request.
 * @param prefix What paths begin with, e.g. `/llama`; "" for nothing.
 * @returns The request with the rest of its path; undefined where its path does not begin so.
 */
export function withoutPrefix(request: Request, prefix: string): Request | undefined {
  if (prefix === "") return request;
  const url = new URL(request.url);
  if (!`${url.pathname}/`.startsWith(`${prefix}/`)) return undefined;
  url.pathname = url.pathname.slice(prefix.length) || "/";
  return new Request(url, request);
}
