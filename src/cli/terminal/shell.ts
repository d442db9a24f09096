import { styleText } from "node:util";
import { environment } from "../environment.ts";
import { OutputClosed } from "../errors.ts";

/** Where a command writes and how it is stopped. */
export interface Shell {
  /** Aborted by Ctrl-C or a request to end. */
  readonly signal: AbortSignal;
  /** Colours on standard error. */
  readonly colour: boolean;
  /** Say more: llama.cpp's log, stacks of errors. */
  verbose: boolean;
  /** Say less: no boot log, no speed. */
  quiet: boolean;
  /** Called on Ctrl-C instead of ending the program; returns false to end it after all. */
  onInterrupt: (() => boolean) | undefined;
  /** Called on Ctrl-C and on a request to end, where the command ends by itself; returns false to end it at once. */
  onTerminate: (() => boolean) | undefined;
  /** Called before the program ends, however it ends, to restore the terminal. */
  onExit: (() => void) | undefined;
  /** Writes results to standard output. */
  out(data: string | Uint8Array): Promise<void>;
  /** Writes text to standard error. */
  err(text: string): void;
  /** A line on standard error: "warning: ...", even with `--quiet`. */
  warn(message: string): void;
  /** A line on standard error: "note: ...", unless with `--quiet`. */
  note(message: string): void;
}

/** ANSI styles; each is the text itself where colours are off. */
export interface Styles {
  /** Bold. */
  bold(text: string): string;
  /** Faint. */
  dim(text: string): string;
  /** Red, for errors. */
  red(text: string): string;
  /** Yellow, for warnings. */
  yellow(text: string): string;
  /** Green, for what is all right. */
  green(text: string): string;
  /** Cyan, for what repeats. */
  cyan(text: string): string;
}

/**
 * Styles for a stream.
 *
 * @param on Whether the stream shows colours.
 */
export function styles(on: boolean): Styles {
  const style = (format: keyof Styles) => (text: string) =>
    on && text !== "" ? styleText(format, text, { validateStream: false }) : text;
  return {
    bold: style("bold"),
    dim: style("dim"),
    red: style("red"),
    yellow: style("yellow"),
    green: style("green"),
    cyan: style("cyan"),
  };
}

/** Whether a stream of this process shows colours: a terminal, and NO_COLOR is not set. */
export function showsColour(stream: { isTerminal(): boolean }): boolean {
  return stream.isTerminal() && !Deno.noColor && environment("TERM") !== "dumb";
}

/**
 * The process's own standard streams as a {@linkcode Shell}.
 *
 * @param signal Aborted when the program is to stop.
 */
export function processShell(signal: AbortSignal): Shell {
  const encoder = new TextEncoder();
  const colour = showsColour(Deno.stderr);
  const { yellow } = styles(colour);
  const shell: Shell = {
    signal,
    colour,
    verbose: false,
    quiet: false,
    onInterrupt: undefined,
    onTerminate: undefined,
    onExit: undefined,
    async out(data) {
      let bytes = typeof data === "string" ? encoder.encode(data) : data;
      try {
        // Awaited, so that Ctrl-C works while a slow reader holds the pipe.
        while (bytes.length > 0) bytes = bytes.subarray(await Deno.stdout.write(bytes));
      } catch (error) {
        if (error instanceof Deno.errors.BrokenPipe) throw new OutputClosed("output closed");
        throw error;
      }
    },
    err(text) {
      try {
        let bytes = encoder.encode(text);
        while (bytes.length > 0) bytes = bytes.subarray(Deno.stderr.writeSync(bytes));
      } catch {
        // Nobody listens: no reason to stop.
      }
    },
    warn: (message) => shell.err(`${yellow("warning:")} ${message}\n`),
    note(message) {
      if (!shell.quiet) shell.err(`note: ${message}\n`);
    },
  };
  return shell;
}
