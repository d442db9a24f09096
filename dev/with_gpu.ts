/**
 * Runs `deno` with a GPU, a software one if there is no other, and ends with its exit code.
 *
 * ```text
 * deno run -A dev/with_gpu.ts [--software] ARGUMENTS OF deno
 * ```
 *
 * With `--software` tests also get a browser, which the web page's tests drive.
 *
 * `--software` uses Mesa's software GPU (lavapipe) even if there is a real one, so that tests see the same device
 * everywhere. If it is missing, root on Debian or Ubuntu gets it through apt-get; elsewhere the program says what is
 * missing and goes on: tests that need a GPU say that they are skipped.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { Progress, run } from "../wasm/progress.ts";

const PACKAGES = ["mesa-vulkan-drivers", "libvulkan1"];
/** Names of Chromium, as tests/server/_browser.ts looks for them. */
const BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const APT = ["-y", "-q", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=1"];

interface Probe {
  gpu?: { description: string; software: boolean };
  why?: string;
}

const isLinux = Deno.build.os === "linux";
const progress = new Progress();

/** A folder of mode 0700, as Mesa's drivers want it. */
async function runtimeDir(): Promise<string> {
  const given = Deno.env.get("XDG_RUNTIME_DIR");
  if (given && isPrivate(given)) return given;
  const home = Deno.env.get("HOME");
  const cache = Deno.env.get("XDG_CACHE_HOME") || (home ? `${home}/.cache` : "");
  const own = `${cache}/rys-edge/runtime`;
  if (cache) {
    await Deno.mkdir(own, { recursive: true, mode: 0o700 }).catch(() => {});
    await Deno.chmod(own, 0o700).catch(() => {});
    if (isPrivate(own)) return own;
  }
  return await Deno.makeTempDir({ prefix: "rys-edge-" });
}

function isPrivate(path: string): boolean {
  try {
    const { isDirectory, mode, uid } = Deno.statSync(path);
    return isDirectory && ((mode ?? 0) & 0o777) === 0o700 && uid === Deno.uid();
  } catch {
    return false;
  }
}

function isOnPath(program: string): boolean {
  return (Deno.env.get("PATH") ?? "").split(":").some((folder) => {
    try {
      return Deno.statSync(`${folder}/${program}`).isFile;
    } catch {
      return false;
    }
  });
}

/** The file that names lavapipe for this processor. */
function lavapipe(): string | undefined {
  for (const folder of ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"]) {
    try {
      const names = [...Deno.readDirSync(folder)].map(({ name }) => name);
      const own = names.find((name) => name === `lvp_icd.${Deno.build.arch}.json`) ??
        names.find((name) => name === "lvp_icd.json");
      if (own) return `${folder}/${own}`;
    } catch {
      // Not there.
    }
  }
  return undefined;
}

/** What the engine would get; asked in a separate process, as a driver is loaded only once, with the settings at that time. */
async function probe(env: Record<string, string>): Promise<Probe> {
  const script = fileURLToPath(new URL("./probe_gpu.ts", import.meta.url));
  const { stdout, code } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--quiet", script],
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).output();
  try {
    return JSON.parse(new TextDecoder().decode(stdout));
  } catch {
    return { why: `asking for an adapter ended with code ${code}` };
  }
}

/** Installs Debian packages if that is possible; otherwise says in one line why not. */
async function install(what: string, wanted: readonly string[]): Promise<void> {
  const packages = wanted.join(" ");
  const missing = (why: string) => progress.phase(`no ${what}: ${why}; it is Debian's ${packages}`);
  if (Deno.uid() !== 0) return missing("installing one needs root");
  progress.phase(`a ${what}: apt-get install ${packages}`);
  const apt = (...args: string[]) =>
    run(["apt-get", ...args], {
      env: { DEBIAN_FRONTEND: "noninteractive" },
      onLine: (line) => progress.step(line),
    });
  const get = () => apt("install", ...APT, "--no-install-recommends", ...wanted);
  try {
    await get().catch(async () => {
      await apt("update", ...APT.slice(1)); // the lists may be missing or old
      await get();
    });
  } catch (error) {
    missing(error instanceof Error ? error.message.trim().split("\n")[0]! : String(error));
  }
}

const [first, ...rest] = Deno.args;
const isSoftware = first === "--software";
const args = isSoftware ? rest : Deno.args;
const env: Record<string, string> = {};
if (isLinux) {
  // Without it, Deno falls back to OpenGL, which lacks shader-f16, if Vulkan does not work.
  env.DENO_WEBGPU_BACKEND = Deno.env.get("DENO_WEBGPU_BACKEND") || "vulkan";
  env.XDG_RUNTIME_DIR = await runtimeDir();
}
const isChosen = Boolean(Deno.env.get("VK_DRIVER_FILES") || Deno.env.get("VK_ICD_FILENAMES"));
/** The environment with lavapipe alone, if it is wanted and present. */
const withDriver = (): Record<string, string> => {
  const file = isSoftware && !isChosen ? lavapipe() : undefined;
  return file === undefined ? env : { ...env, VK_DRIVER_FILES: file };
};
let found = await probe(withDriver());
const isWell = () => found.gpu !== undefined && (found.gpu.software || !isSoftware);
if (isLinux && !isChosen && !isWell()) {
  await install("software GPU", PACKAGES);
  found = await probe(withDriver());
}
progress.phase(
  found.gpu ? `GPU: ${found.gpu.description}` : `no GPU: ${found.why}; what needs one is left out`,
);

// Tests of the web page drive it; those of a second adapter use the driver that comes with it.
if (isLinux && isSoftware && args.includes("test") && !BROWSERS.some(isOnPath)) {
  await install("browser", ["chromium"]);
}

const child = new Deno.Command(Deno.execPath(), {
  args,
  env: withDriver(),
  stdin: "inherit",
  stdout: "inherit",
  stderr: "inherit",
}).spawn();
// A terminal's Ctrl-C reaches the child directly; this program waits for its end.
Deno.addSignalListener("SIGINT", () => {});
if (Deno.build.os !== "windows") Deno.addSignalListener("SIGTERM", () => child.kill("SIGTERM"));
Deno.exit((await child.status).code);
