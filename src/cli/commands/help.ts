import { UsageError } from "../errors.ts";
import { type CommandName, COMMANDS, type Flag, flagsOf, GROUPS, namesOf } from "../flags/flags.ts";
import type { Flags } from "../flags/parse_flags.ts";
import type { Shell } from "../terminal/shell.ts";
import { suggest } from "../flags/suggest.ts";

interface About {
  /** One line for the list of commands. */
  line: string;
  /** What the command's own help says. */
  text: string;
  /** Flags of a typical call. */
  usage: string;
}

const ABOUT: Record<CommandName, About> = {
  run: {
    line: "continue a prompt (the default command)",
    usage: "[-m FILE] [-p TEXT] [--repeat-layers SPEC] [-n N]",
    text:
      `Continues a prompt and writes the text to standard output as it comes; what else there is to say goes to standard error. The prompt itself is not repeated. It reaches the model as it is, also where the model has a chat template: --chat, -sys or -st send it as a chat message by that template. Without -m it is the demo model. Without -p or -f the prompt is what a pipe or a file gives on standard input, and else one for trying out (then at most 128 tokens). In a plan x3 means three further passes, which are shown as x4 in all.`,
  },
  chat: {
    line: "talk with a model",
    usage: "[-m FILE] [-sys TEXT] [--repeat-layers SPEC]",
    text:
      `A conversation by the model's chat template. In a terminal lines can be edited and called back with the up and down keys; otherwise each line of standard input is one message. Ctrl-C stops an answer. Lines that begin with a slash are commands: /help shows them. A wrong command is told in a terminal, and the conversation goes on; in piped input it ends the program with 2. /plan changes the layer plan and goes on with the conversation.`,
  },
  serve: {
    line: "answer HTTP requests as llama-server does, each with the plan it names",
    usage: "[-m FILE] [--port N] [--repeat-layers SPEC] [--alias NAME=SPEC]...",
    text:
      `Listens at once and loads the model meanwhile: /health is 503 until it is there. A request chooses its plan by "model" (an alias, or as in "demo@26,34") or by "repeat_layers". SIGTERM and Ctrl-C let running requests end, for --drain-timeout at most; a second one ends at once. Sampling flags give defaults that requests may change.`,
  },
  plan: {
    line: "show, check, convert and cost a layer plan, without running a model",
    usage: "[-m FILE | --n-layer N] [--repeat-layers SPEC | --from FILE]",
    text:
      `Shows which layers run, where the path jumps, and what it costs. Of a model only the header is read; without -m or --n-layer it is the demo model's. In a plan x3 means three further passes, which are shown as x4 in all. --to writes the plan as a mergekit recipe, a rys_relayer object, a plain list of layers, or in the grammar of --repeat-layers; --from reads any of these.`,
  },
  logits: {
    line: "write the logits of every token of a prompt",
    usage: "[-m FILE] (-p TEXT | --tokens 1,2,3) [-o FILE]",
    text:
      `Computes a prompt once and writes, for each of its tokens, one row of n_vocab little-endian 32-bit floats.`,
  },
  bench: {
    line: "measure the speed of plans beside the model without one",
    usage: "[-m FILE] [--repeat-layers SPEC]... [-p N,...] [-n N,...] [-r N]",
    text:
      `Measures prompt processing (pp) and text generation (tg) in tokens per second, as llama-bench does, without a plan and with each plan given, in turn.`,
  },
  doctor: {
    line: "look whether everything needed is here",
    usage: "[--json]",
    text:
      `Looks at versions, the built WASM, what this Deno can do, memory, the graphics adapters (with a computation that is checked) and the driver's files. Ends with 1 where something needed is missing, and says what helps; a GPU is not needed.`,
  },
  help: {
    line: "show help of a command",
    usage: "[COMMAND]",
    text: "Shows the commands, or the flags of one.",
  },
};

const PROGRAM = "deno run -A mod.ts";

/** The commands, and how to go on. */
export function generalHelp(): string {
  const width = Math.max(...COMMANDS.map((name) => name.length));
  const list = COMMANDS.map((name) => `  ${name.padEnd(width)}  ${ABOUT[name].line}`).join("\n");
  return `Runs GGUF language models with a block of their middle layers run again, with no new weights.

Usage: ${PROGRAM} [COMMAND] [FLAGS]

Commands:
${list}

Examples:
  ${PROGRAM} --repeat-layers 33,34
  ${PROGRAM} -m model.gguf -p "Once upon a time" -n 64 --repeat-layers 26,34
  ${PROGRAM} serve -m model.gguf --alias deep=26,34
  ${PROGRAM} plan -m model.gguf --repeat-layers "43,45;28,34"
  ${PROGRAM} help run

Flags have llama.cpp's names where llama.cpp has them. Exit codes: 0 done, 1 failed, 2 wrong usage.
--allow-read in place of -A is enough, but logits -o needs --allow-write as well, serve needs
--allow-net=HOST:PORT, and a variable of the environment counts as not set without --allow-env=NAME.
`;
}

/**
 * The help of one command.
 *
 * @param command Which.
 */
export function commandHelp(command: CommandName): string {
  const { usage, text } = ABOUT[command];
  const flags = flagsOf(command).filter((flag) => flag.help !== "");
  const groups = GROUPS.map((group) => {
    const own = flags.filter((flag) => flag.group === group);
    return own.length === 0 ? "" : `\n${group}:\n${own.map(flagHelp).join("")}`;
  }).join("");
  const without = flagsOf(command).filter((flag) => flag.help === "").flatMap(namesOf);
  const also = without.length === 0
    ? ""
    : `\n${wrap(`Accepted and without effect here: ${without.join(" ")}`, "")}`;
  return `Usage: ${PROGRAM} ${command} ${usage}\n\n${wrap(text, "")}${groups}${also}`;
}

function flagHelp(flag: Flag): string {
  const value = flag.value === undefined
    ? ""
    : flag.bare === undefined
    ? ` ${flag.value}`
    : ` [${flag.value}]`;
  const head = `  ${namesOf(flag).join(", ")}${value}`;
  const env = flag.env === undefined ? "" : ` (env: ${[flag.env].flat().join(", ")})`;
  const holds = flag.default === undefined ? "" : ` (default: ${flag.default})`;
  const help = wrap(flag.help + holds + env, " ".repeat(34));
  return head.length <= 32 ? head.padEnd(34) + help.trimStart() : `${head}\n${help}`;
}

/** Words in lines of at most 100 columns, each with `indent` before it. */
function wrap(text: string, indent: string): string {
  let out = "";
  let line = indent;
  for (const word of text.split(" ")) {
    if (line.length + word.length > 99 && line.trim() !== "") {
      out += line.trimEnd() + "\n";
      line = indent;
    }
    line += word + " ";
  }
  return out + line.trimEnd() + "\n";
}

/**
 * The command `help`.
 *
 * @param flags The command line.
 * @param shell Where to write.
 */
export async function help(flags: Flags, shell: Shell): Promise<number> {
  const [topic, ...rest] = flags.topics;
  if (topic === undefined) {
    await shell.out(generalHelp());
    return 0;
  }
  const command = COMMANDS.find((name) => name === topic);
  if (command === undefined || rest.length > 0) {
    const wrong = command === undefined ? topic : rest[0]!;
    const near = suggest(wrong, COMMANDS);
    throw new UsageError(
      `no help on "${wrong}"; ${
        near === undefined ? `the commands are ${COMMANDS.join(", ")}` : `did you mean "${near}"?`
      }`,
    );
  }
  await shell.out(commandHelp(command));
  return 0;
}
