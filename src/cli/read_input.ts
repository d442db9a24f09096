import { fileError } from "./errors.ts";

/**
 * Reads a text file whole.
 *
 * @param path The file; "-" is standard input.
 * @returns Its text.
 * @throws {Failure} If it cannot be read or is no UTF-8.
 */
export async function readInput(path: string): Promise<string> {
  try {
    const bytes = path === "-"
      ? await new Response(Deno.stdin.readable).bytes()
      : await Deno.readFile(path);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    const why = error instanceof TypeError ? new Error("it is no UTF-8 text") : error;
    throw fileError("read", path === "-" ? "standard input" : path, why);
  }
}
