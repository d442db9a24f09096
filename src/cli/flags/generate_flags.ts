import { EngineError, type GenerateOptions } from "../../engine/mod.ts";
import { explainFault } from "../../server/checks/explain_fault.ts";
import { UsageError } from "../errors.ts";
import type { FlagId } from "./flags.ts";
import type { Flags } from "./parse_flags.ts";
import { readInput } from "./read_input.ts";
import { unescapeText } from "./unescape.ts";

/**
 * A text from the command line, with its escapes read unless `--no-escape` is given.
 *
 * @param flags Read for that flag and `--no-escape`.
 * @param id Which flag.
 */
function escapedText(flags: Flags, id: FlagId): string | undefined {
  const text = flags.text(id);
  return text === undefined || flags.off("escape") ? text : unescapeText(text);
}

/**
 * The prompt of `-p` or `-f`. A file's text is taken as it is, except for one newline at its end, as in llama.cpp.
 *
 * @param flags Read for `-p` and `-f`.
 * @returns The prompt; undefined if there is none.
 */
export async function promptText(flags: Flags): Promise<string | undefined> {
  const file = flags.text("file");
  if (file === undefined) return escapedText(flags, "prompt");
  if (flags.has("prompt")) throw new UsageError("-p and -f exclude each other");
  return (await readInput(file)).replace(/\r?\n$/, "");
}

/**
 * The system message of `-sys` or `-sysf`; a file's text is read as for `-f`.
 *
 * @param flags Read for `-sys` and `-sysf`.
 * @returns The message; undefined if there is none.
 */
export async function systemText(flags: Flags): Promise<string | undefined> {
  if (!flags.has("systemPromptFile")) return escapedText(flags, "systemPrompt");
  return (await textOrFile(flags, "systemPrompt", "systemPromptFile"))?.replace(/\r?\n$/, "");
}

/**
 * A text that is given directly by one flag or in a file by another.
 *
 * @param flags Read for both of them.
 * @param direct The flag that has the text.
 * @param file The flag that has the file's name.
 */
export async function textOrFile(
  flags: Flags,
  direct: FlagId,
  file: FlagId,
): Promise<string | undefined> {
  const path = flags.text(file);
  if (path === undefined) return flags.text(direct);
  if (flags.has(direct)) {
    throw new UsageError(`${flags.name(direct)} and ${flags.name(file)} exclude each other`);
  }
  return await readInput(path);
}

/**
 * The grammar or the JSON schema that answers must follow.
 *
 * @param flags Read for `--grammar`, `--json-schema` and their files.
 * @throws {UsageError} If both are given, or the schema is not a JSON object.
 */
export async function grammarOf(
  flags: Flags,
): Promise<{ grammar: string | undefined; schema: Record<string, unknown> | undefined }> {
  const grammar = await textOrFile(flags, "grammar", "grammarFile");
  const text = await textOrFile(flags, "jsonSchema", "jsonSchemaFile");
  if (grammar !== undefined && text !== undefined) {
    throw new UsageError("a grammar and a JSON schema exclude each other");
  }
  const name = flags.name(flags.has("jsonSchema") ? "jsonSchema" : "jsonSchemaFile");
  return { grammar, schema: text === undefined ? undefined : jsonObject(name, text) };
}

/**
 * The length, sampling and stop strings that the command line asks for.
 *
 * @param flags Read for those of `generate()`.
 * @throws {UsageError} If the grammar and the schema are both given, or the schema is no JSON.
 */
export async function generateOptions(flags: Flags): Promise<GenerateOptions> {
  const { grammar, schema } = await grammarOf(flags);
  const stop = flags.all("stop").map((text) => flags.off("escape") ? text : unescapeText(text));
  if (stop.includes("")) throw new UsageError(`${flags.name("stop")} must not be empty`);
  const { maxTokens, topK, ...values } = flags.values("generate");
  return {
    ...values,
    // -1 and -2 set no limit; the context is one in any case.
    maxTokens: maxTokens === undefined || maxTokens < 0 ? undefined : maxTokens,
    topK: topK === undefined ? undefined : Math.max(0, topK), // -1 keeps all, as 0 does
    stop: stop.length > 0 ? stop : undefined,
    grammar,
    jsonSchema: schema,
  };
}

/**
 * Reads a text from the command line as a JSON object.
 *
 * @param name The flag, for messages.
 * @param text The text.
 * @throws {UsageError} If it is not one.
 */
export function jsonObject(name: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new UsageError(`${name}: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new UsageError(`${name} must be a JSON object`);
}

/**
 * A generation's error; where the engine could not use the command line's grammar or schema, one that names
 * its flag.
 *
 * @param flags Read for how the grammar or the schema was given.
 * @param error What was thrown.
 */
export function flagFault(flags: Flags, error: unknown): unknown {
  if (!(error instanceof EngineError) || error.fatal) return error;
  const given = (["grammar", "grammarFile", "jsonSchema", "jsonSchemaFile"] as const)
    .find((id) => flags.has(id));
  if (given === undefined) return error;
  const body = given.startsWith("grammar") ? { grammar: "given" } : { json_schema: "given" };
  const said = explainFault(error.message, body);
  if (said === undefined) return error;
  const what = said.message.replace(`"${said.param}"`, flags.name(given));
  return new UsageError(what, { cause: error });
}
