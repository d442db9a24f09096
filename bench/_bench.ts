import { fileURLToPath } from "node:url";
import { parseArgs } from "@std/cli/parse-args";
import { writeWhole } from "../src/cli/write_whole.ts";
import { LineChild } from "../tests/models/_line_child.ts";
import { cacheDir } from "../tests/models/fetch.ts";
import { PEER_VERSION } from "../tests/models/_peer.ts";

/** What a benchmark was asked for. */
export interface Options {
  /** Rounds; every variant is measured once in each. */
  rounds: number;
  /** As little as shows that it works; its numbers mean nothing. */
  smoke: boolean;
  /** Folder of the results. */
  out: string;
  /** The demo model. */
  demo: string;
}

/** The repository's root, with no slash at its end. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/**
 * Reads the command line that all benchmarks have.
 *
 * @param usage The first line of the help.
 * @param rounds Rounds where none are asked for.
 * @param own The benchmark's own options, which take a value, and their help.
 */
export function options<K extends string = never>(
  usage: string,
  rounds: number,
  own: Record<K, string> = {} as Record<K, string>,
): Options & { own: Partial<Record<K, string>> } {
  const names = Object.keys(own) as K[];
  const args = parseArgs(Deno.args, {
    boolean: ["smoke", "help"],
    string: ["rounds", "out", "demo", ...names],
    unknown: (arg) => {
      console.error(`error: unknown option ${arg}\n${usage}`);
      Deno.exit(2);
    },
  });
  if (args.help) {
    console.log(`${usage}
  --rounds N   rounds, ${rounds} if not given
  --smoke      one short round, into the cache folder: shows that it works, measures nothing
  --out DIR    folder of the results (bench/results)
  --demo FILE  the demo model (models/demo.gguf)${
      names.map((name) => `\n  ${`--${name} ${own[name]}`}`).join("")
    }`);
    Deno.exit(0);
  }
  const n = Number(args.rounds ?? (args.smoke ? 1 : rounds));
  if (!Number.isInteger(n) || n < 1) {
    console.error(`error: --rounds takes a number of at least 1, not "${args.rounds}"`);
    Deno.exit(2);
  }
  return {
    rounds: n,
    smoke: args.smoke,
    out: args.out ?? (args.smoke ? `${cacheDir()}/bench` : `${ROOT}/bench/results`),
    demo: args.demo ?? `${ROOT}/models/demo.gguf`,
    own: Object.fromEntries(
      names.flatMap((name) => args[name] === undefined ? [] : [[name, String(args[name])]]),
    ) as Partial<Record<K, string>>,
  };
}

/**
 * Starts an engine of ours; see `_child.ts` for its requests.
 *
 * @param v8Flags Flags for V8, with commas between.
 */
export function startOurs(v8Flags?: string): LineChild {
  const config = `${ROOT}/deno.json`;
  const script = `${ROOT}/bench/_child.ts`;
  const flags = v8Flags ? [`--v8-flags=${v8Flags}`] : [];
  return new LineChild(Deno.execPath(), [
    ...["run", "-A", "--no-check", ...flags],
    ...["--config", config, script],
  ]);
}

/** Tokens of a prompt: which they are changes nothing in the work. */
export function someTokens(n: number, nVocab: number): number[] {
  return Array.from({ length: n }, (_, i) => 260 + (i * 7919) % (nVocab - 260));
}

/** Middle and spread of samples. */
export interface Spread {
  /** Median. */
  median: number;
  /** Least. */
  min: number;
  /** Greatest. */
  max: number;
}

/** Middle and spread of at least one sample. */
export function spread(samples: readonly number[]): Spread {
  if (samples.length === 0) return { median: NaN, min: NaN, max: NaN }; // not measured
  const sorted = samples.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
  return { median, min: sorted[0]!, max: sorted.at(-1)! };
}

/** Ratios of the samples of the same rounds. */
export function ratios(a: readonly number[], b: readonly number[]): Spread {
  return spread(a.length === b.length ? a.map((x, i) => x / b[i]!) : []);
}

/** A number in so many places, with its least and greatest. */
export function show({ median, min, max }: Spread, digits: number): string {
  if (Number.isNaN(median)) return "–";
  const f = (x: number) => x.toFixed(digits);
  return min === max ? f(median) : `${f(median)} (${f(min)}–${f(max)})`;
}

/** A Markdown table. */
export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |\n`;
  return line(head) + line(head.map((_, i) => i === 0 ? "---" : "---:")) + rows.map(line).join("");
}

/** What the numbers were measured on. */
export interface Machine {
  [fact: string]: string | number | boolean | number[];
}

const read = (path: string) => {
  try {
    return Deno.readTextFileSync(path).trim();
  } catch {
    return "";
  }
};

const said = (program: string, ...args: string[]) => {
  try {
    const { stdout } = new Deno.Command(program, { args, cwd: ROOT, stderr: "null" }).outputSync();
    return new TextDecoder().decode(stdout).trim();
  } catch {
    return "";
  }
};

function machine(): Machine {
  const cpuinfo = read("/proc/cpuinfo");
  const flags = /^flags\s*:(.*)$/m.exec(cpuinfo)?.[1]?.split(" ") ?? [];
  const wanted = ["avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", "neon", "asimddp"];
  const build = JSON.parse(read(`${ROOT}/wasm/dist/build.json`) || "{}");
  return {
    cpu: /^model name\s*:\s*(.*)$/m.exec(cpuinfo)?.[1] ?? Deno.build.arch,
    cpu_features: wanted.filter((flag) => flags.includes(flag)).join(" "),
    cores: navigator.hardwareConcurrency,
    memory_bytes: Deno.systemMemoryInfo().total,
    os: `${Deno.build.os} ${Deno.osRelease()}`,
    deno: `${Deno.version.deno} (V8 ${Deno.version.v8})`,
    node: said("node", "--version"),
    node_llama_cpp: PEER_VERSION,
    commit: said("git", "rev-parse", "--short", "HEAD"),
    build: String(build.id ?? ""),
    toolchain: String(build.toolchain ?? ""),
    llama_cpp: String(build.upstream ?? ""),
    load_at_start: Deno.loadavg()[0]!,
  };
}

/** The result of a benchmark: collects, and writes `<name>.json` and `<name>.md`. */
export class Report {
  readonly #name: string;
  readonly #title: string;
  readonly #options: Options;
  readonly #machine = machine();
  readonly #date = new Date().toISOString();
  readonly #parts: string[] = [];

  /** Begins: notes the machine as it is now. */
  constructor(name: string, title: string, options: Options) {
    this.#name = name;
    this.#title = title;
    this.#options = options;
    if (this.#isBusy(this.#machine.load_at_start as number)) {
      console.error(`warning: the machine is not idle (load ${Deno.loadavg()[0]!.toFixed(1)})`);
    }
  }

  #isBusy = (load: number) => load > 0.3 * navigator.hardwareConcurrency;

  /** Adds Markdown. */
  add(markdown: string): void {
    this.#parts.push(markdown.trimEnd());
  }

  /** Writes both files. */
  async write(data: Record<string, unknown>): Promise<void> {
    const { out, smoke, rounds } = this.#options;
    await Deno.mkdir(out, { recursive: true });
    const machine = { ...this.#machine, load_at_end: Deno.loadavg()[0]! };
    const busy = this.#isBusy(this.#machine.load_at_start as number);
    const remarks = [
      smoke ? "A smoke run: the numbers mean nothing." : "",
      busy ? "**The machine was not idle at the start: the numbers are doubtful.**" : "",
    ].filter(Boolean).join(" ");
    const facts = table(["fact", ""], Object.entries(machine).map(([k, v]) => [k, String(v)]));
    const markdown = [
      `# ${this.#title}`,
      `${this.#date}, ${rounds} rounds, variants in turn; medians (least–greatest). ${remarks}`
        .trimEnd(),
      ...this.#parts,
      "## Machine",
      facts.trimEnd(),
    ].join("\n\n") + "\n";
    const json = { date: this.#date, rounds, smoke, busy, machine, ...data };
    await writeWhole(`${out}/${this.#name}.json`, JSON.stringify(json, null, 2) + "\n");
    await writeWhole(`${out}/${this.#name}.md`, markdown);
    console.log(markdown);
  }
}
