/** A failure that a person can fix; printed without a stack trace. */
export class BuildError extends Error {
  override name = "BuildError";
}

/** Reports phases on stderr: one line each and, in a terminal, a moving line within a phase. */
export class Progress {
  readonly #terminal = Deno.stderr.isTerminal();
  readonly #started = Date.now();
  #moving = false;

  /** Starts a phase. */
  phase(text: string): void {
    this.#write(`${this.#time()} ${text}\n`);
  }

  /** Shows how far the phase is; nothing if stderr is not a terminal. */
  step(text: string): void {
    if (!this.#terminal) return;
    const { columns } = Deno.consoleSize();
    Deno.stderr.writeSync(
      new TextEncoder().encode(`\r\x1b[K      ${text.slice(0, Math.max(10, columns - 8))}`),
    );
    this.#moving = true;
  }

  #write(text: string): void {
    Deno.stderr.writeSync(new TextEncoder().encode(this.#moving ? `\r\x1b[K${text}` : text));
    this.#moving = false;
  }

  #time(): string {
    const s = Math.floor((Date.now() - this.#started) / 1000);
    return `[${String(Math.floor(s / 60)).padStart(2, "0")}:${String(s % 60).padStart(2, "0")}]`;
  }
}

/** How {@linkcode run} runs a command. */
export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** Called for each line of output. */
  onLine?: (line: string) => void;
}

/**
 * Runs a command to its end and returns its output.
 *
 * @throws {BuildError} If it cannot be started or fails; carries the end of its output.
 */
export async function run(command: string[], options: RunOptions = {}): Promise<string> {
  const [program, ...args] = command as [string, ...string[]];
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(program, {
      args,
      ...(options.cwd ? { cwd: options.cwd } : {}),
      ...(options.env ? { env: options.env } : {}),
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (cause) {
    throw new BuildError(
      `${program} could not be started: ${cause instanceof Error ? cause.message : cause}`,
    );
  }
  const lines: string[] = [];
  const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    let rest = "";
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + text).split(/[\r\n]+/);
      rest = parts.pop()!;
      for (const line of parts) {
        lines.push(line);
        options.onLine?.(line);
      }
    }
    if (rest) lines.push(rest);
  };
  await Promise.all([read(child.stdout), read(child.stderr)]);
  const { code } = await child.status;
  if (code !== 0) {
    // Compilers run side by side: the one that failed need not come last.
    const errors = lines.flatMap((line, i) =>
      /error|FAILED|fatal/i.test(line) ? lines.slice(i, i + 4) : []
    );
    const shown = [...new Set([...errors.slice(0, 40), ...lines.slice(-15)])];
    throw new BuildError(
      `${command.slice(0, 4).join(" ")} ... failed with code ${code}:\n${shown.join("\n")}`,
    );
  }
  return lines.join("\n");
}

/** Whether a program is on PATH. */
export async function has(program: string): Promise<boolean> {
  try {
    await new Deno.Command(program, {
      args: ["--version"],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).output();
    return true;
  } catch {
    return false;
  }
}

/** Whether a path exists. */
export function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

/**
 * Makes a folder in one step: `fill` works in a folder beside it, which takes the name when it is whole and goes when it
 * fails. A kill in between leaves a folder that the next call removes.
 */
export async function whole(dir: string, fill: (partial: string) => Promise<void>): Promise<void> {
  if (exists(dir)) return;
  const partial = `${dir}.partial`;
  await Deno.remove(partial, { recursive: true }).catch(() => {});
  try {
    await Deno.mkdir(partial, { recursive: true });
    await fill(partial);
    await Deno.rename(partial, dir);
  } catch (error) {
    await Deno.remove(partial, { recursive: true }).catch(() => {});
    throw error;
  }
}

/** Replaces a file in one step: nobody sees half of it, and if the disk is full the old one stays. */
export function replaceFile(path: string, data: Uint8Array | string): void {
  const partial = `${path}.partial`;
  try {
    Deno.writeFileSync(partial, typeof data === "string" ? new TextEncoder().encode(data) : data);
    Deno.renameSync(partial, path);
  } catch (error) {
    try {
      Deno.removeSync(partial);
    } catch {
      // It was not made.
    }
    throw error;
  }
}
