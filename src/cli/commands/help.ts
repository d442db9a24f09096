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
      `Continues a prompt and writes the text to standard output as it comes; everything else goes to standard error. The prompt itself is not repeated. It reaches the model unchanged, even where the model has a chat template: --chat, -sys or -st send it as a chat message through that template. Without -m the demo model is used. Without -p or -f the prompt is read from a pipe or a file on standard input, or else is a short one for trying things out (with at most 128 tokens generated). In a plan, x3 means three further passes, shown as x4 in all.`,
  },
  chat: {
    line: "talk with a model",
    usage: "[-m FILE] [-sys TEXT] [--repeat-layers SPEC]",
    text:
      `A conversation through the model's chat template. In a terminal, lines can be edited and recalled with the up and down keys; otherwise each line of standard input is one message. Ctrl-C stops an answer. Lines that begin with a slash are commands: /help shows them. In a terminal a wrong command is reported and the conversation goes on; in piped input it ends the program with exit code 2. /plan changes the layer plan and keeps the conversation.`,
  },
  serve: {
    line: "answer HTTP requests as llama-server does, each with the plan it names",
    usage: "[-m FILE] [--port N] [--repeat-layers SPEC] [--alias NAME=SPEC]...",
    text:
      `Listens at once and loads the model meanwhile: /health answers 503 until it is loaded. A request chooses its plan by "model" (an alias, or as in "demo@26,34") or by "repeat_layers". SIGTERM and Ctrl-C let running requests finish, for at most --drain-timeout; a second one ends the program at once. Sampling flags set defaults that requests may change.`,
  },
  plan: {
    line: "show, check, convert and cost a layer plan, without running a model",
    usage: "[-m FILE | --n-layer N] [--repeat-layers SPEC | --from FILE]",
    text:
      `Shows which layers run, where the path jumps, and what it costs. Only the header of a model is read; without -m or --n-layer it is the demo model's. In a plan, x3 means three further passes, shown as x4 in all. --to writes the plan as a mergekit recipe, a rys_relayer object, a plain list of layers, or in the grammar of --repeat-layers; --from reads any of these.`,
  },
  inspect: {
    line: "show what a model is made of, and which plans it can run",
    usage: "[MODEL | -m MODEL] [--json]",
    text:
      `Reads the header of a model, a few MB also of one on the hub (hf:owner/repo[:quant]) or at a URL, and no tensors. Shows its size, its number formats, a strip with a mark for each layer, its chat template, and whether its architecture runs any plan, some, or none, and why.`,
  },
  export: {
    line: "write a model file whose layers are a plan's, for programs that know no plans",
    usage: "-m FILE --repeat-layers SPEC -o FILE",
    text:
      `Writes a GGUF file with every layer of the plan written out, which llama.cpp and what is built on it load; its logits are those of the plan, bit for bit. A plan that such a file cannot say is refused with the reason. --plan-only writes a copy that carries the plan instead: it is as large as the model, and the plan is the default here (--repeat-layers none runs it without). Tensors are streamed; a file gets its name when it is whole.`,
  },
  logits: {
    line: "write the logits of every token of a prompt",
    usage: "[-m FILE] (-p TEXT | --tokens 1,2,3) [-o FILE]",
    text:
      `Computes a prompt once and writes, for each of its tokens, one row of n_vocab little-endian 32-bit floats.`,
  },
  bench: {
    line: "compare the speed of plans with the model's without one",
    usage: "[-m FILE] [--repeat-layers SPEC]... [-p N,...] [-n N,...] [-r N]",
    text:
      `Measures prompt processing (pp) and text generation (tg) in tokens per second, as llama-bench does, alternating between no plan and each plan given.`,
  },
  pull: {
    line: "fetch models into the cache, and check them",
    usage: "MODEL... [--json]",
    text:
      `Fetches each model (hf:OWNER/REPO[:QUANT], hf:OWNER/REPO/FILE.gguf or a URL) with all its shards, unless it is there, and prints the path of its first file. Interrupted, it goes on from there the next time. The cache is the one that all programs of the hub share: HF_HUB_CACHE, HF_HOME or ~/.cache/huggingface/hub.`,
  },
  ls: {
    line: "list the models in the cache",
    usage: "[--json]",
    text:
      `Shows the GGUF models in the cache, by the names under which they can be used, with their size, and what is fetched in part.`,
  },
  rm: {
    line: "remove models from the cache",
    usage: "MODEL...",
    text:
      `Removes each model's GGUF files, and what was fetched of them in part. A repository without a quantisation or file (hf:OWNER/REPO) means all its GGUF files; other files of a repository stay.`,
  },
  verify: {
    line: "check models in the cache by their hashes",
    usage: "[MODEL...] [--json]",
    text:
      `Reads the models that are named, or all in the cache, and compares each file's hash with the one that it was fetched by. Ends with exit code 1 if one is damaged.`,
  },
  doctor: {
    line: "check whether everything needed is here",
    usage: "[--json]",
    text:
      `Checks versions, the built WASM, what this Deno can do, memory, the graphics adapters (with a computation whose result is verified) and the driver's files. Ends with exit code 1 if something needed is missing, and says what helps; a GPU is not needed.`,
  },
  help: {
    line: "show help on a command",
    usage: "[COMMAND]",
    text: "Shows the commands, or the flags of one.",
  },
};

const PROGRAM = "deno run -A mod.ts";

/** The list of commands, with examples. */
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
--allow-read in place of -A is enough, but a model that is fetched needs --allow-net, --allow-write
and --allow-env, -o needs --allow-write as well, serve needs
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
 * @param flags The topic, if one is given.
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
      `there is no help on "${wrong}"; ${
        near === undefined ? `the commands are ${COMMANDS.join(", ")}` : `did you mean "${near}"?`
      }`,
    );
  }
  await shell.out(commandHelp(command));
  return 0;
}
