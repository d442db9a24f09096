import { type Key, KeyReader, LineBuffer } from "./line_buffer.ts";
import type { Shell } from "./shell.ts";
import { columns } from "./text_width.ts";

/** The result of reading a line: the line, an empty one after Ctrl-C, or the end. */
export type Line = { kind: "line"; text: string } | { kind: "interrupt" } | { kind: "end" };

/** Where lines come from. */
export interface LineSource {
  /** Reads the next line. */
  next(): Promise<Line>;
}

/** Lines, and whether they are typed in a terminal. */
export interface TerminalLines extends LineSource {
  /** They are. */
  readonly isTerminal: boolean;
}

/**
 * Lines of standard input: edited in a terminal, otherwise as they come.
 *
 * @param shell Where to draw.
 * @param prompt Shown before a line that is edited.
 */
export function lineSource(shell: Shell, prompt: string): TerminalLines {
  const isTerminal = Deno.stdin.isTerminal() && Deno.stderr.isTerminal();
  const source = isTerminal ? new LineEditor(shell, prompt) : new PlainLines(shell);
  return { isTerminal, next: () => source.next() };
}

/** Rejects when the program is to stop. */
function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Lines of a file or a pipe. */
class PlainLines implements LineSource {
  readonly #stopped: Promise<never>;
  readonly #decoder = new TextDecoder();
  readonly #buffer = new Uint8Array(1 << 16);
  #rest = "";
  #isEnd = false;

  constructor(shell: Shell) {
    this.#stopped = stopped(shell.signal);
    this.#stopped.catch(() => {});
  }

  async next(): Promise<Line> {
    while (true) {
      const end = this.#rest.indexOf("\n");
      if (end >= 0) {
        const text = this.#rest.slice(0, end).replace(/\r$/, "");
        this.#rest = this.#rest.slice(end + 1);
        return { kind: "line", text };
      }
      if (this.#isEnd) {
        const text = this.#rest;
        this.#rest = "";
        return text === "" ? { kind: "end" } : { kind: "line", text };
      }
      const n = await Promise.race([Deno.stdin.read(this.#buffer), this.#stopped]);
      this.#isEnd = n === null;
      this.#rest += n === null
        ? this.#decoder.decode()
        : this.#decoder.decode(this.#buffer.subarray(0, n), { stream: true });
    }
  }
}

/**
 * Lines that are edited in a terminal. From the beginning the terminal keeps what is typed, without showing it, so that
 * nothing is lost while no line is read, Ctrl-D least of all; Ctrl-C is a signal except while a line is edited.
 *
 * (`node:readline` was tried: it sends each line of a pasted text separately, with remnants of the marks around it, and
 * keeps the line after Ctrl-C.)
 */
class LineEditor implements LineSource {
  readonly #shell: Shell;
  readonly #prompt: string;
  readonly #stopped: Promise<never>;
  readonly #line = new LineBuffer();
  readonly #keys = new KeyReader();
  readonly #decoder = new TextDecoder();
  readonly #buffer = new Uint8Array(4096);
  /** Typed, but not yet looked at. */
  readonly #typed: Key[] = [];
  /** Nothing has been read so far. */
  #isFirst = true;
  /** Row of the cursor, counted from the row of the prompt. */
  #row = 0;

  constructor(shell: Shell, prompt: string) {
    this.#shell = shell;
    this.#prompt = prompt;
    this.#stopped = stopped(shell.signal);
    this.#stopped.catch(() => {});
    Deno.stdin.setRaw(true, { cbreak: true });
    shell.onExit = () => {
      this.#pastes(false);
      Deno.stdin.setRaw(false);
    };
  }

  async next(): Promise<Line> {
    this.#line.clear();
    this.#row = 0;
    Deno.stdin.setRaw(true);
    this.#pastes(true);
    try {
      this.#draw();
      while (true) {
        if (this.#typed.length === 0) {
          const n = await Promise.race([Deno.stdin.read(this.#buffer), this.#stopped]);
          if (n === null) return { kind: "end" };
          const text = this.#decoder.decode(this.#buffer.subarray(0, n), { stream: true });
          // A Ctrl-D from before the terminal was set, while Deno started, comes as a zero on Linux.
          this.#typed.push(
            ...this.#keys.read(this.#isFirst ? text.replaceAll("\0", "\x04") : text),
          );
          this.#isFirst = false;
        }
        for (let key = this.#typed.shift(); key !== undefined; key = this.#typed.shift()) {
          if (this.#line.apply(key)) continue;
          if (key.name === "clear-screen") {
            this.#shell.err("\x1b[H\x1b[2J");
            this.#row = 0;
          } else if (key.name === "enter") {
            return { kind: "line", text: this.#finish() };
          } else if (key.name === "interrupt") {
            this.#finish();
            return { kind: "interrupt" };
          } else if (key.name === "end-of-file") {
            if (this.#line.text === "") return { kind: "end" };
            this.#line.apply({ name: "delete" });
          }
        }
        this.#draw();
      }
    } finally {
      Deno.stdin.setRaw(true, { cbreak: true });
      this.#pastes(false);
      this.#shell.err("\r\n");
    }
  }

  /** Whether the terminal marks pasted text. */
  #pastes(on: boolean): void {
    this.#shell.err(on ? "\x1b[?2004h" : "\x1b[?2004l");
  }

  #finish(): string {
    const { text } = this.#line;
    this.#line.apply({ name: "end" });
    this.#draw();
    this.#line.remember(text);
    return text;
  }

  /** Redraws prompt and line, over as many rows as they take, and puts the cursor in its place. */
  #draw(): void {
    const width = terminalWidth();
    let row = 0;
    let column = 0;
    const put = (w: number) => {
      if (column + w > width) [row, column] = [row + 1, 0];
      column += w;
    };
    for (const _ of this.#prompt) put(1);
    const { chars, cursor } = this.#line;
    let at = { row, column };
    let text = "";
    for (const [i, char] of chars.entries()) {
      if (i === cursor) at = { row, column };
      const shown = char === "\n" ? "↵" : char;
      text += shown;
      put(columns(shown));
    }
    if (cursor === chars.length) at = { row, column };
    let out = (this.#row > 0 ? `\x1b[${this.#row}A` : "") + "\r\x1b[J" + this.#prompt + text;
    if (column === width) {
      out += "\r\n"; // otherwise the terminal delays the new row
      [row, column] = [row + 1, 0];
    }
    if (at.column === width) at = { row: at.row + 1, column: 0 };
    if (row > at.row) out += `\x1b[${row - at.row}A`;
    out += "\r" + (at.column > 0 ? `\x1b[${at.column}C` : "");
    this.#row = at.row;
    this.#shell.err(out);
  }
}

function terminalWidth(): number {
  try {
    return Math.max(8, Deno.consoleSize().columns);
  } catch {
    return 80;
  }
}
