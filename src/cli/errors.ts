/** A wrong command line or plan: the program ends with 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** A failure whose message says all that helps: the program ends with 1. */
export class Failure extends Error {
  override name = "Failure";
}

/** Ctrl-C or a request to end: the program ends with `exitCode`. */
export class Interrupted extends Error {
  override name = "Interrupted";

  /**
   * @param signal Name of the signal.
   * @param exitCode 128 and the signal's number, as a shell has it.
   */
  constructor(signal: string, readonly exitCode: number) {
    super(`stopped by ${signal}`);
  }
}

/** The reader of standard output closed it: not an error, the program ends with 0. */
export class OutputClosed extends Error {
  override name = "OutputClosed";
}

/** What an error means for the program's end. */
export interface Ending {
  /** Exit code. */
  code: number;
  /** One line for the user, or "" where there is nothing to say. */
  message: string;
}

/**
 * What to say about an error, and how to end.
 *
 * @param error What was thrown.
 * @returns The exit code, and the message without "error: " before it.
 */
export function describeError(error: unknown): Ending {
  if (error instanceof OutputClosed) return { code: 0, message: "" };
  if (error instanceof Interrupted) return { code: error.exitCode, message: "" };
  if (error instanceof UsageError) return { code: 2, message: oneLine(error.message) };
  if (error instanceof Error) return { code: 1, message: oneLine(explain(error)) };
  return { code: 1, message: oneLine(String(error)) };
}

function explain(error: Error): string {
  const hint = contextHint(error);
  return hint === "" ? error.message || error.name : `${error.message}; ${hint}`;
}

/** For a prompt that does not fit: the flag that makes room. */
function contextHint(error: Error): string {
  if (!("type" in error) || error.type !== "exceed_context_size_error") return "";
  const details = "details" in error ? error.details : undefined;
  const need = typeof details === "object" && details !== null && "n_prompt_tokens" in details
    ? Number(details.n_prompt_tokens)
    : NaN;
  return Number.isFinite(need) ? `-c ${need + 256} or more makes room` : "-c N makes room";
}

/** An error is one line, whatever a library put into it. */
function oneLine(text: string): string {
  return text.trim().split(/\s*[\r\n]+\s*/).filter((line) => line !== "").join(" ");
}

/**
 * Runs `use`, whose plain errors (from a plan or JSON text) are the user's: each becomes a {@linkcode UsageError}.
 *
 * @param where What the message begins with, e.g. a flag's name; "" for nothing.
 * @param use What may throw.
 */
export function asUsage<T>(where: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    const wrong = error instanceof SyntaxError || error instanceof RangeError ||
      error instanceof TypeError;
    if (!wrong) throw error;
    throw new UsageError(where === "" ? error.message : `${where}: ${error.message}`, {
      cause: error,
    });
  }
}

/**
 * Why a file could not be used, in words.
 *
 * @param doing What was attempted, e.g. `read`.
 * @param path The file.
 * @param error What was thrown.
 */
export function fileError(doing: string, path: string, error: unknown): Failure {
  const why = error instanceof Deno.errors.NotFound
    ? "no such file"
    : error instanceof Deno.errors.PermissionDenied || error instanceof Deno.errors.NotCapable
    ? "permission denied"
    : error instanceof Deno.errors.IsADirectory
    ? "it is a folder"
    : error instanceof Error
    ? error.message.replace(/ \(os error \d+\).*$/s, "")
    : String(error);
  return new Failure(`cannot ${doing} ${path}: ${why}`, { cause: error });
}
