import config from "../../deno.json" with { type: "json" };
import { readBuildJson } from "../engine/dist.ts";

/** The package's version. */
export const VERSION: string = config.version;

/** Folder of the built WASM. */
export const DIST: URL = new URL("../../wasm/dist/", import.meta.url);

/** The command that builds it. */
export const BUILD_COMMAND = "deno task build";

/**
 * Reads the facts about the built WASM.
 *
 * @returns The facts; undefined where it is not built.
 */
export async function readBuild(): Promise<Awaited<ReturnType<typeof readBuildJson>>> {
  return await readBuildJson(DIST).catch(() => undefined);
}

/** Package, build and Deno versions in one line. */
export async function versionLine(): Promise<string> {
  const build = await readBuild();
  const wasm = build === undefined
    ? `WASM not built, run "${BUILD_COMMAND}"`
    : `WASM build ${build.id}`;
  return `rys-edge ${VERSION} (${wasm}; Deno ${Deno.version.deno})`;
}
