import { findModels, listModels, verifyFile } from "../../hub/cached_models.ts";
import type { Flags } from "../flags/parse_flags.ts";
import type { Shell } from "../terminal/shell.ts";
import { remoteNames } from "./pull.ts";

/**
 * The command `verify`.
 *
 * @param flags The names of the models; none: all.
 * @param shell Where to write.
 * @returns 1 if a file is damaged.
 */
export async function verify(flags: Flags, shell: Shell): Promise<number> {
  const names = remoteNames("verify", flags.topics);
  const models = names.length === 0
    ? await listModels()
    : (await Promise.all(names.map((name) => findModels(name)))).flat();
  const results: { model: string; file: string; state: string }[] = [];
  for (const { name, files } of models) {
    for (const file of files) {
      const isSound = await verifyFile(file, shell.signal);
      const state = isSound === undefined ? "unknown" : isSound ? "ok" : "damaged";
      results.push({ model: name, file: file.path, state });
      if (!flags.on("json")) await shell.out(`${state.padEnd(8)} ${file.path}\n`);
    }
  }
  const ok = results.every(({ state }) => state !== "damaged");
  if (flags.on("json")) await shell.out(JSON.stringify({ ok, files: results }) + "\n");
  if (!ok) shell.warn('what is damaged is fetched anew after "rm MODEL"');
  return ok ? 0 : 1;
}
