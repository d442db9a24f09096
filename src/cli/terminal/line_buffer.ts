import { graphemes } from "./text_width.ts";

/** A key, or typed or pasted text. */
export type Key =
  | { name: "text"; text: string }
  | { name: KeyName };

/** Names of keys that do something. */
export type KeyName =
  | "enter"
  | "newline"
  | "interrupt"
  | "end-of-file"
  | "backspace"
  | "delete"
  | "left"
  | "right"
  | "word-left"
  | "word-right"
  | "home"
  | "end"
  | "up"
  | "down"
  | "kill-line"
  | "kill-to-start"
  | "kill-word"
  | "clear-screen"
  | "unknown";

const CONTROL: Readonly<Record<string, KeyName>> = {
  "\x01": "home",
  "\x02": "left",
  "\x03": "interrupt",
  "\x04": "end-of-file",
  "\x05": "end",
  "\x06": "right",
  "\x08": "backspace",
  "\n": "enter",
  "\x0b": "kill-line",
  "\x0c": "clear-screen",
  "\r": "enter",
  "\x0e": "down",
  "\x10": "up",
  "\x15": "kill-to-start",
  "\x17": "kill-word",
  "\x7f": "backspace",
};

const SEQUENCES: Readonly<Record<string, KeyName>> = {
  "A": "up",
  "B": "down",
  "C": "right",
  "D": "left",
  "H": "home",
  "F": "end",
  "1~": "home",
  "7~": "home",
  "4~": "end",
  "8~": "end",
  "3~": "delete",
  "1;5C": "word-right",
  "1;5D": "word-left",
  "1;3C": "word-right",
  "1;3D": "word-left",
};

const META: Readonly<Record<string, KeyName>> = {
  "b": "word-left",
  "f": "word-right",
  "\r": "newline",
  "\n": "newline",
  "\x7f": "kill-word",
};

const PASTE_END = "\x1b[201~";

/** Turns what a terminal in raw mode sends into keys; sequences may come in parts. */
export class KeyReader {
  #rest = "";
  #isPaste = false;

  /**
   * Takes the next characters.
   *
   * @param text What the terminal sent.
   * @returns The keys that are complete.
   */
  read(text: string): Key[] {
    this.#rest += text;
    const keys: Key[] = [];
    while (this.#rest !== "") {
      const key = this.#isPaste ? this.#paste() : this.#next();
      if (key === undefined) break;
      if (key.name !== "text" || key.text !== "") keys.push(key);
    }
    return keys;
  }

  #paste(): Key | undefined {
    const end = this.#rest.indexOf(PASTE_END);
    if (end < 0) return undefined;
    const text = this.#rest.slice(0, end).replace(/\r\n?/g, "\n");
    this.#rest = this.#rest.slice(end + PASTE_END.length);
    this.#isPaste = false;
    return { name: "text", text: printable(text) };
  }

  #next(): Key | undefined {
    const first = this.#rest[0]!;
    if (first === "\x1b") return this.#escape();
    const control = CONTROL[first];
    if (control !== undefined) {
      this.#rest = this.#rest.slice(1);
      return { name: control };
    }
    // deno-lint-ignore no-control-regex
    const text = /^[^\x00-\x1f\x7f]+/.exec(this.#rest)?.[0] ?? "";
    this.#rest = this.#rest.slice(text.length || 1);
    return text === "" ? { name: "unknown" } : { name: "text", text };
  }

  #escape(): Key | undefined {
    const second = this.#rest[1];
    if (second === undefined) return undefined;
    if (second !== "[" && second !== "O") {
      this.#rest = this.#rest.slice(2);
      return { name: META[second] ?? "unknown" };
    }
    // deno-lint-ignore no-control-regex
    const sequence = /^\x1b[[O]([0-9;<=>?]*[ -/]*[@-~])/.exec(this.#rest);
    if (sequence === null) {
      if (this.#rest.length < 32) return undefined;
      this.#rest = "";
      return { name: "unknown" };
    }
    this.#rest = this.#rest.slice(sequence[0].length);
    if (sequence[1] === "200~") {
      this.#isPaste = true;
      return { name: "text", text: "" };
    }
    return { name: SEQUENCES[sequence[1]!] ?? "unknown" };
  }
}

function printable(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replaceAll("\t", "    ").replace(/[\x00-\x09\x0b-\x1f\x7f]/g, "");
}

/** A line being edited, and the history of lines before it. */
export class LineBuffer {
  /** The line, in pieces that each look like one character. */
  #chars: string[] = [];
  #cursor = 0;
  readonly #history: string[] = [];
  /** The unfinished line from before the history was entered. */
  #draft = "";
  #at = 0;

  /** The line. */
  get text(): string {
    return this.#chars.join("");
  }

  /** The line's characters. */
  get chars(): readonly string[] {
    return this.#chars;
  }

  /** Where the cursor is, in characters. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Begins an empty line. */
  clear(): void {
    this.#set("");
    this.#at = this.#history.length;
    this.#draft = "";
  }

  /**
   * Adds a line to the history, unless it is empty or the same as the last one.
   *
   * @param text The line.
   */
  remember(text: string): void {
    if (text.trim() !== "" && this.#history.at(-1) !== text) this.#history.push(text);
    this.#at = this.#history.length;
  }

  /**
   * Applies a key to the line.
   *
   * @param key The key.
   * @returns Whether it was an editing key.
   */
  apply(key: Key): boolean {
    switch (key.name) {
      case "text":
        this.#insert(key.text);
        return true;
      case "newline":
        this.#insert("\n");
        return true;
      case "backspace":
        this.#remove(this.#cursor - 1, this.#cursor);
        return true;
      case "delete":
        this.#remove(this.#cursor, this.#cursor + 1);
        return true;
      case "left":
        this.#cursor = Math.max(0, this.#cursor - 1);
        return true;
      case "right":
        this.#cursor = Math.min(this.#chars.length, this.#cursor + 1);
        return true;
      case "word-left":
        this.#cursor = this.#wordStart();
        return true;
      case "word-right":
        this.#cursor = this.#wordEnd();
        return true;
      case "home":
        this.#cursor = 0;
        return true;
      case "end":
        this.#cursor = this.#chars.length;
        return true;
      case "kill-line":
        this.#remove(this.#cursor, this.#chars.length);
        return true;
      case "kill-to-start":
        this.#remove(0, this.#cursor);
        return true;
      case "kill-word":
        this.#remove(this.#wordStart(), this.#cursor);
        return true;
      case "up":
        this.#walk(-1);
        return true;
      case "down":
        this.#walk(1);
        return true;
      default:
        return false;
    }
  }

  #set(text: string): void {
    this.#chars = graphemes(text);
    this.#cursor = this.#chars.length;
  }

  #insert(text: string): void {
    const before = this.#chars.slice(0, this.#cursor).join("") + text;
    const after = this.#chars.slice(this.#cursor).join("");
    // Split again: a combining mark joins the character before it.
    this.#chars = graphemes(before + after);
    this.#cursor = Math.min(graphemes(before).length, this.#chars.length);
  }

  #remove(from: number, to: number): void {
    const start = Math.max(0, from);
    this.#chars.splice(start, Math.max(0, to - start));
    this.#cursor = Math.min(start, this.#chars.length);
  }

  #wordStart(): number {
    let p = this.#cursor;
    while (p > 0 && /^\s/.test(this.#chars[p - 1]!)) p--;
    while (p > 0 && !/^\s/.test(this.#chars[p - 1]!)) p--;
    return p;
  }

  #wordEnd(): number {
    let p = this.#cursor;
    while (p < this.#chars.length && /^\s/.test(this.#chars[p]!)) p++;
    while (p < this.#chars.length && !/^\s/.test(this.#chars[p]!)) p++;
    return p;
  }

  #walk(step: number): void {
    const to = this.#at + step;
    if (to < 0 || to > this.#history.length) return;
    if (this.#at === this.#history.length) this.#draft = this.text;
    this.#at = to;
    this.#set(this.#history[to] ?? this.#draft);
  }
}
