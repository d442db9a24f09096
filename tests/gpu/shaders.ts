// Every shader that llama.cpp's WebGPU backend can emit: which there are, and whether compilers take them.

/** Where `deno task build --backend-ops` puts the program that emits them. */
const JS = new URL("../../wasm/shaders/rys-shaders.js", import.meta.url).href;

/** Sets of capabilities under which shaders differ; cpp/tests/rys-shaders.cpp says what each stands for. */
export const SETS = ["sg8", "nosg", "nvidia", "amd", "intel", "wide", "dotnosg"] as const;

/** Sets with subgroup matrices, which only Tint has. */
export const MATRIX_SETS = ["sgm8", "sgm16", "sgm8x16"] as const;

/** One shader as llama.cpp emits it. */
export interface ShaderVariant {
  /** The first set of capabilities that has it. */
  set: string;
  /** Function of llama.cpp's shader library that makes it, such as `mul_mat_vec`. */
  fn: string;
  /** Threads and bytes of memory that a workgroup may have in the set. */
  threads: number;
  memory: number;
  /** Whether the set has subgroups. */
  subgroups: boolean;
  label: string;
  entry: string;
  constants: Record<string, number>;
  source: string;
}

/** What a process of `compile_shaders.ts` is asked. */
export interface CompileRequest {
  /** Whether to make pipelines as well, not only modules. */
  pipelines: boolean;
  variants: ShaderVariant[];
}

/** What it answers; without more than `i`, the shader is right. */
export interface CompileLine {
  i: number;
  started?: boolean;
  skipped?: boolean;
  error?: string;
}

/** How shaders fared. */
export interface CompileResult {
  compiled: number;
  /** Shaders that ask for more than the adapter has. */
  skipped: number;
  /** What went wrong with which shader. */
  failures: string[];
}

/** A shader's name in messages. */
export function nameOf({ set, label }: ShaderVariant): string {
  return `${label} (${set})`;
}

/**
 * Runs the program that emits the shaders.
 *
 * @param sets Sets of capabilities.
 * @returns Each distinct shader once, and functions of the library that the program never asks for.
 * @throws {Error} If it fails.
 */
export async function listShaders(
  sets: readonly string[],
): Promise<{ variants: ShaderVariant[]; missed: string[] }> {
  const worker = new Worker(new URL("./shaders_worker.ts", import.meta.url), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  const variants: ShaderVariant[] = [];
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(`cannot list the shaders: ${event.message}`));
  };
  worker.onmessage = ({ data }) => {
    if (data.variants) { for (const variant of data.variants) variants.push(variant); }
    else if (data.missed) resolve(data.missed);
    else reject(new Error(`cannot list the shaders: ${data.messages.join("\n")}`));
  };
  worker.postMessage({ js: JS, args: [...sets] });
  try {
    return { missed: await promise, variants };
  } finally {
    worker.terminate();
  }
}

/** Tables of these types take a software adapter's compiler many seconds. */
const SLOW = /iq[123]_/;

/**
 * A part by seed: each function under each set, more at random, and a few of those that are slow to compile.
 *
 * @param variants All shaders.
 * @param seed Another seed, another part.
 * @param n Shaders wanted; more if there are more functions and sets.
 */
export function chooseShaders(
  variants: readonly ShaderVariant[],
  seed: number,
  n: number,
): ShaderVariant[] {
  const order = variants.map((v) => ({ v, rank: rank(nameOf(v), seed) }))
    .sort((a, b) => a.rank - b.rank).map(({ v }) => v);
  const fast = order.filter((v) => !SLOW.test(v.label));
  const slow = order.filter((v) => SLOW.test(v.label)).slice(0, 3);
  const groups = Map.groupBy(fast, (v) => `${v.fn} ${v.set}`);
  const part = new Set([...groups.values()].map((group) => group[0]!));
  for (const v of fast) if (part.size + slow.length < n) part.add(v);
  return [...part, ...slow];
}

/** FNV-1a, then mixed. */
function rank(text: string, seed: number): number {
  let h = 0x811c9dc5 ^ seed;
  for (const char of text) h = Math.imul(h ^ char.charCodeAt(0), 0x01000193);
  h = Math.imul(h ^ h >>> 16, 0x85ebca6b);
  return (h ^ h >>> 13) >>> 0;
}

/** Does work on parts, two at a time. */
async function inTwos<T>(parts: Iterable<T>, work: (part: T) => Promise<void>): Promise<void> {
  const next = parts[Symbol.iterator]();
  const one = async () => {
    for (let step = next.next(); !step.done; step = next.next()) await work(step.value);
  };
  await Promise.all([one(), one()]);
}

function* chunks<T>(all: readonly T[], n: number): Generator<T[]> {
  for (let at = 0; at < all.length; at += n) yield all.slice(at, at + n);
}

/**
 * Compiles shaders on the adapter, adapted for naga, in processes of their own.
 *
 * @param variants The shaders.
 * @param options Whether to make pipelines as well; a function to report progress to.
 */
export async function compileShaders(
  variants: readonly ShaderVariant[],
  options: { pipelines?: boolean; onLine?: (line: string) => void } = {},
): Promise<CompileResult> {
  const { pipelines = false, onLine } = options;
  const result: CompileResult = { compiled: 0, skipped: 0, failures: [] };
  // Deno keeps 2 MB for each pipeline.
  const n = Math.min(pipelines ? 400 : 1000, Math.ceil(variants.length / 2));
  await inTwos(chunks(variants, n), async (part) => {
    for (let rest = part; rest.length > 0;) {
      rest = await compileSome({ pipelines, variants: rest }, result);
    }
    const { compiled, skipped, failures } = result;
    onLine?.(
      `${
        compiled + skipped + failures.length
      } of ${variants.length} shaders, ${failures.length} failed`,
    );
  });
  return result;
}

/** Runs one process; returns what a crash left to do. */
async function compileSome(
  request: CompileRequest,
  result: CompileResult,
): Promise<ShaderVariant[]> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", new URL("./compile_shaders.ts", import.meta.url).href],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const input = new Blob([JSON.stringify(request)]).stream().pipeTo(child.stdin);
  const [{ code, signal, stdout, stderr }] = await Promise.all([
    child.output(),
    input.catch(() => {}), // it ended before it read all
  ]);
  const { variants } = request;
  let last = -1;
  let running = -1;
  for (const line of new TextDecoder().decode(stdout).split("\n").filter(Boolean)) {
    const { i, started, skipped, error } = JSON.parse(line) as CompileLine;
    last = i;
    running = started ? i : -1;
    if (started) continue;
    if (skipped) result.skipped++;
    else if (error === undefined) result.compiled++;
    else result.failures.push(`${nameOf(variants[i]!)}: ${error}`);
  }
  if (code === 0 && last === variants.length - 1) return [];
  const end = `${signal ?? `exit code ${code}`}: ${
    new TextDecoder().decode(stderr).slice(0, 1000)
  }`;
  if (running < 0) throw new Error(`compile_shaders.ts ended early with ${end}`);
  result.failures.push(`${nameOf(variants[running]!)} ended the process with ${end}`);
  return variants.slice(running + 1);
}

/**
 * Makes the pipeline of every shader that is not for subgroup matrices. Minutes on a software adapter.
 *
 * @param onLine Told how far it is.
 */
export async function checkAllPipelines(onLine: (line: string) => void): Promise<CompileResult> {
  const { variants } = await listShaders(SETS);
  return await compileShaders(variants, { pipelines: true, onLine });
}

/** Whether Tint's command line is there. */
export function hasTint(): boolean {
  try {
    new Deno.Command("tint", { args: ["--help"], stdout: "null", stderr: "null" }).outputSync();
    return true;
  } catch {
    return false;
  }
}

/**
 * Validates shaders with Tint.
 *
 * @param variants The shaders.
 * @param adapt Makes the text that Tint gets.
 */
export async function validateWithTint(
  variants: readonly ShaderVariant[],
  adapt: (source: string) => string,
): Promise<CompileResult> {
  const result: CompileResult = { compiled: 0, skipped: 0, failures: [] };
  const dir = await Deno.makeTempDir({ prefix: "rys-tint-" });
  let n = 0;
  try {
    await inTwos(variants, async (v) => {
      const file = `${dir}/${n++}.wgsl`;
      try {
        await Deno.writeTextFile(file, adapt(v.source));
        const { success, stderr } = await new Deno.Command("tint", {
          args: ["--format", "wgsl", "-o", Deno.build.os === "windows" ? "NUL" : "/dev/null", file],
          stdout: "null",
          stderr: "piped",
        }).output();
        if (success) result.compiled++;
        else {result.failures.push(
            `${nameOf(v)}: ${new TextDecoder().decode(stderr).slice(0, 1000)}`,
          );}
      } catch (error) {
        result.failures.push(`${nameOf(v)}: ${error}`);
      }
      await Deno.remove(file).catch(() => {});
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
  return result;
}
