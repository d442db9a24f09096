// The server as a program of its own, started as a host program would start it.

import { serverArgs, type ServerArgsOptions } from "@rys/edge/serve";
import { inRepo } from "../engine/_engine.ts";

/** A server in a process of its own. */
export interface Child extends AsyncDisposable {
  /** Where it listens. */
  readonly origin: string;
  /** What it has written to standard error. */
  readonly stderr: () => string;
  /** Ends it and waits: its exit code, and what it wrote to standard output. */
  stop(signal?: Deno.Signal): Promise<{ code: number; stdout: string }>;
  /** Waits until it has ended by itself. */
  readonly ended: Promise<{ code: number; stdout: string }>;
}

/** What the servers of these tests have in common: small and quick. */
const SMALL: ServerArgsOptions = {
  model: inRepo("models/demo.gguf"),
  host: "127.0.0.1",
  port: 0,
  nCtx: 1024,
  nParallel: 2,
  context: { threads: 1 },
};

/**
 * Starts a server and waits until it is ready, or only until it listens.
 *
 * @param options What is other than {@linkcode SMALL}.
 * @param how Variables of the environment, and whether the model has to be loaded.
 */
export async function startChild(
  options: ServerArgsOptions = {},
  how: { env?: Record<string, string>; isReady?: boolean } = {},
): Promise<Child> {
  const args = serverArgs({ ...SMALL, ...options });
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--config", inRepo("deno.json"), inRepo("mod.ts"), ...args],
    env: how.env ?? {},
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let stderr = "";
  const listening = Promise.withResolvers<string>();
  const reading = (async () => {
    for await (const text of process.stderr.pipeThrough(new TextDecoderStream())) {
      stderr += text;
      const match = /listening on (http:\S+)\n/.exec(stderr);
      if (match !== null) listening.resolve(match[1]!);
    }
    listening.reject(new Error(`it ended without listening: ${stderr}`));
  })();
  const stdout = new Response(process.stdout).text();
  listening.promise.catch(() => {});
  const ended = (async () => {
    const { code } = await process.status;
    await reading;
    return { code, stdout: await stdout };
  })();
  const origin = await listening.promise;
  if (how.isReady !== false) {
    for (const end = Date.now() + 300_000;;) {
      const response = await fetch(`${origin}/ready`);
      await response.body?.cancel();
      if (response.status === 200) break;
      if (Date.now() > end) throw new Error(`not ready within five minutes: ${stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }
  let isOver = false;
  ended.then(() => isOver = true);
  const stop = async (signal: Deno.Signal = "SIGTERM") => {
    if (!isOver) process.kill(signal);
    return await ended;
  };
  return {
    origin,
    stderr: () => stderr,
    stop,
    ended,
    async [Symbol.asyncDispose]() {
      await stop("SIGKILL");
    },
  };
}
