import { absent, RepoCache } from "./cache.ts";
import { checkRoom, diskError } from "./disk_error.ts";
import { download } from "./download.ts";
import { withLock } from "./file_lock.ts";
import { hashFile } from "./hash_file.ts";
import { HubError } from "./hub_error.ts";
import { formatModelName, parseModelName } from "./model_name.ts";
import { PartFile, type PartSource, readSidecar } from "./part_file.ts";
import type { RemoteFile } from "./remote_file.ts";
import type { FileHash } from "./repository.ts";
import { type LocalModel, type RemoteModel, resolveRemote } from "./resolve.ts";
import { type HubOptions, type HubProgress, type HubSettings, hubSettings } from "./settings.ts";
import { isChecked, noteChecked, type SnapshotFile, snapshotFile } from "./snapshot_file.ts";
import { FACTS, readFacts, type UrlFacts, urlPath } from "./url_cache.ts";

/** Times to begin again with a file that changes on the server meanwhile. */
const MAX_CHANGES = 3;

/**
 * Fetches a model, unless it is in the cache: all its shards, in parts, going on where an earlier time ended. What is
 * fetched is checked by the hub's hash before it gets its name, and what another program fetched before it is used for
 * the first time. Two processes that want the same file share one download.
 *
 * @param name A path, which is given back as it is; a name on the hub; or a URL.
 * @param options Endpoint, token, cache, progress.
 * @returns The model's files on this machine, in order.
 * @throws {SyntaxError} If the name is malformed.
 * @throws {HubError} If it cannot be fetched; the message says what helps.
 *
 * @example
 * ```ts
 * import { fetchModel } from "@rys/edge";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(await fetchModel("models/demo.gguf"), ["models/demo.gguf"]); // "hf:owner/repo:Q4_K_M" is fetched
 * ```
 */
export async function fetchModel(
  name: string | URL,
  options: HubOptions = {},
): Promise<string[]> {
  const parsed = parseModelName(name);
  if (parsed.kind === "file") return [parsed.path];
  const settings = hubSettings(options);
  for (let i = 1;; i++) {
    settings.signal?.throwIfAborted();
    const model = await resolveRemote(String(name), settings);
    try {
      if (model.kind === "remote") return await fetchAll(model, settings);
      await checkFound(model, settings);
      return model.paths;
    } catch (error) {
      const isOther = error instanceof HubError && error.kind === "changed";
      if (!isOther || i >= MAX_CHANGES) throw error;
      settings.onNote(`${error.message}: beginning again`);
    }
  }
}

async function fetchAll(model: RemoteModel, settings: HubSettings): Promise<string[]> {
  const { files, repository } = model;
  const paths: string[] = [];
  for (const [i, file] of files.entries()) {
    const tell = (doing: HubProgress["doing"], bytes: number) =>
      settings.onProgress({
        doing,
        file: file.name,
        number: i + 1,
        count: files.length,
        bytes,
        size: file.size,
      });
    if (repository !== undefined) {
      const { repo, commit, paths: inRepo } = repository;
      const cache = new RepoCache(settings, repo);
      const hash = file.hash!;
      const blob = cache.blob(hash.hex);
      const checked = { bytes: blob, hash, note: cache.checkedNote(hash.hex) };
      const path = cache.snapshot(commit, inRepo[i]!);
      await withLock(cache.lock(hash.hex), settings.signal, async () => {
        tell("waiting", await bytesOf(blob));
      }, async () => {
        if ((await Deno.stat(blob).catch(absent))?.size === file.size) {
          await checkBytes(model.name, checked, settings, tell);
        } else {
          const source = { repo, revision: repository.revision, commit };
          await fetchFile(file, blob, settings, tell, {
            name: formatModelName({ kind: "hub", ...source, file: inRepo[i]! }),
            commit,
          });
          await noteChecked(checked);
        }
        await link(cache, hash, commit, inRepo[i]!);
      });
      paths.push(path);
    } else {
      const urls = files.map(({ url }) => url);
      const path = await urlPath(urls, i, settings);
      await withLock(`${path}.lock`, settings.signal, async () => {
        tell("waiting", await bytesOf(path));
      }, async () => {
        const known = await readFacts(path);
        const isThere = (await Deno.stat(path).catch(absent))?.size === file.size &&
          known?.etag === (file.etag ?? "") && known.url === file.url.href;
        if (isThere) return;
        const sha256 = await fetchFile(file, path, settings, tell, { name: file.url.href });
        const facts: UrlFacts = {
          url: file.url.href,
          etag: file.etag ?? "",
          size: file.size,
          sha256,
        };
        await Deno.writeTextFile(path + FACTS, JSON.stringify(facts));
      });
      paths.push(path);
    }
  }
  if (repository !== undefined) {
    await new RepoCache(settings, repository.repo)
      .setCommit(repository.revision, repository.commit);
  }
  return paths;
}

/** Bytes that another process has fetched so far. */
async function bytesOf(target: string): Promise<number> {
  const done = (await readSidecar(target))?.done ?? [];
  return done.reduce((sum, [start, end]) => sum + end - start, 0);
}

/** Fetches and checks one file; returns its hash. */
async function fetchFile(
  file: RemoteFile,
  target: string,
  settings: HubSettings,
  tell: (doing: HubProgress["doing"], bytes: number) => void,
  about: PartSource,
): Promise<string> {
  const folder = target.replace(/\/[^/]*$/, "");
  await Deno.mkdir(folder, { recursive: true }).catch((error) => {
    throw diskError(target, error);
  });
  const etag = file.hash?.hex ?? file.etag ?? "";
  for (;;) {
    const part = await PartFile.open(target, { etag, size: file.size, ...about });
    // Without a version there is no telling whether the rest belongs to the part that is there.
    if (etag === "") await part.discard();
    const resumed = part.bytes > 0;
    await checkRoom(folder, file.size - part.bytes);
    if (file.size === 0) await Deno.writeFile(part.path, new Uint8Array());
    await download(file, part, settings, (bytes) => tell("fetching", bytes)).catch(
      async (error) => {
        if (error instanceof HubError && error.kind === "changed") await part.discard();
        throw error;
      },
    );
    const { algorithm = "sha256", hex } = file.hash ?? {};
    const is = await hashFile(
      part.path,
      algorithm,
      settings.signal,
      (bytes) => tell("checking", bytes),
    );
    if (hex === undefined || is === hex) {
      await part.finish(target);
      return is;
    }
    await part.discard();
    const what =
      `${file.about.name}: ${file.name} is damaged: its ${algorithm} is ${is}, not ${hex}`;
    if (!resumed) {
      throw new HubError("checksum", `${what}; what was fetched is deleted, try again`);
    }
    settings.onNote(`${what}; it is fetched again from its beginning`);
  }
}

/** Hashes a file unless that was done since it was last written. */
async function checkBytes(
  name: string,
  file: Pick<SnapshotFile, "bytes" | "hash" | "note">,
  settings: HubSettings,
  tell: (doing: HubProgress["doing"], bytes: number) => void,
): Promise<void> {
  const { bytes: path, hash } = file;
  if (hash === undefined || await isChecked(file)) return;
  const is = await hashFile(
    path,
    hash.algorithm,
    settings.signal,
    (bytes) => tell("checking", bytes),
  );
  if (is !== hash.hex) {
    throw new HubError(
      "checksum",
      `${name}: the copy in the cache is damaged: the ${hash.algorithm} of ${path} is ${is}; "rm ${name}" removes it, "pull ${name}" fetches it again`,
    );
  }
  await noteChecked(file);
}

/** Checks files in the cache that have not been checked since they were last written. */
async function checkFound(model: LocalModel, settings: HubSettings): Promise<void> {
  const { name, paths, repository } = model;
  if (repository === undefined) return;
  const { repo, commit, paths: inRepo, hashes = [] } = repository;
  const cache = new RepoCache(settings, repo);
  for (const [i, path] of inRepo.entries()) {
    const found = await snapshotFile(cache, commit, path, hashes[i]);
    const { size } = await Deno.stat(found.bytes);
    const file = path.replace(/^.*\//, "");
    await checkBytes(
      name,
      found,
      settings,
      (doing, bytes) =>
        settings.onProgress({ doing, file, number: i + 1, count: paths.length, bytes, size }),
    );
  }
}

/** Gives a blob its name in a snapshot. */
async function link(
  cache: RepoCache,
  hash: FileHash,
  commit: string,
  file: string,
): Promise<void> {
  const blob = cache.blob(hash.hex);
  const path = cache.snapshot(commit, file);
  try {
    await Deno.mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
    const there = await Deno.stat(path).catch(absent);
    if (there?.isFile && there.size === (await Deno.stat(blob)).size) return;
    await Deno.remove(path).catch(absent); // a link to bytes that are gone, or a copy that was not finished
    try {
      await Deno.symlink(`${"../".repeat(file.split("/").length)}../blobs/${hash.hex}`, path);
    } catch {
      // Not every system and not every permission of Deno's allows symbolic links.
      await Deno.link(blob, path).catch(() => Deno.copyFile(blob, path));
      await noteChecked({ bytes: path, hash, note: cache.copyNote(commit, file) });
    }
  } catch (error) {
    throw diskError(path, error);
  }
}
