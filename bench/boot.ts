/**
 * Time from the start of a process to the first token of the demo model: our program, our library in Deno, and
 * node-llama-cpp in Node; with the system's file cache warm and cold.
 *
 * @module
 */

import { installPeer } from "../tests/models/_peer.ts";
import { options, ratios, Report, ROOT, show, spread, table } from "./_bench.ts";

/** Steps and what has happened when each is reached. */
const STEPS = {
  begin: "the process runs JavaScript",
  modules: "our modules, or node-llama-cpp's, are loaded",
  loaded: "the engine is up and the model is loaded",
  ready: "the context is made",
  first: "the first token is there",
} as const;

type Step = keyof typeof STEPS;

interface Variant {
  name: string;
  what: string;
  command: string[];
  /** Prints its steps; else the first byte on standard output counts. */
  tellsSteps: boolean;
}

/** One start; milliseconds from just before the process was made. */
type Start = Partial<Record<Step, number>> & { first: number; exit: number };

const PROMPT = "Once upon a time";
const asked = options("usage: deno run -A bench/boot.ts [options]", 11);
const report = new Report("boot", "Time to the first token", asked);
const peer = await installPeer();
const deno = Deno.execPath();
const config = ["--config", `${ROOT}/deno.json`];
const program = [
  ...["run", "-A", `${ROOT}/mod.ts`, "-m", asked.demo, "-p", PROMPT],
  ...["-n", "8", "--temp", "0", "-c", "512"],
];

const VARIANTS: Variant[] = [
  {
    name: "program",
    what: "`deno run -A mod.ts`, to the first byte on standard output",
    command: [deno, ...program],
    tellsSteps: false,
  },
  {
    name: "library",
    what: "our library in Deno",
    command: [
      deno,
      "run",
      "-A",
      "--no-check",
      ...config,
      `${ROOT}/bench/_boot_ours.ts`,
      asked.demo,
      PROMPT,
    ],
    tellsSteps: true,
  },
  {
    name: "library, no code cache",
    what: "the same without Deno's cache of compiled JavaScript: as after an update",
    command: [
      ...[deno, "run", "-A", "--no-check", "--no-code-cache", ...config],
      ...[`${ROOT}/bench/_boot_ours.ts`, asked.demo, PROMPT],
    ],
    tellsSteps: true,
  },
  {
    name: "node-llama-cpp",
    what: "node-llama-cpp in Node, native",
    command: ["node", `${ROOT}/bench/_boot_peer.mjs`, peer, asked.demo, PROMPT],
    tellsSteps: true,
  },
];

async function start({ command: [program, ...args], tellsSteps }: Variant): Promise<Start> {
  const epoch = performance.timeOrigin + performance.now();
  const now = () => performance.timeOrigin + performance.now() - epoch;
  const child = new Deno.Command(program!, {
    args,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const errors = new Response(child.stderr).text();
  let out = "";
  let first = 0;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    first ||= now();
    out += text;
  }
  const { code } = await child.status;
  const exit = now();
  if (code !== 0 || !first) throw new Error(`${program} ${args.join(" ")}: ${await errors}`);
  await errors;
  if (!tellsSteps) return { first, exit };
  const steps = Object.entries(JSON.parse(out)).map(([k, v]) => [k, v as number - epoch]);
  return { ...Object.fromEntries(steps), exit };
}

/** Empties the system's file cache; only root on Linux can. */
async function dropCaches(): Promise<boolean> {
  try {
    await new Deno.Command("sync").output();
    await Deno.writeTextFile("/proc/sys/vm/drop_caches", "3");
    return true;
  } catch {
    return false;
  }
}

interface Row {
  cache: "warm" | "cold";
  variant: Variant;
  starts: Start[];
}

const rows: Row[] = [];
for (const cache of ["warm", "cold"] as const) {
  if (cache === "cold" && (asked.smoke || !await dropCaches())) continue;
  const part = VARIANTS.filter((v) => cache === "warm" || !v.name.includes("code cache"))
    .map((variant): Row => ({ cache, variant, starts: [] }));
  if (cache === "warm") { for (const { variant } of part) await start(variant); // fills the caches
   }
  for (let round = 0; round < asked.rounds; round++) {
    for (const row of part) {
      if (cache === "cold") await dropCaches();
      row.starts.push(await start(row.variant));
    }
    console.error(`${cache}: round ${round + 1} of ${asked.rounds}`);
  }
  rows.push(...part);
}

const at = (row: Row, step: Step | "exit") =>
  row.starts.flatMap((s) => s[step] === undefined ? [] : [s[step]]);
const baseOf = (row: Row) =>
  rows.find((r) => r.cache === row.cache && r.variant.name === "node-llama-cpp")!;
const toPeer = (row: Row) => ratios(at(row, "first"), at(baseOf(row), "first"));

report.add(
  "Milliseconds from just before the process is made; each column is when the step is reached. The ratio is that of " +
    "the first token to node-llama-cpp's in the same round; below 1 is faster.",
);
report.add(VARIANTS.map(({ name, what }) => `- **${name}**: ${what}`).join("\n"));
report.add(Object.entries(STEPS).map(([name, what]) => `- ${name}: ${what}`).join("\n"));
report.add(table(
  ["file cache", "variant", ...Object.keys(STEPS), "exit", "to node-llama-cpp"],
  rows.map((row) => [
    row.cache,
    row.variant.name,
    ...([...Object.keys(STEPS), "exit"] as (Step | "exit")[]).map((step) => {
      const samples = at(row, step);
      return samples.length ? show(spread(samples), 0) : "–";
    }),
    row === baseOf(row) ? "–" : show(toPeer(row), 2),
  ]),
));
if (!rows.some((row) => row.cache === "cold")) {
  report.add("The cold file cache was not measured: emptying it takes root on Linux.");
}
await report.write({
  model: asked.demo.replace(`${ROOT}/`, ""),
  results: rows.map((row) => ({
    cache: row.cache,
    variant: row.variant.name,
    first_ms: spread(at(row, "first")),
    to_node_llama_cpp: toPeer(row),
    starts: row.starts,
  })),
});
