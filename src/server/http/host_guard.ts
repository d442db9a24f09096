/**
 * Where a server of this machine alone asks for no key, a web page could reach it by a name of its own that leads here.
 *
 * @param host Address that is listened on.
 * @param allowed Further names.
 * @param hasKeys Whether a key is asked for.
 * @returns Checks a `Host` header.
 */
export function hostGuard(
  host: string,
  allowed: readonly string[],
  hasKeys: boolean,
): (header: string | undefined) => boolean {
  const isLoopback = /^(?:127\.\d+\.\d+\.\d+|::1|localhost)$/.test(host);
  if (!isLoopback || hasKeys) return () => true;
  const names = new Set(
    ["localhost", "127.0.0.1", "[::1]", host, ...allowed].map((name) => name.toLowerCase()),
  );
  return (header) => {
    if (header === undefined || header === "") return true; // every browser sends one
    const name = header.toLowerCase().replace(/:\d+$/, "");
    return names.has(name) || name.endsWith(".localhost");
  };
}
