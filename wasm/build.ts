/**
 * Builds `wasm/dist/`: finds or sets up a toolchain, fetches llama.cpp, applies the hooks, compiles, links. Does nothing if
 * its inputs are the same as last time.
 *
 * ```text
 * deno task build [--upstream DIR] [--oracle] [--backend-ops] [--kernels] [--memory32] [--plain] [--force] [--jobs N] [--verbose]
 * ```
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { parseArgs } from "@std/cli/parse-args";
import { HookError } from "./hooks.ts";
import { BuildError, exists, Progress } from "./progress.ts";
import { findToolchain, type Toolchain } from "./toolchain.ts";
import {
  buildCache,
  ownUpstream,
  pinnedUpstream,
  syncHooked,
  syncOwn,
  syncPristine,
  writeIfChanged,
} from "./upstream.ts";
import lock from "./upstream.lock.json" with { type: "json" };

const USAGE = `usage: deno task build [options]
  --upstream DIR   a llama.cpp checkout of your own instead of the pinned one (also RYS_UPSTREAM)
  --oracle         also the oracle programs that the tests run (wasm/oracle/, wasm/stock/)
  --backend-ops    also llama.cpp's comparison of a backend with the CPU (wasm/backend-ops/) and a program that emits every
                   shader of its WebGPU backend (wasm/shaders/)
  --kernels        also the comparison of the CPU kernels with llama.cpp's own (wasm/kernels/)
  --memory32       also the same for 32-bit memory, for comparison (wasm/memory32/)
  --plain          also the same with llama.cpp's own CPU backend, for comparison (wasm/plain/)
  --force          link again even if nothing changed
  --jobs N         compile N files at once (default: the cores)
  --verbose        show the compiler's output
Objects and the toolchain are kept in RYS_BUILD_CACHE (default: XDG_CACHE_HOME or ~/.cache, rys-edge/build).`;

const here = fileURLToPath(new URL(".", import.meta.url));
const repo = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

interface Output {
  /** Folder under wasm/. */
  folder: string;
  /** CMake target; also the name of the .js and .wasm. */
  target: string;
  /** CMake definitions that differ from the main build's. */
  defines: string[];
  /** Build folder in the toolchain's workspace. */
  build: string;
  /** Upstream's sources there. Default: the hooked ones. */
  sources?: string;
}

const HOOKED = "up";
const PRISTINE = "up-pristine";

const MAIN: Output = {
  folder: "dist",
  target: "rys",
  defines: [],
  build: "build",
};
const ORACLE: Output = {
  folder: "oracle",
  target: "rys-oracle",
  defines: [],
  build: "build",
};
/** What a plain context computes, from upstream's unchanged sources and from the hooked ones. */
const STOCK: Output = {
  folder: "stock/upstream",
  target: "rys-stock",
  defines: ["-DRYS_STOCK=ON"],
  build: "build-stock",
  sources: PRISTINE,
};
const NOT_STOCK: Output = {
  folder: "stock/hooked",
  target: "rys-stock",
  defines: [],
  build: "build",
};
const BACKEND_OPS: Output = {
  folder: "backend-ops",
  target: "rys-backend-ops",
  defines: [],
  build: "build",
};
const SHADERS: Output = {
  folder: "shaders",
  target: "rys-shaders",
  defines: [],
  build: "build",
};
const KERNELS: Output = {
  folder: "kernels",
  target: "rys-kernels",
  defines: [],
  build: "build",
};
const MEMORY32: Output = {
  folder: "memory32",
  target: "rys",
  defines: ["-DRYS_MEMORY64=OFF"],
  build: "build32",
};
const PLAIN: Output = {
  folder: "plain",
  target: "rys",
  defines: ["-DRYS_PLAIN_CPU=ON"],
  build: "build-plain",
};

/**
 * Hash of everything that goes into a build, as 16 hex digits.
 *
 * @param upstream The user's own checkout, or undefined for the pinned one.
 * @param tests Whether the tests' own programs count as well.
 */
export async function inputsId(upstream: string | undefined, tests = false): Promise<string> {
  const files: string[] = [];
  const walk = (dir: string) => {
    for (const entry of Deno.readDirSync(dir)) {
      if (entry.name === "tests" && !tests) continue;
      if (entry.isDirectory) walk(`${dir}/${entry.name}`);
      else files.push(`${dir}/${entry.name}`);
    }
  };
  walk(`${repo}/cpp`);
  walk(`${repo}/gpu/webgpu`);
  for (
    const name of ["upstream.lock.json", "build.ts", "hooks.ts", "toolchain.ts", "upstream.ts"]
  ) {
    files.push(`${here}${name}`);
  }
  const parts: Uint8Array[] = [];
  const text = (s: string) => parts.push(new TextEncoder().encode(s + "\0"));
  for (const file of files.filter((f) => !f.endsWith(".md")).sort()) {
    text(file.slice(repo.length));
    parts.push(Deno.readFileSync(file));
  }
  // The user's own checkout changes as its owner works: its state is part of the key.
  if (upstream) text(await checkoutState(upstream));
  const digest = await crypto.subtle.digest(
    "SHA-256",
    await new Blob(parts as BlobPart[]).arrayBuffer(),
  );
  return new Uint8Array(digest).toHex().slice(0, 16);
}

async function checkoutState(dir: string): Promise<string> {
  const newest = { mtime: 0, files: 0 };
  const walk = async (path: string) => {
    for await (const entry of Deno.readDir(path)) {
      const full = `${path}/${entry.name}`;
      if (entry.name.startsWith(".") || entry.name === "build") continue;
      if (entry.isDirectory) await walk(full);
      else if (entry.isFile) {
        newest.files++;
        newest.mtime = Math.max(newest.mtime, (await Deno.stat(full)).mtime?.getTime() ?? 0);
      }
    }
  };
  for (const part of ["src", "include", "ggml", "common", "tools/server", "tools/mtmd", "vendor"]) {
    if (exists(`${dir}/${part}`)) await walk(`${dir}/${part}`);
  }
  return `${dir} ${newest.files} ${newest.mtime}`;
}

function upToDate(output: Output, id: string): boolean {
  try {
    const built = JSON.parse(Deno.readTextFileSync(`${here}${output.folder}/build.json`));
    return built.id === id && exists(`${here}${output.folder}/${output.target}.wasm`);
  } catch {
    return false;
  }
}

async function make(
  output: Output,
  id: string,
  toolchain: Toolchain,
  progress: Progress,
  options: { jobs: number; verbose: boolean; upstream: string },
): Promise<void> {
  const build = `${toolchain.inside}/${output.build}`;
  const onLine = (line: string) => {
    if (options.verbose) console.error(line);
    else progress.step(line);
  };
  // Once: CMake's checks through emcc are slow. A later change of CMakeLists.txt is noticed by ninja.
  if (!exists(`${toolchain.dir}/${output.build}/build.ninja`)) {
    progress.phase("configuring");
    await Deno.remove(`${toolchain.dir}/${output.build}`, { recursive: true }).catch(() => {});
    await toolchain.run([
      "emcmake",
      "cmake",
      "-S",
      `${toolchain.inside}/cpp`,
      "-B",
      build,
      "-G",
      "Ninja",
      `-DRYS_UPSTREAM=${toolchain.inside}/${output.sources ?? HOOKED}`,
      "-DRYS_TESTS=ON",
      ...output.defines,
      ...toolchain.name.includes("without ccache")
        ? []
        : ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"],
    ], { onLine });
  }
  progress.phase(`compiling ${output.target}`);
  const out = await toolchain.run(
    ["ninja", "-C", build, "-j", String(options.jobs), output.target],
    { onLine },
  );
  const compiled = /\[\d+\/(\d+)\]/.exec(out)?.[1] ?? "0";

  const dir = `${here}${output.folder}`;
  const partial = `${dir}.partial`;
  const wasmBytes =
    (await Deno.stat(`${toolchain.dir}/${output.build}/${output.target}.wasm`)).size;
  const facts = {
    id,
    upstream: options.upstream,
    toolchain: toolchain.name,
    wasm_bytes: wasmBytes,
    memory64: output !== MEMORY32,
  };
  try {
    await Deno.remove(partial, { recursive: true }).catch(() => {});
    await Deno.mkdir(partial, { recursive: true });
    for (const name of [`${output.target}.js`, `${output.target}.wasm`]) {
      await Deno.copyFile(`${toolchain.dir}/${output.build}/${name}`, `${partial}/${name}`);
    }
    await Deno.writeTextFile(`${partial}/build.json`, JSON.stringify(facts, null, 2) + "\n");
    await Deno.remove(dir, { recursive: true }).catch(() => {});
    await Deno.rename(partial, dir);
  } catch (error) {
    await Deno.remove(partial, { recursive: true }).catch(() => {});
    throw error;
  }
  progress.phase(
    `wasm/${output.folder}/${output.target}.wasm: ${
      (wasmBytes / 1e6).toFixed(1)
    } MB (${compiled} steps)`,
  );
}

async function main(): Promise<void> {
  const args = parseArgs(Deno.args, {
    boolean: ["oracle", "backend-ops", "kernels", "memory32", "plain", "force", "verbose", "help"],
    string: ["upstream", "jobs"],
    unknown: (arg) => {
      console.error(`error: unknown option ${arg}\n${USAGE}`);
      Deno.exit(2);
    },
  });
  if (args.help) return console.log(USAGE);
  const jobs = Number(args.jobs ?? navigator.hardwareConcurrency);
  if (!Number.isInteger(jobs) || jobs < 1) {
    console.error(`error: --jobs takes a number of at least 1, not "${args.jobs}"`);
    Deno.exit(2);
  }
  const own = args.upstream ?? Deno.env.get("RYS_UPSTREAM");
  const upstream = own ? ownUpstream(own) : undefined;
  const outputs = [
    MAIN,
    ...args.oracle ? [ORACLE, STOCK, NOT_STOCK] : [],
    ...args["backend-ops"] ? [BACKEND_OPS, SHADERS] : [],
    ...args.kernels ? [KERNELS] : [],
    ...args.memory32 ? [MEMORY32] : [],
    ...args.plain ? [PLAIN] : [],
  ];
  const id = await inputsId(upstream);
  const ids = new Map(outputs.map((output) => [output, id]));
  for (const output of [ORACLE, STOCK, NOT_STOCK, SHADERS, KERNELS]) { // made from cpp/tests as well
    if (ids.has(output)) ids.set(output, await inputsId(upstream, true));
  }
  const stale = () => outputs.filter((o) => args.force || !upToDate(o, ids.get(o)!));
  let open = stale();
  if (open.length === 0) return;

  const progress = new Progress();
  const cache = buildCache();
  await Deno.mkdir(cache, { recursive: true });
  // Two builds at once would write the same objects; the lock ends with the process.
  using lockFile = await Deno.open(`${cache}/lock`, { create: true, write: true });
  const waiting = setTimeout(() => progress.phase("waiting for another build"), 1000);
  await lockFile.lock(true);
  clearTimeout(waiting);
  open = stale();
  if (open.length === 0) return;

  const toolchain = await findToolchain(cache, progress);
  const pristine = upstream ?? await pinnedUpstream(cache, progress);
  progress.phase(`${toolchain.name}; llama.cpp ${upstream ?? lock.version}: applying hooks`);
  syncHooked(pristine, `${repo}/cpp/hooks`, `${toolchain.dir}/${HOOKED}`);
  if (open.includes(STOCK)) syncPristine(pristine, `${toolchain.dir}/${PRISTINE}`);
  syncOwn(`${repo}/cpp`, `${toolchain.dir}/cpp`);
  syncOwn(`${repo}/gpu/webgpu`, `${toolchain.dir}/gpu/webgpu`);
  writeIfChanged(
    `${toolchain.dir}/generated/rys-build-id.h`,
    new TextEncoder().encode(`#define RYS_BUILD_ID "${id}"\n`),
  );
  for (const output of open) {
    await make(output, ids.get(output)!, toolchain, progress, {
      jobs,
      verbose: args.verbose,
      upstream: own ?? lock.version,
    });
  }
}

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof BuildError || error instanceof HookError)) throw error;
    console.error(`error: the build stopped: ${error.message}`);
    Deno.exit(1);
  }
}
