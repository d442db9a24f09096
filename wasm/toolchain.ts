import { BuildError, exists, has, type Progress, run, type RunOptions, whole } from "./progress.ts";
import lock from "./upstream.lock.json" with { type: "json" };

/** Where emscripten runs. */
export interface Toolchain {
  /** What it is, for `build.json`. */
  name: string;
  /** Folder for sources and objects, as this program sees it. */
  dir: string;
  /** The same folder as the compiler sees it. */
  inside: string;
  /** Runs a command of the toolchain. */
  run(command: string[], options?: RunOptions): Promise<string>;
}

const PACKAGES = ["emscripten", "cmake", "ninja-build", "ccache", "python3"];

// Builds every system library that the link needs, so that a kill later cannot leave one half done.
const PROBE = [
  "emcc /tmp/probe.cpp -o /tmp/probe.js -O2 -pthread -msimd128 -mrelaxed-simd -fwasm-exceptions -sMEMORY64=1",
  "-sJSPI=1 -sENVIRONMENT=web,worker -sEXPORT_ES6=1 -sMODULARIZE=1",
].join(" ");

/**
 * Finds emscripten: on PATH, through EMSDK, or in a Debian folder created for it.
 *
 * @param cache Folder for the Debian root and all objects.
 * @param progress Reports what happens.
 * @throws {BuildError} If there is none and none can be set up; says what to install.
 */
export async function findToolchain(cache: string, progress: Progress): Promise<Toolchain> {
  const own = await ownEmscripten();
  if (own) {
    for (const program of ["cmake", "ninja"]) {
      if (!await has(program)) {
        throw new BuildError(
          `emcc is here, ${program} is not: install it (Debian: apt-get install cmake ninja-build)`,
        );
      }
    }
    const launcher = await has("ccache");
    const dir = `${cache}/own`;
    await Deno.mkdir(dir, { recursive: true });
    return {
      name: `emscripten ${own.version}${launcher ? "" : " without ccache"}`,
      dir,
      inside: dir,
      run: (command, options = {}) =>
        run(command, {
          ...options,
          env: { ...options.env, PATH: own.path, CCACHE_DIR: `${cache}/ccache` },
        }),
    };
  }
  return await debianToolchain(cache, progress);
}

async function ownEmscripten(): Promise<{ version: string; path: string } | undefined> {
  const emsdk = Deno.env.get("EMSDK");
  const path = [emsdk && `${emsdk}/upstream/emscripten`, emsdk, Deno.env.get("PATH")].filter(
    Boolean,
  ).join(":");
  try {
    const { stdout } = await new Deno.Command("emcc", {
      args: ["--version"],
      env: { PATH: path },
      stdin: "null",
    }).output();
    const version = /(\d+)\.(\d+)\.(\d+)/.exec(new TextDecoder().decode(stdout))?.slice(1).map(
      Number,
    );
    const least = lock.emscripten_min.split(".").map(Number);
    if (!version) return undefined;
    for (let i = 0; i < 3; i++) {
      if (version[i]! > least[i]!) break;
      if (version[i]! < least[i]!) return undefined; // older: as if it were not there
    }
    return { version: version.join("."), path };
  } catch {
    return undefined;
  }
}

async function debianToolchain(cache: string, progress: Progress): Promise<Toolchain> {
  const root = `${cache}/debian`;
  const enter = (command: string[], options: RunOptions = {}) =>
    run(["chroot", root, "/usr/bin/env", "-i", ...inner(options.env), ...command], {
      ...options,
      env: {},
    });
  await whole(root, async (partial) => {
    const how =
      `emscripten ${lock.emscripten_min} or newer is not on PATH and EMSDK is not set. Install it ` +
      `(https://emscripten.org/docs/getting_started/downloads.html), or run this as root on Debian or Ubuntu, ` +
      `where it is set up in a folder of its own`;
    if (Deno.uid() !== 0) throw new BuildError(`${how} (this user is not root)`);
    if (!await has("debootstrap")) {
      if (!await has("apt-get")) throw new BuildError(`${how} (there is no apt-get here)`);
      progress.phase("toolchain: installing debootstrap");
      const apt = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "debootstrap"];
      const env = { DEBIAN_FRONTEND: "noninteractive" };
      await run(apt, { env }).catch(async () => {
        await run(["apt-get", "update", "-q"], { env });
        await run(apt, { env });
      });
    }
    progress.phase("toolchain: Debian testing in a folder (1.5 GB, a minute or two)");
    // The suite's name may be newer than this machine's debootstrap; sid's script fits it.
    const scripts = "/usr/share/debootstrap/scripts";
    const script = exists(`${scripts}/forky`) ? [] : [`${scripts}/sid`];
    const mirror = Deno.env.get("RYS_DEBIAN_MIRROR") ?? "http://deb.debian.org/debian";
    await run(["debootstrap", "--variant=minbase", "forky", partial, mirror, ...script], {
      onLine: (line) => progress.step(line),
    });
    progress.phase("toolchain: emscripten from Debian testing");
    const chroot = ["chroot", partial, "/usr/bin/env", "-i", ...inner()];
    // Straight after debootstrap, without an update in between: a frozen mirror's release file may have expired.
    await run(
      [...chroot, "apt-get", "install", "-y", "-q", "--no-install-recommends", ...PACKAGES],
      {
        onLine: (line) => progress.step(line),
      },
    );
    progress.phase("toolchain: emscripten's own libraries, once (a minute or two)");
    await Deno.writeTextFile(
      `${partial}/tmp/probe.cpp`,
      "#include <iostream>\n#include <thread>\nint main() { std::thread([] { std::cout << 1; }).join(); }\n",
    );
    await run([...chroot, "sh", "-c", PROBE], { onLine: (line) => progress.step(line) });
    await Deno.mkdir(`${partial}/rys`, { recursive: true });
  });
  const version = /\d+\.\d+\.\d+/.exec(await enter(["emcc", "--version"]))?.[0] ?? "?";
  return { name: `emscripten ${version} (Debian)`, dir: `${root}/rys`, inside: "/rys", run: enter };
}

function inner(env: Record<string, string> = {}): string[] {
  const all = {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/root",
    LC_ALL: "C.UTF-8",
    DEBIAN_FRONTEND: "noninteractive",
    CCACHE_DIR: "/rys/ccache",
    ...env,
  };
  return Object.entries(all).map(([key, value]) => `${key}=${value}`);
}
