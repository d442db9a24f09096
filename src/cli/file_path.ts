/**
 * A `file:` URL as the path that people and programs know, with spaces and other letters as they are.
 *
 * @param url The URL.
 * @returns The path; the URL itself if it is not a `file:` URL.
 */
export function filePath(url: URL): string {
  if (url.protocol !== "file:") return url.href;
  const path = decodeURIComponent(url.pathname.replace(/%(?![0-9a-f]{2})/gi, "%25"));
  return Deno.build.os === "windows"
    ? path.replace(/^\/(?=[a-z]:)/i, "").replaceAll("/", "\\")
    : path;
}
