/**
 * The built WASM, from a local folder or a URL. Deno caches what it imports, so that a package from a URL is
 * fetched once instead of at every start.
 *
 * @module
 */

/**
 * Compiles a WASM file.
 *
 * @param url Where it is.
 * @returns The module.
 * @throws {Error} If it is not there, or damaged.
 */
export async function compileWasm(url: URL): Promise<WebAssembly.Module> {
  if (url.protocol === "file:") return await WebAssembly.compile(await Deno.readFile(url));
  // TypeScript 6 does not know the syntax, and Deno 2.9 fails on import.source() from a module at a URL.
  const code = `import source module from ${JSON.stringify(url.href)}; export default module;`;
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).default;
}

/**
 * Reads `build.json`, which says what the WASM beside it was built from.
 *
 * @param dist Folder, with a slash at its end.
 * @returns Its content; undefined if it is not what the build writes.
 * @throws {Error} If it is not there.
 */
export async function readBuildJson(
  dist: URL,
): Promise<{ id: string; [field: string]: unknown } | undefined> {
  const url = new URL("build.json", dist);
  let facts: unknown;
  try {
    facts = url.protocol === "file:"
      ? JSON.parse(await Deno.readTextFile(url))
      : (await import(url.href, { with: { type: "json" } })).default;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  return typeof facts === "object" && facts !== null && "id" in facts &&
      typeof facts.id === "string"
    ? { ...facts, id: facts.id }
    : undefined;
}
