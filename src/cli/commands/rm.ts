import { removeModels } from "../../hub/remove_models.ts";
import { UsageError } from "../errors.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { formatBytes } from "../terminal/plan_text.ts";
import type { Shell } from "../terminal/shell.ts";
import { remoteNames } from "./pull.ts";

/**
 * The command `rm`.
 *
 * @param flags The names of the models.
 * @param shell Where to write.
 */
export async function rm(flags: Flags, shell: Shell): Promise<number> {
  const names = remoteNames("rm", flags.topics);
  if (names.length === 0) throw new UsageError("rm needs a model; ls shows those in the cache");
  for (const name of names) {
    for (const { name: removed, bytes } of await removeModels(name)) {
      await shell.out(`removed ${removed} (${formatBytes(bytes)})\n`);
    }
  }
  return 0;
}
