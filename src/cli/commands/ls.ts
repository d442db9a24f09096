import { listModels } from "../../hub/cached_models.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { formatBytes } from "../terminal/plan_text.ts";
import type { Shell } from "../terminal/shell.ts";

/**
 * The command `ls`.
 *
 * @param flags Read for `--json`.
 * @param shell Where to write.
 */
export async function ls(flags: Flags, shell: Shell): Promise<number> {
  const models = await listModels();
  if (flags.on("json")) {
    const list = models.map(({ name, quant, commit, files, bytes, complete }) => ({
      model: name,
      quant: quant ?? null,
      commit: commit ?? null,
      bytes,
      complete,
      files: files.map(({ path }) => path),
    }));
    await shell.out(JSON.stringify({ models: list }) + "\n");
    return 0;
  }
  if (models.length === 0) shell.note("there are no models in the cache; pull fetches one");
  for (const { name, bytes, complete } of models) {
    const size = formatBytes(bytes).padStart(10);
    await shell.out(`${size}  ${name}${complete ? "" : "  (shards are missing)"}\n`);
  }
  return 0;
}
