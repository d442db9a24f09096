import config from "../../deno.json" with { type: "json" };

/** The package's version. */
export const VERSION: string = config.version;

/** What `wasm/dist/build.json` says of the built WASM. */
export interface BuildFacts {
  /** Build id, which stands in the WASM as well. */
  id: string;
  /** Everything else it says. */
  [field: string]: unknown;
}

/** Folder of the built WASM. */
export const DIST: URL = new URL("../../wasm/dist/", import.meta.url);

/** The command that builds it. */
export const BUILD_COMMAND = "deno task build";

/**
 * Reads what is known of the built WASM.
 *
 * @returns The facts; undefined where it is not built.
 */
export async function readBuild(): Promise<BuildFacts | undefined> {
  try {
    const url = new URL("build.json", DIST);
    const text = url.protocol === "file:"
      ? await Deno.readTextFile(url)
      : await (await fetch(url)).text();
    const facts: unknown = JSON.parse(text);
    return typeof facts === "object" && facts !== null && "id" in facts &&
        typeof facts.id === "string"
      ? { ...facts, id: facts.id }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Package, build and Deno in one line. */
export async function versionLine(): Promise<string> {
  const build = await readBuild();
  const wasm = build === undefined
    ? `WASM not built, run "${BUILD_COMMAND}"`
    : `WASM build ${build.id}`;
  return `rys-edge ${VERSION} (${wasm}; Deno ${Deno.version.deno})`;
}
