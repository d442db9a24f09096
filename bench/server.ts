/**
 * Load: 1, 4 and 16 clients at once on the server, on llama-server and on node-llama-cpp: tokens per second, time to the
 * first token, fairness; clients with different plans; memory over minutes.
 *
 * @module
 */

import { events } from "../src/server/page/api.js";
import { fetchModel } from "../tests/models/fetch.ts";
import { installPeer } from "../tests/models/_peer.ts";
import { options, ratios, Report, ROOT, show, someTokens, spread, table } from "./_bench.ts";

const asked = options("usage: deno run -A bench/server.ts [options]", 3, {
  minutes: "N  minutes of the memory run (1; 0 leaves it out)",
  seconds: "N  seconds of each measurement (15)",
  threads:
    "N  threads of each server (2; more than there are idle cores make llama.cpp's native threads crawl)",
  models: "A,B  of demo, smollm2 (both)",
  "llama-server":
    "PATH  llama.cpp's server (llama-server on PATH; without one its rows are left out)",
});

function number(name: "minutes" | "seconds" | "threads", fallback: number): number {
  const value = Number(asked.own[name] ?? fallback);
  if (Number.isFinite(value) && value >= 0) return value;
  console.error(`error: --${name} takes a number, not "${asked.own[name]}"`);
  Deno.exit(2);
}

const SECONDS = number("seconds", asked.smoke ? 2 : 15);
const MINUTES = number("minutes", asked.smoke ? 0.1 : 1);
const CLIENTS = asked.smoke ? [1, 4] : [1, 4, 16];
const SLOTS = 4;
const N_CTX = 2048;
const THREADS = number("threads", Math.min(2, navigator.hardwareConcurrency));

/** A model and the work that is asked of it. */
interface Work {
  model: string;
  path: string;
  /** Plans that clients take in turn where plans are mixed. */
  plans: string[];
  nPrompt: number;
  nPredict: number;
}

/** A server that runs. */
interface Running extends AsyncDisposable {
  url: string;
  pid: number;
}

/** A server that is measured. */
interface Variant {
  name: string;
  /** What it is, for the text. */
  what: string;
  command: (path: string, port: number) => [program: string, args: string[]];
}

const LLAMA_SERVER = asked.own["llama-server"] ?? "llama-server";

const VARIANTS: Variant[] = [
  {
    name: "ours",
    what: "`deno run -A mod.ts serve`",
    command: (path, port) => [Deno.execPath(), [
      ...["run", "-A", "--no-check", `${ROOT}/mod.ts`, "serve", "--quiet"],
      ...["-m", path, "--port", `${port}`, "-c", `${N_CTX}`],
      ...["-np", `${SLOTS}`, "-t", `${THREADS}`, "--max-contexts", "4"],
    ]],
  },
];

/** The version that llama-server tells, or nothing where there is none. */
async function llamaServerVersion(): Promise<string | undefined> {
  try {
    const { stderr, stdout, success } = await new Deno.Command(LLAMA_SERVER, {
      args: ["--version"],
    }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    return success ? /version: (.*)/.exec(text)?.[1] ?? "unknown" : undefined;
  } catch {
    return undefined;
  }
}

const left: string[] = [];
const version = await llamaServerVersion();
if (version) {
  VARIANTS.push({
    name: "llama-server",
    what: `llama.cpp's own server, native, version ${version}`,
    command: (path, port) => [LLAMA_SERVER, [
      ...["-m", path, "--host", "127.0.0.1", "--port", `${port}`, "-c", `${N_CTX}`],
      ...["-np", `${SLOTS}`, "-t", `${THREADS}`, "-tb", `${THREADS}`, "-b", "512"],
      ...["--no-webui", "-lv", "0"],
    ]],
  });
} else {
  left.push("llama-server: not found; give --llama-server PATH");
  console.error(`note: ${left.at(-1)}`);
}
try {
  const home = await installPeer();
  VARIANTS.push({
    name: "node-llama-cpp",
    what: "node-llama-cpp's sequences behind a small HTTP server in Node, native",
    command: (path, port) => ["node", [
      `${ROOT}/bench/_server_peer.mjs`,
      ...[home, path, `${port}`, `${SLOTS}`, `${N_CTX}`, `${THREADS}`],
    ]],
  });
} catch (error) {
  left.push(`node-llama-cpp: ${(error as Error).message}`);
  console.error(`note: ${left.at(-1)}`);
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts a server and waits until its model is loaded. */
async function start({ name, command }: Variant, path: string): Promise<Running> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const [program, args] = command(path, port);
  const child = new Deno.Command(program, {
    args,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let tail = "";
  const output = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      tail = (tail + text).slice(-2000);
    }
  })();
  let ended = false;
  const status = child.status.then((status) => {
    ended = true;
    return status;
  });
  const url = `http://127.0.0.1:${port}`;
  for (let ready = false; !ready;) {
    if (ended) {
      await output;
      throw new Error(`${name} ended at its start: ${tail.trim()}`);
    }
    await sleep(50);
    const response = await fetch(`${url}/health`).catch(() => undefined);
    ready = response?.status === 200;
    await response?.body?.cancel();
  }
  return {
    url,
    pid: child.pid,
    async [Symbol.asyncDispose]() {
      if (!ended) child.kill("SIGTERM");
      await status;
      await output;
    },
  };
}

let prompts = 0;

/** Asks for one completion of a prompt that was never asked before; `onToken` learns how many tokens there are so far. */
async function complete(
  { url }: Running,
  { nPrompt, nPredict }: Work,
  plan: string,
  signal: AbortSignal,
  onToken: (n: number) => void,
): Promise<void> {
  const shift = prompts++;
  const response = await fetch(`${url}/completion`, {
    method: "POST",
    signal,
    body: JSON.stringify({
      prompt: someTokens(nPrompt, 1000).map((token) => 260 + (token + 37 * shift) % 740),
      n_predict: nPredict,
      stream: true,
      temperature: 0,
      ignore_eos: true,
      cache_prompt: false,
      ...plan === "none" ? {} : { repeat_layers: plan },
    }),
  });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  let last = 0;
  for await (const data of events(response.body!)) {
    const { tokens_predicted: n, error } = JSON.parse(data);
    if (error) throw new Error(JSON.stringify(error));
    if (n > last) onToken(last = n);
  }
  if (last !== nPredict) throw new Error(`asked for ${nPredict} tokens, got ${last}`);
}

/** What one measurement gave. */
interface Sample {
  /** Tokens of all clients in a second. */
  perSecond: number;
  /** Milliseconds to the first token: median, and what 19 of 20 requests stay below; null if none came. */
  ttft: number | null;
  ttft95: number | null;
  /** Jain's index of the clients' tokens: 1 if all got the same, 1 / clients if one got all. */
  fairness: number;
  /** Requests that began to answer. */
  requests: number;
}

/** Jain's index of fairness. */
function jain(x: readonly number[]): number {
  const sum = x.reduce((a, b) => a + b, 0);
  return sum === 0 ? 0 : sum ** 2 / (x.length * x.reduce((a, b) => a + b * b, 0));
}

/** Clients that ask one request after another for some time; each has a plan of `plans`. */
async function load(
  running: Running,
  work: Work,
  clients: number,
  plans: readonly string[],
  seconds: number,
  abandon: (request: number) => boolean = () => false,
): Promise<Sample> {
  const stop = new AbortController();
  const tokens = new Array<number>(clients).fill(0);
  const firsts: number[] = [];
  const end = performance.now() + seconds * 1000;
  let requests = 0;
  const client = async (i: number) => {
    while (performance.now() < end) {
      const begin = performance.now();
      const leave = new AbortController();
      const leaves = abandon(requests++);
      let seen = 0;
      try {
        const signal = AbortSignal.any([stop.signal, leave.signal]);
        await complete(running, work, plans[i % plans.length]!, signal, (n) => {
          if (seen === 0) firsts.push(performance.now() - begin);
          tokens[i]! += n - seen;
          seen = n;
          if (leaves && n >= 2) leave.abort();
        });
      } catch (error) {
        if (!stop.signal.aborted && !leave.signal.aborted) throw error;
      }
    }
  };
  const timer = setTimeout(() => stop.abort(), seconds * 1000);
  try {
    await Promise.all(tokens.map((_, i) => client(i)));
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
  firsts.sort((a, b) => a - b);
  const at = (part: number) =>
    firsts[Math.min(firsts.length - 1, Math.floor(part * firsts.length))];
  return {
    perSecond: tokens.reduce((a, b) => a + b, 0) / seconds,
    ttft: at(0.5) ?? null,
    ttft95: at(0.95) ?? null,
    fairness: jain(tokens),
    requests: firsts.length,
  };
}

/** Makes a server's contexts and lets V8 optimise what it runs. */
async function warm(running: Running, work: Work, plans: readonly string[]): Promise<void> {
  await load(running, work, plans.length, plans, asked.smoke ? 0.5 : 3);
}

/** Resident bytes of a process. */
function resident(pid: number): number {
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return 1024 * Number(/VmRSS:\s*(\d+)/.exec(status)![1]);
}

const report = new Report("server", "Server under load", asked);
const works: Work[] = [];
for (const name of (asked.own.models ?? (asked.smoke ? "demo" : "demo,smollm2")).split(",")) {
  if (name === "demo") {
    works.push({
      model: "demo",
      path: asked.demo,
      plans: ["none", "20,24", "12,16", "26,34"],
      nPrompt: 64,
      nPredict: 32,
    });
  } else if (name === "smollm2") {
    works.push({
      model: "SmolLM2-135M Q4_1",
      path: await fetchModel("smollm2"),
      plans: ["none", "12,14", "14,17", "9,11"],
      nPrompt: 32,
      nPredict: 16,
    });
  } else {
    console.error(`error: --models takes demo and smollm2, not "${name}"`);
    Deno.exit(2);
  }
}

interface Row {
  model: string;
  clients: number;
  variant: string;
  samples: Sample[];
}

const rows: Row[] = [];
for (const work of works) {
  await using stack = new AsyncDisposableStack();
  const servers: [name: string, running: Running, plans: string[]][] = [];
  for (const variant of VARIANTS) {
    const running = stack.use(await start(variant, work.path));
    servers.push([variant.name, running, ["none"]]);
    if (variant.name === "ours") servers.push(["ours, 4 plans", running, work.plans]);
  }
  for (const [, running, plans] of servers) await warm(running, work, plans);
  const part = CLIENTS.flatMap((clients) =>
    servers.map(([variant]): Row => ({ model: work.model, clients, variant, samples: [] }))
  );
  for (let round = 0; round < asked.rounds; round++) {
    for (const clients of CLIENTS) {
      for (const [variant, running, plans] of servers) {
        const sample = await load(running, work, clients, plans, SECONDS);
        part.find((row) => row.variant === variant && row.clients === clients)!.samples
          .push(sample);
      }
    }
    console.error(`${work.model}: round ${round + 1} of ${asked.rounds}`);
  }
  rows.push(...part);
}

/** Whether a server gave at least one answer's tokens in each round; from fewer, a ratio would mean nothing. */
const isMeasured = (row: Row) => {
  const { nPredict } = works.find((work) => work.model === row.model)!;
  return row.samples.every((s) => Math.round(s.perSecond * SECONDS) >= nPredict);
};

const against = (row: Row, variant: string) => {
  const base = rows.find((other) =>
    other.variant === variant && other.model === row.model && other.clients === row.clients
  );
  if (!base || base === row) return undefined;
  if (!isMeasured(row) || !isMeasured(base)) return undefined;
  return ratios(row.samples.map((s) => s.perSecond), base.samples.map((s) => s.perSecond));
};

const NOT_MEASURED = "not measured";

/** Samples for a table. */
const cell = (row: Row, of: (s: Sample) => number | null, digits: number) => {
  const found = row.samples.map(of).filter((x) => x !== null);
  return isMeasured(row) && found.length ? show(spread(found), digits) : NOT_MEASURED;
};

report.add(
  `Clients ask one request after another for ${SECONDS} seconds: a prompt and tokens after it, as many as the table ` +
    `says, streamed, at temperature 0, with nothing of an earlier prompt to reuse. Every server has ${SLOTS} slots, a ` +
    `cache of ${N_CTX} tokens and ${THREADS} threads; with 16 clients 12 wait at any time. tokens/s: of all clients ` +
    "together, generated ones only; ratios are of tokens/s, round by round; above 1 is faster. first: milliseconds " +
    "from a request to its first token, with the wait for a slot; p95: what 19 of 20 requests stay below. fairness: " +
    "Jain's index of the tokens that each client got; 1 is all the same.",
);
report.add(
  [
    ...VARIANTS.map(({ name, what }) => `- **${name}**: ${what}`),
    "- **ours, 4 plans**: the same server, each client with one of four plans in turn; each plan has a context of its " +
    "own, with slots of its own",
  ].join("\n"),
);
/** What ours is to reach of llama-server's tokens per second, with SmolLM2. */
const GOAL = 0.6;
// A smoke run's numbers mean nothing, nor would what they reach.
const goals = asked.smoke ? [] : works.filter((work) => work.model.startsWith("SmolLM2"))
  .flatMap(({ model }) =>
    CLIENTS.map((clients) => {
      const row = rows.find((r) =>
        r.variant === "ours" && r.model === model && r.clients === clients
      )!;
      return {
        model,
        clients,
        wanted: GOAL,
        reached: against(row, "llama-server")?.median ?? null,
      };
    })
  );
if (goals.length) {
  report.add(
    "Goals, as medians of ours to llama-server:\n\n" + table(
      ["model", "clients", "goal", "reached", "met"],
      goals.map(({ model, clients, wanted, reached }) => [
        ...[model, `${clients}`, `${wanted}`],
        reached === null ? "not measured" : reached.toFixed(2),
        reached === null ? "–" : reached >= wanted ? "yes" : "no",
      ]),
    ),
  );
}
for (const work of works) {
  report.add(
    `## ${work.model}\n\nPrompt of ${work.nPrompt} tokens, ${work.nPredict} generated. Plans: ${
      work.plans.map((plan) => `\`${plan}\``).join(", ")
    }.`,
  );
  const ratio = (row: Row, variant: string) => {
    const found = against(row, variant);
    if (found) return show(found, 2);
    return row.variant !== variant && VARIANTS.some(({ name }) => name === variant)
      ? NOT_MEASURED
      : "–";
  };
  report.add(table(
    [
      ...["clients", "variant", "tokens/s", "first", "first p95", "fairness"],
      ...["to llama-server", "to node-llama-cpp"],
    ],
    rows.filter((row) => row.model === work.model).map((row) => [
      String(row.clients),
      row.variant,
      cell(row, (s) => s.perSecond, 1),
      cell(row, (s) => s.ttft, 0),
      cell(row, (s) => s.ttft95, 0),
      cell(row, (s) => s.fairness, 3),
      ratio(row, "llama-server"),
      ratio(row, "node-llama-cpp"),
    ]),
  ));
}

const settings = { slots: SLOTS, n_ctx: N_CTX, threads: THREADS, not_measured: left };
const missing = left.length ? "Not measured: " + left.join("; ") + "." : "";
if (missing) report.add(missing);
await report.write({
  seconds: SECONDS,
  ...settings,
  works: works.map(({ path: _, ...work }) => work),
  goals,
  results: rows,
});

interface MemoryRun {
  variant: string;
  minutes: number;
  clients: number;
  requests: number;
  perSecond: number;
  fairness: number;
  /** Resident bytes, one sample a second. */
  resident: number[];
}

/** Least-squares slope of samples that are a second apart, for a minute. */
function slope(y: readonly number[]): number {
  const mean = (x: readonly number[]) => x.reduce((a, b) => a + b, 0) / x.length;
  const x = y.map((_, i) => i);
  const [mx, my] = [mean(x), mean(y)];
  const above = x.reduce((sum, xi, i) => sum + (xi - mx) * (y[i]! - my), 0);
  return 60 * above / x.reduce((sum, xi) => sum + (xi - mx) ** 2, 0);
}

/** Minutes that the others' memory is watched at most: long enough to see their level. */
const PEER_MINUTES = 2;

if (MINUTES > 0 && Deno.build.os === "linux") {
  const report = new Report("server_memory", "The server's memory over minutes", {
    ...asked,
    rounds: 1,
  });
  const memory: MemoryRun[] = [];
  const work = works[0]!;
  const clients = CLIENTS.at(-1)!;
  for (const variant of VARIANTS) {
    const ours = variant.name === "ours";
    const plans = ours ? work.plans : ["none"];
    const minutes = ours ? MINUTES : Math.min(MINUTES, PEER_MINUTES);
    await using running = await start(variant, work.path);
    await warm(running, work, plans);
    const samples: number[] = [];
    const timer = setInterval(() => samples.push(resident(running.pid)), 1000);
    console.error(`memory: ${variant.name} for ${minutes} minutes`);
    try {
      const sample = await load(
        running,
        work,
        clients,
        plans,
        minutes * 60,
        (request) => request % 10 === 9,
      );
      memory.push({ variant: variant.name, minutes, clients, resident: samples, ...sample });
    } finally {
      clearInterval(timer);
    }
    // It still answers, and a request is not behind ones that nobody waits for.
    await complete(running, work, "none", AbortSignal.timeout(60_000), () => {});
  }
  const mb = (bytes: number) => (bytes / 1e6).toFixed(1);
  const mean = (x: readonly number[]) => x.reduce((a, b) => a + b, 0) / x.length;
  report.add(
    `${clients} clients on the ${work.model} model; ours with four plans; one request in ` +
      "ten is dropped by its client after two tokens. Megabytes that the process holds (resident), one sample a " +
      "second: means of the first, fifth and last tenth of the time, the greatest, and the slope over the last half.",
  );
  report.add(table(
    [
      ...[
        "variant",
        "minutes",
        "requests",
        "tokens/s",
        "fairness",
        "first tenth",
        "fifth",
        "last",
        "greatest",
      ],
      "MB a minute, last half",
    ],
    memory.map((run) => {
      const y = run.resident;
      const tenth = (i: number) =>
        y.slice(Math.floor(i * y.length / 10), Math.max(1, Math.ceil((i + 1) * y.length / 10)));
      return [
        run.variant,
        String(run.minutes),
        String(run.requests),
        run.perSecond.toFixed(1),
        run.fairness.toFixed(3),
        ...[0, 4, 9].map((i) => mb(mean(tenth(i)))),
        mb(Math.max(...y)),
        (slope(y.slice(y.length >> 1)) / 1e6).toFixed(2),
      ];
    }),
  ));
  if (missing) report.add(missing);
  await report.write({
    ...settings,
    work: { ...work, path: undefined },
    results: memory.map((run) => ({
      ...run,
      resident: run.resident.filter((_, i) => i % 10 === 0 || i === run.resident.length - 1),
    })),
  });
}
