/** Answers of a {@linkcode LineChild}; the rest of its standard output is ignored. */
interface Answer {
  id: number;
  result?: unknown;
  error?: string;
}

/**
 * A child process that answers JSON requests, one line each way: `{"id":1,"op":"load",...}` to its standard input,
 * `@{"id":1,"result":...}` from its standard output.
 */
export class LineChild implements AsyncDisposable {
  /** Process id. */
  readonly pid: number;
  readonly #child: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #output: Promise<void>;
  readonly #errors: Promise<void>;
  #tail = "";
  #next = 1;

  /** Starts `program` with `args`. */
  constructor(program: string, args: string[], env: Record<string, string> = {}) {
    this.#child = new Deno.Command(program, {
      args,
      env,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.pid = this.#child.pid;
    this.#writer = this.#child.stdin.getWriter();
    this.#errors = this.#readErrors();
    this.#output = this.#readOutput();
  }

  /** Makes a request and waits for its result. */
  call<T>(op: string, fields: Record<string, unknown> = {}): Promise<T> {
    const id = this.#next++;
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    const line = new TextEncoder().encode(JSON.stringify({ id, op, ...fields }) + "\n");
    this.#writer.write(line).catch(() => {}); // a child that is gone is noticed at its output
    return pending.promise as Promise<T>;
  }

  /** Lets the child end and waits for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer.close().catch(() => {});
    await this.#child.status;
    await Promise.all([this.#output, this.#errors]);
  }

  async #readErrors(): Promise<void> {
    for await (const text of this.#child.stderr.pipeThrough(new TextDecoderStream())) {
      this.#tail = (this.#tail + text).slice(-2000);
    }
  }

  async #readOutput(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) if (line.startsWith("@")) this.#answer(JSON.parse(line.slice(1)));
    }
    const { code } = await this.#child.status;
    await this.#errors;
    for (const { reject } of this.#pending.values()) {
      reject(new Error(`the child process ended with code ${code}: ${this.#tail.trim()}`));
    }
  }

  #answer({ id, result, error }: Answer): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new Error(error));
  }
}
