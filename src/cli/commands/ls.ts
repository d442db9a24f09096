import { type CachedEntry, listModels } from "../../hub/cached_models.ts";
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
    const list = models.map(({ name, quant, commit, files, partial, bytes, complete }) => ({
      model: name,
      quant: quant ?? null,
      commit: commit ?? null,
      bytes,
      complete,
      files: files.map(({ path }) => path),
      partial: partial.map(({ target, bytes, size }) => ({
        file: target,
        bytes,
        size: size ?? null,
      })),
    }));
    await shell.out(JSON.stringify({ models: list }) + "\n");
    return 0;
  }
  if (models.length === 0) shell.note("there are no models in the cache; pull fetches one");
  for (const model of models) {
    const size = formatBytes(model.bytes).padStart(10);
    await shell.out(`${size}  ${model.name}${remark(model)}\n`);
  }
  return 0;
}

/** What is not there of a model. */
function remark({ partial, complete }: CachedEntry): string {
  if (partial.length === 0) return complete ? "" : "  (shards are missing)";
  const parts = partial.map(({ bytes, size }) =>
    size === undefined ? formatBytes(bytes) : `${formatBytes(bytes)} of ${formatBytes(size)}`
  );
  return `  (partly fetched: ${parts.join(", ")}; pull goes on)`;
}
