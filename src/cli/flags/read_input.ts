import { fstatSync } from "node:fs";
import { fileError } from "../errors.ts";

/** How long a pipe may be silent before it counts as having no writer, in milliseconds. */
const SILENCE_MS = 200;

/** Bytes of a text at most: more is a device that never ends, or a mistake. */
const MAX_BYTES = 256 << 20;

/**
 * Reads a text file whole.
 *
 * @param path The file; "-" is standard input.
 * @returns Its text.
 * @throws {Failure} If it cannot be read, is not UTF-8 or does not end within 256 MiB.
 */
export async function readInput(path: string): Promise<string> {
  try {
    const { readable } = path === "-" ? Deno.stdin : await Deno.open(path);
    return decode(await readAll(readable));
  } catch (error) {
    const why = error instanceof TypeError ? new Error("it is not UTF-8 text") : error;
    throw fileError("read", path === "-" ? "standard input" : path, why);
  }
}

async function readAll(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<Uint8Array> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const part of stream) {
    bytes += part.length;
    if (bytes > MAX_BYTES) throw new Error("it is longer than 256 MiB");
    parts.push(part);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** What standard input holds when no flag asked for it. */
export interface Piped {
  /** Its text; "" if there is none. */
  text: string;
  /** Whether it is an open pipe that nothing came through. */
  silent: boolean;
}

/**
 * Reads standard input whole, if it is a file, or a pipe that somebody writes to. A terminal and /dev/null have no text,
 * and there is no waiting for a pipe that is merely open, as in CI.
 *
 * @returns Its text, if any.
 * @throws {Failure} If it cannot be read or is not UTF-8.
 */
export async function readPiped(): Promise<Piped> {
  const kind = standardInput();
  if (kind === "other") return { text: "", silent: false };
  if (kind === "file") return { text: await readInput("-"), silent: false };
  const chunks: Uint8Array[] = [];
  const buffer = new Uint8Array(1 << 16);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<"silence">((resolve) =>
    timer = setTimeout(resolve, SILENCE_MS, "silence")
  );
  try {
    let n = await Promise.race([Deno.stdin.read(buffer), silence]);
    if (n === "silence") return { text: "", silent: true };
    while (n !== null) {
      chunks.push(buffer.slice(0, n));
      n = await Deno.stdin.read(buffer);
    }
    return { text: decode(await new Blob(chunks as BlobPart[]).bytes()), silent: false };
  } catch (error) {
    const why = error instanceof TypeError ? new Error("it is not UTF-8 text") : error;
    throw fileError("read", "standard input", why);
  } finally {
    clearTimeout(timer);
  }
}

function standardInput(): "file" | "pipe" | "other" {
  try {
    if (Deno.stdin.isTerminal()) return "other";
    const stat = fstatSync(0);
    return stat.isFile() ? "file" : stat.isFIFO() || stat.isSocket() ? "pipe" : "other";
  } catch {
    return "other"; // closed
  }
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}
