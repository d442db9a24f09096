import { list, RepoCache } from "./cache.ts";
import { type CachedEntry, findModels, hubModels } from "./cached_models.ts";
import { withFreeLock } from "./file_lock.ts";
import { HubError } from "./hub_error.ts";
import { parseModelName } from "./model_name.ts";
import { partFiles, removeIfThere } from "./part_file.ts";
import { type HubOptions, type HubSettings, hubSettings } from "./settings.ts";
import { FACTS } from "./url_cache.ts";

/**
 * Removes models from the cache, with what is only partly fetched of them, their locks and our notes. Bytes that another
 * name in the cache still means stay.
 *
 * @param name The name; of a repository alone, all its GGUF files.
 * @param options Where the cache is.
 * @returns What was removed.
 * @throws {HubError} If there is no such model, a process is fetching it, or it cannot be removed.
 */
export async function removeModels(name: string, options: HubOptions = {}): Promise<CachedEntry[]> {
  const settings = hubSettings(options);
  const found = await findModels(name, options);
  for (const entry of found) {
    const parsed = parseModelName(entry.name);
    if (parsed.kind === "hub") await removeHub(entry, parsed.repo, settings);
    else await removeUrl(entry, settings);
  }
  return found;
}

async function removeUrl(entry: CachedEntry, { urlDir }: HubSettings): Promise<void> {
  const { name, files, partial } = entry;
  for (const path of [...files.map(({ path }) => path), ...partial.map(({ target }) => target)]) {
    await alone(name, `${path}.lock`, async () => {
      for (const one of [path, path + FACTS, ...partFiles(path)]) await removeIfThere(one);
    });
    await removeEmpty(folderOf(path), urlDir);
  }
}

async function removeHub(entry: CachedEntry, repo: string, settings: HubSettings): Promise<void> {
  const { name, files, partial } = entry;
  const cache = new RepoCache(settings, repo);
  const blobs = `${cache.folder}/blobs`;
  const removeBlob = async (blob: string): Promise<void> => {
    const hex = blob.slice(blobs.length + 1);
    await alone(name, cache.lock(hex), async () => {
      for (const one of [blob, ...partFiles(blob), cache.checkedNote(hex)]) {
        await removeIfThere(one);
      }
    });
  };
  for (const { path, blob, note } of files) {
    await removeIfThere(path);
    await removeEmpty(folderOf(path), cache.folder);
    // The note of a copy is its own; that of a blob goes with the blob.
    if (note !== undefined && folderOf(note) !== cache.locks) {
      await removeIfThere(note);
      await removeEmpty(folderOf(note), cache.locks);
    }
    const isUsed = (await hubModels(settings)).some(({ files }) =>
      files.some((other) => other.blob === blob)
    );
    if (!isUsed && folderOf(blob) === blobs) await removeBlob(blob);
  }
  for (const { target } of partial) await removeBlob(target);
  await removeEmpty(blobs, cache.folder);
  await removeEmpty(cache.locks, settings.cacheDir);
  // Which commit a branch was is of no use without a file.
  if ((await list(cache.folder)).every((one) => one.name === "refs")) {
    await Deno.remove(cache.folder, { recursive: true }).catch(() => {});
  }
}

/** Does something to a file that no process is fetching. */
async function alone(name: string, lock: string, use: () => Promise<void>): Promise<void> {
  if (await withFreeLock(lock, use)) return;
  throw new HubError(
    "busy",
    `${name}: another process is fetching it; end that one, and what it fetched can be removed`,
  );
}

function folderOf(path: string): string {
  return path.replace(/\/[^/]*$/, "");
}

/** Removes a folder if it is empty, and those around it, up to one that stays. */
async function removeEmpty(folder: string, stop: string): Promise<void> {
  for (; folder.startsWith(`${stop}/`); folder = folderOf(folder)) {
    const isGone = await Deno.remove(folder).then(
      () => true,
      (error) => error instanceof Deno.errors.NotFound,
    );
    if (!isGone) return;
  }
}
