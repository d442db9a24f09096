import { absent, RepoCache, repoFolderName } from "./cache.ts";
import { checkRoom, diskError } from "./disk_error.ts";
import { download } from "./download.ts";
import { withLock } from "./file_lock.ts";
import { hashFile } from "./hash_file.ts";
import { HubError } from "./hub_error.ts";
import { parseModelName } from "./model_name.ts";
import { PartFile, readSidecar } from "./part_file.ts";
import type { RemoteFile } from "./remote_file.ts";
import { type FileHash, fileHash } from "./repository.ts";
import { type RemoteModel, resolveRemote } from "./resolve.ts";
import { type HubOptions, type HubProgress, type HubSettings, hubSettings } from "./settings.ts";
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
      await checkFound(model.name, model.paths, settings);
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
      const blob = cache.blob(file.hash!.hex);
      const path = cache.snapshot(commit, inRepo[i]!);
      await withLock(lockPath(settings, repo, file.hash!.hex), settings.signal, async () => {
        tell("waiting", await bytesOf(blob));
      }, async () => {
        if ((await Deno.stat(blob).catch(absent))?.size === file.size) {
          await checkBlob(model.name, blob, file.hash!, settings, tell);
        } else {
          await fetchFile(file, blob, settings, tell);
          await mark(settings, blob);
        }
        await link(blob, path);
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
        const sha256 = await fetchFile(file, path, settings, tell);
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
): Promise<string> {
  const folder = target.replace(/\/[^/]*$/, "");
  await Deno.mkdir(folder, { recursive: true }).catch((error) => {
    throw diskError(target, error);
  });
  const etag = file.hash?.hex ?? file.etag ?? "";
  for (;;) {
    const part = await PartFile.open(target, { etag, size: file.size });
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

function lockPath(settings: HubSettings, repo: string, hex: string): string {
  return `${settings.cacheDir}/.locks/${repoFolderName(repo)}/${hex}.lock`;
}

/** The file that says that a blob was checked, with its size and time; beside the locks, where no program lists it. */
function markPath(settings: HubSettings, blob: string): string {
  const [repo, , hex] = blob.split("/").slice(-3);
  return `${settings.cacheDir}/.locks/${repo}/${hex}.rys-checked`;
}

async function stamp(blob: string): Promise<string> {
  const { size, mtime } = await Deno.stat(blob);
  return `${size} ${Math.floor((mtime?.getTime() ?? 0) / 1000)}`;
}

async function mark(settings: HubSettings, blob: string): Promise<void> {
  // A cache that may be read only is checked each time.
  await Deno.writeTextFile(markPath(settings, blob), await stamp(blob)).catch(() => {});
}

async function checkBlob(
  name: string,
  blob: string,
  hash: FileHash,
  settings: HubSettings,
  tell: (doing: HubProgress["doing"], bytes: number) => void,
): Promise<void> {
  const known = await Deno.readTextFile(markPath(settings, blob)).catch(() => undefined);
  if (known === await stamp(blob)) return;
  const is = await hashFile(
    blob,
    hash.algorithm,
    settings.signal,
    (bytes) => tell("checking", bytes),
  );
  if (is !== hash.hex) {
    throw new HubError(
      "checksum",
      `${name}: the copy in the cache is damaged: the ${hash.algorithm} of ${blob} is ${is}; "rm ${name}" removes it, "pull ${name}" fetches it again`,
    );
  }
  await mark(settings, blob);
}

/** Checks files in the cache that have not been checked since they were last written. */
async function checkFound(
  name: string,
  paths: readonly string[],
  settings: HubSettings,
): Promise<void> {
  for (const [i, path] of paths.entries()) {
    const blob = (await Deno.realPath(path)).replaceAll("\\", "/");
    const hash = /\/blobs\/[^/]+$/.test(blob) ? fileHash(blob.replace(/^.*\//, "")) : undefined;
    if (hash === undefined) continue;
    const { size } = await Deno.stat(blob);
    const file = path.replace(/^.*\//, "");
    await checkBlob(
      name,
      blob,
      hash,
      settings,
      (doing, bytes) =>
        settings.onProgress({ doing, file, number: i + 1, count: paths.length, bytes, size }),
    );
  }
}

/** Gives a blob its name in a snapshot. */
async function link(blob: string, path: string): Promise<void> {
  try {
    await Deno.mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
    if ((await Deno.stat(path).catch(absent))?.isFile) return;
    await Deno.remove(path).catch(absent); // a link to bytes that are gone
    const depth = path.slice(path.lastIndexOf("/snapshots/") + 11).split("/").length;
    const hex = blob.replace(/^.*\//, "");
    try {
      await Deno.symlink(`${"../".repeat(depth)}blobs/${hex}`, path);
    } catch {
      // Not every system and not every permission of Deno's allows symbolic links.
      await Deno.link(blob, path).catch(() => Deno.copyFile(blob, path));
    }
  } catch (error) {
    throw diskError(path, error);
  }
}
