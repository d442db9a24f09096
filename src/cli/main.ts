import { environment } from "./environment.ts";
import { describeError, Interrupted } from "./errors.ts";
import type { CommandName } from "./flags/flags.ts";
import { type Flags, parseFlags } from "./flags/parse_flags.ts";
import { processShell, type Shell, styles } from "./terminal/shell.ts";

type Command = (flags: Flags, shell: Shell) => Promise<number>;

/** Each command's code is loaded only when it is needed. */
const LOADERS: Record<CommandName, () => Promise<Command>> = {
  run: async () => (await import("./commands/run.ts")).run,
  chat: async () => (await import("./commands/chat.ts")).chat,
  serve: async () => (await import("./commands/serve.ts")).serve,
  plan: async () => (await import("./commands/plan.ts")).plan,
  inspect: async () => (await import("./commands/inspect.ts")).inspect,
  export: async () => (await import("./commands/export.ts")).exportCommand,
  logits: async () => (await import("./commands/logits.ts")).logits,
  bench: async () => (await import("./commands/bench.ts")).bench,
  pull: async () => (await import("./commands/pull.ts")).pull,
  ls: async () => (await import("./commands/ls.ts")).ls,
  rm: async () => (await import("./commands/rm.ts")).rm,
  verify: async () => (await import("./commands/verify.ts")).verify,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  help: async () => (await import("./commands/help.ts")).help,
};

/** How long a command may take to end after a request to stop, in milliseconds. */
const GRACE_MS = 400;

/**
 * Runs the program.
 *
 * @param args The command line.
 * @returns The exit code: 0 done, 1 failed, 2 wrong usage, 130 or 143 stopped.
 */
export async function main(args: readonly string[]): Promise<number> {
  const stop = new AbortController();
  const shell = processShell(stop.signal);
  listen(shell, stop);
  let ending: { code: number; message: string };
  try {
    return await command(args, shell);
  } catch (error) {
    // What a command throws while it is being stopped depends only on where it was.
    const cause = stop.signal.aborted ? stop.signal.reason : error;
    ending = describeError(cause);
    if (ending.message !== "") {
      shell.err(`${styles(shell.colour).red("error:")} ${ending.message}\n`);
    }
    if (shell.verbose && cause instanceof Error && ending.code === 1) {
      shell.err(`${cause.stack ?? ""}\n`);
    }
  } finally {
    shell.onExit?.();
  }
  return ending.code;
}

async function command(args: readonly string[], shell: Shell): Promise<number> {
  const flags = parseFlags(args, environment);
  shell.verbose = flags.on("verbose");
  shell.quiet = flags.on("quiet");
  for (const warning of flags.warnings) shell.warn(warning);
  if (flags.inert.length > 0) shell.note(`without effect here: ${flags.inert.join(", ")}`);
  if (flags.on("help")) {
    const { commandHelp, generalHelp } = await import("./commands/help.ts");
    const named = args.includes(flags.command) && flags.command !== "help";
    await shell.out(named ? commandHelp(flags.command) : generalHelp());
    return 0;
  }
  if (flags.on("version")) {
    const { versionLine } = await import("./version.ts");
    await shell.out(await versionLine() + "\n");
    return 0;
  }
  const run = await LOADERS[flags.command]();
  return await run(flags, shell);
}

/** Ends the program on signals: gracefully at first; at once after {@linkcode GRACE_MS} or on a second signal. */
function listen(shell: Shell, stop: AbortController): void {
  const end = (code: number): never => {
    shell.onExit?.();
    Deno.exit(code);
  };
  const on = (signal: Deno.Signal, code: number) => {
    try {
      Deno.addSignalListener(signal, () => {
        if (signal === "SIGINT" && shell.onInterrupt?.() === true) return;
        if (stop.signal.aborted) end(code);
        if (shell.onTerminate?.() === true) return;
        stop.abort(new Interrupted(signal, code));
        Deno.unrefTimer(setTimeout(() => end(code), GRACE_MS));
      });
    } catch {
      // Not every system has every signal.
    }
  };
  on("SIGINT", 130);
  on("SIGTERM", 143);
}
