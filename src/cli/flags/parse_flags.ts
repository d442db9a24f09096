import { llamaArgs } from "../../options/llama_args.ts";
import type { Scope } from "../../options/option.ts";
import { listed, parseValue, textsOf, variableOf } from "../../options/parse_value.ts";
import { optionById, optionsOf, type Values } from "../../options/table.ts";
import { asUsage, UsageError } from "../errors.ts";
import {
  type CommandName,
  COMMANDS,
  commandsOf,
  findFlag,
  type Flag,
  type FlagId,
  FLAGS,
  flagsOf,
  namesOf,
} from "./flags.ts";
import { suggest } from "./suggest.ts";

/** What gave a flag its value. */
interface Origin {
  /** The name that gave it: a flag or an environment variable. */
  readonly name: string;
  /** The texts that were given; for a switch "on" or "off". */
  readonly texts: string[];
  /** What they mean; for a flag that may not repeat, only the last counts. */
  readonly values: (boolean | number | string)[];
}

/** A command line, parsed and checked. */
export class Flags {
  readonly #given: ReadonlyMap<string, Origin>;
  readonly #inert: string[];

  /**
   * @param command The command; `run` if none was named.
   * @param topics Words after a command that takes some: what `help` is asked about, a model's name.
   * @param warnings What was odd but is not an error.
   * @param given For each id given, its values and the name that gave them.
   * @param inert Flags that were given and have no effect here.
   */
  constructor(
    readonly command: CommandName,
    readonly topics: readonly string[],
    readonly warnings: readonly string[],
    given: ReadonlyMap<string, Origin>,
    inert: string[],
  ) {
    this.#given = given;
    this.#inert = inert;
  }

  /** Whether a flag was given, here or by its environment variable. */
  has(id: FlagId): boolean {
    return this.#given.has(id);
  }

  /** Whether a switch is on. */
  on(id: FlagId): boolean {
    return this.#value(id) === true;
  }

  /** Whether a switch was switched off. */
  off(id: FlagId): boolean {
    return this.#value(id) === false;
  }

  /** The value of a flag as text; a word that stands for another value is replaced by it. */
  text(id: FlagId): string | undefined {
    const value = this.#value(id);
    return typeof value === "string" ? value : this.written(id);
  }

  /** The value of a flag, as it was written. */
  written(id: FlagId): string | undefined {
    return this.#given.get(id)?.texts.at(-1);
  }

  /** The values of a flag that may be given several times. */
  all(id: FlagId): string[] {
    return [...this.#given.get(id)?.texts ?? []];
  }

  /** The value of a numeric flag, in the library's unit. */
  number(id: FlagId): number | undefined {
    const value = this.#value(id);
    return typeof value === "number" ? value : undefined;
  }

  /** The name by which a flag was given, for messages. */
  name(id: FlagId): string {
    return this.#given.get(id)?.name ?? optionById(id).names[0]!;
  }

  /** An options object for the library, as far as flags mean the same as its options. */
  values<S extends Scope>(scope: S): Values<S> {
    const rows = optionsOf(scope).filter((row) => !row.own);
    return Object.fromEntries(
      rows.map(({ id }) => [id, this.#value(id as FlagId)]),
    ) as Values<S>;
  }

  /**
   * llama-server's arguments, from the flags that are passed on unchanged.
   *
   * @param which Chooses among the flags.
   */
  llamaArgs(which: (flag: Flag) => boolean): string[] {
    return flagsOf(this.command).filter(which).flatMap((flag) => {
      const values = this.#given.get(flag.id)?.values ?? [];
      return (flag.repeats ? values : values.slice(-1)).flatMap((value) => llamaArgs(flag, value));
    });
  }

  /** Flags that were given and have no effect here. */
  get inert(): string[] {
    return this.#inert;
  }

  #value(id: FlagId): boolean | number | string | undefined {
    return this.#given.get(id)?.values.at(-1);
  }
}

/** Flags of llama.cpp that ask for what this version does not have, and what to say about them. */
const ABSENT: readonly { names: readonly string[]; why: string }[] = [
  {
    names: ["--draft", "--draft-n", "--draft-max", "--draft-min", "--draft-n-min"],
    why: "llama.cpp no longer has it; use --spec-draft-n-max or --spec-draft-n-min",
  },
  {
    names: [
      ...["-mm", "--mmproj", "-mmu", "--mmproj-url", "--image", "--audio", "--video"],
      ...["--image-min-tokens", "--image-max-tokens"],
    ],
    why: "images and sound are not offered in this version, only text",
  },
  {
    names: [
      ...[
        "--tools",
        "--tools-runtime",
        "--mcp-servers-config",
        "--mcp-servers-json",
        "-ag",
        "--agent",
      ],
      ...["--ui-mcp-proxy", "--webui-mcp-proxy"],
    ],
    why: "the server does not run tools itself; the model's tool calls go to the client",
  },
  {
    names: ["--prompt-cache", "--prompt-cache-all", "--prompt-cache-ro", "-lcs", "-lcd"],
    why: "prompts are not saved to files; the library saves a context's state: saveState()",
  },
  { names: ["--list-devices"], why: 'the command "doctor" shows what computes' },
  {
    names: ["--models-dir", "--models-preset", "--models-autoload", "--no-models-autoload"],
    why:
      "a server has one model in this version, and a name for each plan: -m FILE, --alias NAME=SPEC",
  },
  {
    names: ["--path", "--media-path", "--slot-save-path", "--ssl-key-file", "--ssl-cert-file"],
    why: "the server neither serves nor stores files; for TLS, put a proxy in front of it",
  },
  {
    names: [
      ...["-hfd", "-hfrd", "--hf-repo-draft", "--spec-draft-hf", "-dr", "--docker-repo"],
    ],
    why:
      "a draft model is given by its file: -md FILE; the command pull fetches it and prints its path",
  },
];

interface Given {
  /** As written, for messages. */
  written: string;
  /** One of the table's names. */
  name: string;
  value: string | undefined;
  /** Whether it stands alone although it may have a value. */
  bare?: boolean;
}

const isCommand = (word: string): word is CommandName =>
  (COMMANDS as readonly string[]).includes(word);

/**
 * Parses a command line as llama.cpp does: a short flag of several letters is one flag, and a value is the next
 * argument whatever it looks like. `--flag=value` is read as well. (`parseArgs` of `@std/cli` does neither: to it `-np 4`
 * is `-n -p 4`, and a value that begins with a dash is a flag.)
 *
 * @param args The arguments.
 * @param env Looks up an environment variable.
 * @returns The command and its flags, checked one by one.
 * @throws {UsageError} If it is wrong, with what would be right.
 */
export function parseFlags(
  args: readonly string[],
  env: (name: string) => string | undefined = () => undefined,
): Flags {
  const { command: named, topics, given } = walk(args);
  const command = named === "run" && talks(given) ? "chat" : named;
  const inert = new Set<string>();
  const warnings: string[] = [];
  const found = new Map<string, Origin>();
  const add = (flag: Flag, name: string, text: string) => {
    const value = asUsage("", () => parseValue(flag, name, text));
    const { texts = [], values = [] } = found.get(flag.id) ?? {};
    found.set(flag.id, { name, texts: [...texts, text], values: [...values, value] });
  };
  for (const { written, name, value } of given) {
    const flag = findFlag(name, command);
    if (flag === undefined) {
      const others = commandsOf(name).join(", ");
      throw new UsageError(
        `${written} is not a flag of "${command}"; it belongs to: ${others} (see "help ${command}")`,
      );
    }
    if (flag.inert) {
      inert.add(written);
      continue;
    }
    add(flag, written, value ?? (flag.off?.includes(name) ? "off" : "on"));
    if (value !== undefined && !flag.repeats && found.get(flag.id)!.texts.length === 2) {
      warnings.push(`${written} is given more than once; only the last value counts`);
    }
  }
  for (const flag of flagsOf(command)) {
    if (found.has(flag.id)) continue;
    const { name, text = "" } = variableOf(flag, env) ?? {};
    if (name === undefined || text === "") continue;
    const texts = flag.envSeparator === undefined ? [text] : text.split(flag.envSeparator);
    for (const one of texts) add(flag, name, one);
  }
  return new Flags(command, topics, warnings, found, [...inert]);
}

/** Commands that are followed by names. */
const NAMES_FOLLOW: readonly CommandName[] = ["help", "inspect", "pull", "rm", "verify"];

/** Whether a command line asks for a conversation, as llama-cli's do. */
function talks(given: readonly Given[]): boolean {
  const flag = optionById("conversation");
  const last = given.findLast(({ name }) => namesOf(flag).includes(name));
  return last !== undefined && flag.names.includes(last.name);
}

function walk(
  args: readonly string[],
): { command: CommandName; topics: string[]; given: Given[] } {
  let command: CommandName | undefined;
  const topics: string[] = [];
  const given: Given[] = [];
  const word = (arg: string, before?: string): void => {
    if (command === undefined && isCommand(arg)) command = arg;
    else if (command !== undefined && NAMES_FOLLOW.includes(command)) topics.push(arg);
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
      const taken = next !== undefined && textsOf(flag).includes(next);
      if (taken) i++;
      given.push({ written, name, value: taken ? next : flag.bare, bare: !taken });
    } else {
      const { takes = 1 } = flag;
      const values = args.slice(i + 1, i + 1 + takes);
      if (values.length < takes) {
        throw new UsageError(
          `${written} needs ${takes > 1 ? `${takes} values` : "a value"}: ${flag.value}`,
        );
      }
      i += takes;
      given.push({ written, name, value: values.join(" ") });
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
  // After a flag that may stand alone, the word can only be a value that the flag does not accept.
  const choices = after && findFlag(after.name, command ?? "run")?.choices;
  if (choices !== undefined) {
    return `${after!.written} must be ${listed(choices)}, not ${JSON.stringify(arg)}`;
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
  for (const flag of FLAGS) {
    if (flag.help === "") continue;
    (flag.commands.includes(command ?? "run") ? own : other).push(...namesOf(flag));
  }
  const absent = ABSENT.find(({ names }) => names.includes(written));
  if (absent !== undefined) return `${written}: ${absent.why}`;
  const near = suggest(written, own) ?? suggest(written, other);
  return near === undefined
    ? `unknown flag ${written} (see "help${command ? ` ${command}` : ""}")`
    : `unknown flag ${written}; did you mean ${near}?`;
}
