/**
 * What two threads give on a tiny model, where a token's time is not arithmetic: the library, the program and the server
 * with one and with two threads, on an idle machine and on one whose cores are all taken; before and after a change.
 *
 * @module
 */

import { events } from "../src/server/page/api.js";
import { LineChild } from "../tests/models/_line_child.ts";
import { startPeer } from "../tests/models/_peer.ts";
import { options, ratios, Report, ROOT, show, someTokens, spread, table } from "./_bench.ts";

const asked = options("usage: deno run -A bench/threads.ts [options]", 5, {
  other: "DIR  another checkout of this repository, built, to compare with",
});
const N_PROMPT = 64;
const N_GEN = asked.smoke ? 8 : 128;
const THREADS = [1, 2];

/** One way to generate tokens. */
interface Surface {
  name: string;
  /** Tokens per second after the first. */
  measure(threads: number): Promise<number>;
}

interface Row {
  loaded: boolean;
  variant: string;
  surface: string;
  threads: number;
  samples: number[];
}

/** The library, in a process of its own that stays; see `_child.ts`. */
function library(child: LineChild): Surface {
  const made = new Set<number>();
  return {
    name: "library",
    async measure(threads) {
      const name = `t${threads}`;
      if (!made.has(threads)) {
        await child.call("context", { name, nCtx: 1024, threads });
        made.add(threads);
      }
      const tokens = someTokens(N_PROMPT, 1000);
      const { predictedMs } = await child.call<{ predictedMs: number }>("measure", {
        name,
        tokens,
        tg: N_GEN,
      });
      return 1000 * N_GEN / predictedMs;
    },
  };
}

/** The program, started anew for each measurement. */
function program(root: string): Surface {
  return {
    name: "run",
    async measure(threads) {
      const { stderr } = await new Deno.Command(Deno.execPath(), {
        args: [
          ...["run", "-A", "--no-check", `${root}/mod.ts`, "-m", asked.demo],
          ...["-p", "Once upon a time", "-n", `${2 * N_GEN}`, "--ignore-eos", "--temp", "0"],
          ...["-t", `${threads}`, "--gpu", "off"],
        ],
        stdin: "null",
        stdout: "null",
      }).output();
      const text = new TextDecoder().decode(stderr);
      const found = /generated \d+ tokens, ([\d.]+) tokens\/s/.exec(text);
      if (!found) throw new Error(`run ended with: ${text.trim()}`);
      return Number(found[1]);
    },
  };
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A server for each number of threads, asked by one client that reads a stream. */
function server(root: string, stack: AsyncDisposableStack): Surface {
  const urls = new Map<number, string>();
  const start = async (threads: number) => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    listener.close();
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--no-check", `${root}/mod.ts`, "serve", "--quiet", "-m", asked.demo],
        ...["--port", `${port}`, "-c", "1024", "-np", "1", "-t", `${threads}`, "--gpu", "off"],
      ],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    stack.defer(async () => {
      child.kill("SIGTERM");
      await child.status;
    });
    const url = `http://127.0.0.1:${port}`;
    for (;;) {
      const response = await fetch(`${url}/health`).catch(() => undefined);
      await response?.body?.cancel();
      if (response?.status === 200) return url;
      await sleep(50);
    }
  };
  return {
    name: "server",
    async measure(threads) {
      const url = urls.get(threads) ?? await start(threads);
      urls.set(threads, url);
      const response = await fetch(`${url}/completion`, {
        method: "POST",
        body: JSON.stringify({
          prompt: someTokens(N_PROMPT, 1000),
          n_predict: N_GEN + 1,
          stream: true,
          temperature: 0,
          ignore_eos: true,
          cache_prompt: false,
        }),
      });
      let first = 0;
      let n = 0;
      for await (const data of events(response.body!)) {
        const { tokens_predicted, error } = JSON.parse(data);
        if (error) throw new Error(JSON.stringify(error));
        if (n === 0) first = performance.now();
        n = tokens_predicted;
      }
      if (n !== N_GEN + 1) throw new Error(`asked for ${N_GEN + 1} tokens, got ${n}`);
      return 1000 * N_GEN / (performance.now() - first);
    },
  };
}

/** Keeps every core busy until it is disposed of. */
function load(): Disposable {
  const children = Array.from(
    { length: navigator.hardwareConcurrency },
    () =>
      new Deno.Command(Deno.execPath(), {
        args: ["eval", "for (;;);"],
        stdin: "null",
        stdout: "null",
        stderr: "null",
      }).spawn(),
  );
  return {
    [Symbol.dispose]() {
      for (const child of children) child.kill("SIGKILL");
    },
  };
}

const report = new Report("threads", "One thread and two on a tiny model", asked);
await using stack = new AsyncDisposableStack();
const surfaces: [variant: string, surface: Surface][] = [];
for (const [name, root] of [["ours", ROOT], ["other", asked.own.other]] as const) {
  if (root === undefined) continue;
  const child = stack.use(
    new LineChild(Deno.execPath(), [
      ...["run", "-A", "--no-check", "--config", `${root}/deno.json`, `${root}/bench/_child.ts`],
    ]),
  );
  await child.call("load", { path: asked.demo });
  surfaces.push([name, library(child)], [name, program(root)], [name, server(root, stack)]);
}
let missing = "";
try {
  const peer = stack.use(await startPeer());
  await peer.call("load", { path: asked.demo });
  surfaces.push(["native", library(peer)]);
} catch (error) {
  missing = `Not measured: native (${(error as Error).message}).`;
  console.error(`note: ${missing}`);
}

const rows: Row[] = [false, true].flatMap((loaded) =>
  surfaces.flatMap(([variant, { name }]) =>
    THREADS.map((threads) => ({ loaded, variant, surface: name, threads, samples: [] }))
  )
);
const at = (loaded: boolean, variant: string, surface: string, threads: number) =>
  rows.find((row) =>
    row.loaded === loaded && row.variant === variant && row.surface === surface &&
    row.threads === threads
  )?.samples;

// Starts what stays, and lets V8 optimise it.
for (const [, surface] of surfaces) {
  if (surface.name === "run") continue;
  for (const threads of THREADS) for (let i = 0; i < 2; i++) await surface.measure(threads);
}
for (const loaded of [false, true]) {
  using _busy = loaded ? load() : undefined;
  for (let round = 0; round < asked.rounds; round++) {
    for (const threads of THREADS) {
      for (const [variant, surface] of surfaces) {
        at(loaded, variant, surface.name, threads)!.push(await surface.measure(threads));
      }
    }
    console.error(`${loaded ? "loaded" : "idle"}: round ${round + 1} of ${asked.rounds}`);
  }
}

report.add(
  `Tokens per second on the demo model, ${N_GEN} after a prompt of ${N_PROMPT} (\`run\`: ${
    2 * N_GEN
  } after four), one request at a time, greedy. library: \`generate()\`; server: one client that reads a stream. ` +
    `loaded: beside ${navigator.hardwareConcurrency} processes that take a core each. Ratios are taken round by round; ` +
    "above 1 is faster. native is node-llama-cpp; it is compared with the library and has no rows of its own for the rest.",
);
const versus = (row: Row, base: number[] | undefined) =>
  base && base !== row.samples ? show(ratios(row.samples, base), 2) : "–";
report.add(table(
  [
    ...["machine", "surface", "variant", "threads", "tokens/s"],
    ...["to one thread", "to other", "to native"],
  ],
  rows.map((row) => [
    row.loaded ? "loaded" : "idle",
    row.surface,
    row.variant,
    String(row.threads),
    show(spread(row.samples), 0),
    versus(row, at(row.loaded, row.variant, row.surface, 1)),
    row.variant === "ours" ? versus(row, at(row.loaded, "other", row.surface, row.threads)) : "–",
    row.variant === "native" ? "–" : versus(row, at(row.loaded, "native", "library", row.threads)),
  ]),
));
if (missing) report.add(missing);
await report.write({
  n_prompt: N_PROMPT,
  n_gen: N_GEN,
  other: Boolean(asked.own.other),
  results: rows,
});
