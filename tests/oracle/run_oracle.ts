import { ThreadHost, type ThreadMessage } from "../../src/engine/port_worker.ts";

/** Where `deno task build --oracle` puts the program. */
const ORACLE = new URL("../../wasm/oracle/rys-oracle.js", import.meta.url);

type Message =
  | ThreadMessage
  | { op: "line"; line: string }
  | { op: "file"; name: string; bytes: Uint8Array<ArrayBuffer> }
  | { op: "abort"; reason: string }
  | { op: "end"; code: number };

/** What the oracle program said and wrote. */
export interface OracleRun {
  /** Lines of its output. */
  lines: string[];
  /** Files it wrote under /out. */
  files: Map<string, Uint8Array<ArrayBuffer>>;
  /** Its exit code. */
  code: number;
}

/**
 * Runs the oracle program inside the WASM.
 *
 * @param args Its arguments.
 * @param onLine Receives each line as it comes.
 * @param inputs Files that it finds under /in, by name. Their memory goes to the program: they are empty afterwards.
 * @param program Another test program's module.
 * @throws {Error} If it aborts.
 */
export async function runOracle(
  args: string[],
  onLine: (line: string) => void = () => {},
  inputs: ReadonlyMap<string, Uint8Array<ArrayBuffer>> = new Map(),
  program = ORACLE,
): Promise<OracleRun> {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const threads = new ThreadHost(program.href, (message) => reject(new Error(message)));
  const run: OracleRun = { lines: [], files: new Map(), code: -1 };
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(event.message));
  };
  worker.onmessage = ({ data }: MessageEvent<Message>) => {
    switch (data.op) {
      case "thread-start":
      case "thread-end":
        return threads.receive(data);
      case "line":
        run.lines.push(data.line);
        return onLine(data.line);
      case "file":
        return void run.files.set(data.name, data.bytes);
      case "abort":
        return reject(
          new Error(`the program aborted: ${data.reason}\n${run.lines.slice(-5).join("\n")}`),
        );
      case "end":
        run.code = data.code;
        return resolve();
    }
  };
  worker.postMessage(
    { js: program.href, args, inputs },
    [...inputs.values()].map(({ buffer }) => buffer),
  );
  try {
    await promise;
  } finally {
    worker.terminate();
    threads.end();
  }
  return run;
}

if (import.meta.main) {
  const run = await runOracle(Deno.args, (line) => console.log(line));
  for (const [name, bytes] of run.files) Deno.writeFileSync(name, bytes);
  Deno.exit(run.code);
}
