import { parseArgs } from "@std/cli";
import { UsageError } from "./errors.ts";
import {
  type CommandName,
  COMMANDS,
  commandsOf,
  findFlag,
  type Flag,
  type FlagId,
  FLAGS,
} from "./flags.ts";
import { suggest } from "./suggest.ts";

/** A command line, taken apart and checked. */
export class Flags {
  readonly #values: Record<string, unknown>;
  readonly #origins: ReadonlyMap<string, string>;

  /**
   * @param command The command; `run` if none was named.
   * @param topics What follows `help`.
   * @param warnings What was odd but is no error.
   * @param values Values by flag id.
   * @param origins For each id given, the name that gave it: a flag or an environment variable.
   */
  constructor(
    readonly command: CommandName,
    readonly topics: readonly string[],
    readonly warnings: readonly string[],
    values: Record<string, unknown>,
    origins: ReadonlyMap<string, string>,
  ) {
    this.#values = values;
    this.#origins = origins;
  }

  /** Whether a flag was given, here or by its environment variable. */
  has(id: FlagId): boolean {
    return this.#origins.has(id);
  }

  /** Whether a switch is on. */
  on(id: FlagId): boolean {
    return this.#values[id] === true;
  }

  /** The value of a flag, as it was written. */
  text(id: FlagId): string | undefined {
    const value = this.#values[id];
    return typeof value === "string" ? value.slice(1) : undefined;
  }

  /** The values of a flag that may be given several times. */
  all(id: FlagId): string[] {
    const value = this.#values[id];
    return Array.isArray(value) ? value.map((text) => String(text).slice(1)) : [];
  }

  /** The value of a numeric flag. */
  number(id: FlagId): number | undefined {
    const text = this.text(id);
    return text === undefined ? undefined : Number(text);
  }

  /** The name by which a flag was given, for messages. */
  name(id: FlagId): string {
    return this.#origins.get(id) ?? flagById(id).names[0]!;
  }
}

function flagById(id: FlagId): Flag {
  return (FLAGS as readonly Flag[]).find((flag) => flag.id === id)!;
}

/** Flags of llama.cpp that ask for what this version does not have, and what to say of them. */
const ABSENT: readonly { names: readonly string[]; why: string }[] = [
  {
    names: ["--path", "--media-path", "--slot-save-path", "--ssl-key-file", "--ssl-cert-file"],
    why: "the server gives out no files and keeps none; a proxy before it speaks TLS",
  },
  {
    names: [
      ...["-hf", "-hfr", "--hf-repo", "-hff", "--hf-file", "-hfd", "-hfrd", "--hf-repo-draft"],
      ...["-hft", "--hf-token", "-mu", "--model-url", "-dr", "--docker-repo"],
    ],
    why:
      "there is no download in this version; fetch the GGUF file yourself and give it with -m FILE",
  },
];

interface Given {
  /** As written, for messages. */
  written: string;
  /** One of the table's names. */
  name: string;
  value: string | undefined;
  /** It stands alone, and may have a value. */
  bare?: boolean;
}

/** `["a", "b", "c"]` as `a, b or c`. */
const oneOf = (words: readonly string[]): string =>
  `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

const isCommand = (word: string): word is CommandName =>
  (COMMANDS as readonly string[]).includes(word);

/**
 * Takes a command line apart as llama.cpp does: a short flag of several letters is one flag, and a value is the next
 * argument whatever it looks like. `--flag=value` is read as well.
 *
 * @param args The arguments.
 * @param env Looks up an environment variable.
 * @returns What was asked for.
 * @throws {UsageError} If a command or a flag is unknown, is of another command, or its value is wrong.
 */
export function parseFlags(
  args: readonly string[],
  env: (name: string) => string | undefined = () => undefined,
): Flags {
  const { command, topics, given } = walk(args);
  const warnings: string[] = [];
  const origins = new Map<string, string>();
  const counts = new Map<string, number>();
  const plain: string[] = [];
  for (const { name, written, value } of given) {
    const flag = findFlag(name, command);
    if (flag === undefined) {
      const owners = commandsOf(name).join(", ");
      throw new UsageError(
        `${written} is no flag of "${command}"; it belongs to: ${owners} (see "help ${command}")`,
      );
    }
    if (value !== undefined) check(flag, written, value);
    origins.set(flag.id, written);
    const count = (counts.get(flag.id) ?? 0) + 1;
    counts.set(flag.id, count);
    if (count === 2 && value !== undefined && !flag.repeats) {
      warnings.push(`${written} is given more than once; only the last value counts`);
    }
    plain.push(token(flag, value));
  }
  for (const flag of FLAGS as readonly Flag[]) {
    if (flag.env === undefined || !flag.commands.includes(command) || origins.has(flag.id)) {
      continue;
    }
    const value = env(flag.env);
    if (value === undefined || value === "") continue;
    check(flag, flag.env, value);
    origins.set(flag.id, flag.env);
    plain.push(token(flag, value));
  }
  const idsOf = (some: (flag: Flag) => boolean) => FLAGS.filter(some).map((flag) => flag.id);
  const values: Record<string, unknown> = parseArgs(plain, {
    string: idsOf((flag) => flag.kind !== "switch"),
    boolean: idsOf((flag) => flag.kind === "switch"),
    collect: idsOf((flag) => flag.repeats === true),
  });
  return new Flags(command, topics, warnings, values, origins);
}

/** A flag in the one form that `parseArgs` reads in one way: no value is empty, and none looks like a number. */
function token(flag: Flag, value: string | undefined): string {
  return value === undefined ? `--${flag.id}` : `--${flag.id}==${value}`;
}

function walk(
  args: readonly string[],
): { command: CommandName; topics: string[]; given: Given[] } {
  let command: CommandName | undefined;
  const topics: string[] = [];
  const given: Given[] = [];
  const word = (arg: string, before?: string): void => {
    if (command === undefined && isCommand(arg)) command = arg;
    else if (command === "help") topics.push(arg);
    else {
      const last = given.at(-1);
      const after = last?.bare && last.written === before ? last : undefined;
      throw new UsageError(strayMessage(arg, command, after));
    }
  };
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === "--") {
      for (const rest of args.slice(i + 1)) word(rest);
      break;
    }
    if (!arg.startsWith("-") || arg === "-") {
      word(arg, args[i - 1]);
      continue;
    }
    const { written, name, value } = split(arg);
    const owners = commandsOf(name);
    if (owners.length === 0) throw new UsageError(unknownMessage(written, command));
    const flag = findFlag(name, command ?? owners[0]!) ?? findFlag(name, owners[0]!)!;
    if (flag.kind === "switch") {
      if (value !== undefined) {
        throw new UsageError(`${written} takes no value, but "${value}" was given`);
      }
      given.push({ written, name, value: undefined });
    } else if (value !== undefined) {
      given.push({ written, name, value });
    } else if (flag.bare !== undefined) {
      const next = args[i + 1];
      const taken = next !== undefined && flag.choices!.includes(next);
      if (taken) i++;
      given.push({ written, name, value: taken ? next : flag.bare, bare: !taken });
    } else {
      const next = args[++i];
      if (next === undefined) throw new UsageError(`${written} needs a value: ${flag.value}`);
      given.push({ written, name, value: next });
    }
  }
  return { command: command ?? "run", topics, given };
}

/** `--flag=value` in two; llama.cpp also reads `--top_k` for `--top-k`. */
function split(arg: string): { written: string; name: string; value: string | undefined } {
  const eq = arg.indexOf("=");
  const written = eq < 0 ? arg : arg.slice(0, eq);
  const name = written.startsWith("--") ? written.replaceAll("_", "-") : written;
  return { written, name, value: eq < 0 ? undefined : arg.slice(eq + 1) };
}

function strayMessage(
  arg: string,
  command: CommandName | undefined,
  after: Given | undefined,
): string {
  // After a flag that may stand alone the word can only be a value that it does not have.
  const choices = after && findFlag(after.name, command ?? "run")?.choices;
  if (choices !== undefined) {
    return `${after!.written} must be ${oneOf(choices)}, not ${JSON.stringify(arg)}`;
  }
  if (/\.gguf$/i.test(arg)) return `unexpected argument "${arg}"; a model is given as -m ${arg}`;
  if (command !== undefined) {
    const hint = command === "run" || command === "logits" ? "; a prompt is given as -p TEXT" : "";
    return `unexpected argument "${arg}"${hint}`;
  }
  const near = suggest(arg, COMMANDS);
  if (near === undefined && /\s/.test(arg)) {
    return `unexpected argument "${arg}"; a prompt is given as -p TEXT`;
  }
  const hint = near === undefined
    ? `the commands are ${COMMANDS.join(", ")}`
    : `did you mean "${near}"?`;
  return `unknown command "${arg}"; ${hint}`;
}

function unknownMessage(written: string, command: CommandName | undefined): string {
  const own: string[] = [];
  const other: string[] = [];
  for (const flag of FLAGS as readonly Flag[]) {
    if (flag.help === "") continue;
    (flag.commands.includes(command ?? "run") ? own : other).push(...flag.names);
  }
  const absent = ABSENT.find(({ names }) => names.includes(written));
  if (absent !== undefined) return `${written}: ${absent.why}`;
  const near = suggest(written, own) ?? suggest(written, other);
  return near === undefined
    ? `unknown flag ${written} (see "help${command ? ` ${command}` : ""}")`
    : `unknown flag ${written}; did you mean ${near}?`;
}

function check(flag: Flag, written: string, value: string): void {
  if (flag.choices !== undefined && !flag.choices.includes(value)) {
    throw new UsageError(
      `${written} must be ${oneOf(flag.choices)}, not ${JSON.stringify(value)}`,
    );
  }
  if (flag.kind === "text" && value === "" && /^FILE\b/.test(flag.value ?? "")) {
    throw new UsageError(`${written} needs the name of a file, not ""`);
  }
  if (flag.kind === "text" || flag.kind === "switch") return;
  const whole = flag.kind === "integer";
  const isNumber = whole
    ? /^[+-]?\d+$/.test(value)
    : value.trim() !== "" && Number.isFinite(Number(value));
  const { min = whole ? -(2 ** 31) : -Infinity, max = whole ? 2 ** 31 - 1 : Infinity } = flag;
  const n = Number(value);
  if (isNumber && n >= min && n <= max) return;
  const range = flag.min !== undefined && flag.max !== undefined
    ? ` in ${flag.min}..${flag.max}`
    : flag.min !== undefined
    ? ` from ${flag.min}`
    : "";
  throw new UsageError(
    `${written} must be a ${whole ? "whole number" : "number"}${range}, not ${
      JSON.stringify(value)
    }`,
  );
}
