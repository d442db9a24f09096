import { fetchModel, isRemoteName, parseModelName } from "../../hub/mod.ts";
import { asUsage, UsageError } from "../errors.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { hubOptions } from "../model_file.ts";
import { fetchProgress } from "../terminal/fetch_progress.ts";
import type { Shell } from "../terminal/shell.ts";

/**
 * The command `pull`.
 *
 * @param flags The names of the models.
 * @param shell Where to write.
 */
export async function pull(flags: Flags, shell: Shell): Promise<number> {
  const names = remoteNames("pull", flags.topics);
  if (names.length === 0) {
    throw new UsageError("pull needs a model: hf:OWNER/REPO[:QUANT] or a URL");
  }
  const models: { model: string; files: string[] }[] = [];
  for (const model of names) {
    const progress = fetchProgress(shell);
    try {
      const options = { ...hubOptions(flags, shell), onProgress: progress.show };
      models.push({ model, files: await fetchModel(model, options) });
    } finally {
      progress.clear();
    }
    if (!flags.on("json")) await shell.out(`${models.at(-1)!.files[0]}\n`);
  }
  if (flags.on("json")) await shell.out(JSON.stringify({ models }) + "\n");
  return 0;
}

/**
 * The names of models that a command is given; a repository may stand without `hf:`.
 *
 * @param command For messages.
 * @param words What follows it.
 * @throws {UsageError} If one is a path, or malformed.
 */
export function remoteNames(command: string, words: readonly string[]): string[] {
  return words.map((word) => {
    const repository = /^[\w.-]+\/[\w.-]+(?::[\w.-]+)?$/.test(word) && !word.endsWith(".gguf");
    const name = !isRemoteName(word) && repository ? `hf:${word}` : word;
    if (!isRemoteName(name)) {
      throw new UsageError(
        `${command} takes models of the hub or URLs, not paths: hf:OWNER/REPO[:QUANT], not ${
          JSON.stringify(word)
        }`,
      );
    }
    asUsage("", () => parseModelName(name));
    return name;
  });
}
