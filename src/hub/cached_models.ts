import { absent, list, RepoCache } from "./cache.ts";
import { chooseFiles, quantOf } from "./choose_files.ts";
import { parseShardName, shardNames } from "../gguf/list_shards.ts";
import { hashFile } from "./hash_file.ts";
import { HubError } from "./hub_error.ts";
import { formatModelName, parseModelName } from "./model_name.ts";
import { removeIfThere } from "./part_file.ts";
import { type FileHash, fileHash } from "./repository.ts";
import { type HubOptions, type HubSettings, hubSettings } from "./settings.ts";
import { FACTS, readFacts } from "./url_cache.ts";

/** A file in the cache. */
export interface CachedFile {
  /** Its path on this machine. */
  path: string;
  /** Where its bytes are. */
  blob: string;
  /** Bytes. */
  bytes: number;
  /** What they must hash to, if that is known. */
  hash: FileHash | undefined;
}

/** A model in the cache. */
export interface CachedEntry {
  /** The name by which it can be used. */
  name: string;
  /** Its quantisation, by its file's name. */
  quant: string | undefined;
  /** The commit of its repository; undefined for URLs. */
  commit: string | undefined;
  /** Its files, in order. */
  files: CachedFile[];
  /** Bytes of all. */
  bytes: number;
  /** Whether all shards are there. */
  complete: boolean;
}

/**
 * The GGUF models in the cache, of the hub and of URLs.
 *
 * @param options Where the cache is.
 */
export async function listModels(options: HubOptions = {}): Promise<CachedEntry[]> {
  const settings = hubSettings(options);
  return [...await hubModels(settings), ...await urlModels(settings)];
}

async function hubModels(settings: HubSettings): Promise<CachedEntry[]> {
  const found: CachedEntry[] = [];
  for (const { name: folder } of await list(settings.cacheDir)) {
    const match = /^models--(.+?)--(.+)$/.exec(folder);
    if (!match) continue;
    const repo = `${match[1]}/${match[2]}`;
    const cache = new RepoCache(settings, repo);
    const main = await cache.commit("main");
    for (const commit of await cache.commits()) {
      const paths = (await cache.files(commit)).filter((path) => /\.gguf$/i.test(path));
      const seen = new Set<string>();
      for (const path of paths) {
        const shards = shardsOf(path).filter((one) => paths.includes(one));
        if (seen.has(path)) continue;
        for (const one of shards) seen.add(one);
        const files = await Promise.all(
          shards.map((one) => cachedFile(cache.snapshot(commit, one))),
        );
        found.push({
          name: formatModelName({
            kind: "hub",
            repo,
            revision: commit === main ? "main" : commit,
            file: shards[0]!,
          }),
          quant: quantOf(path),
          commit,
          files,
          bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
          complete: shards.length === shardsOf(path).length,
        });
      }
    }
  }
  return found;
}

function shardsOf(path: string): string[] {
  try {
    return parseShardName(path) === undefined ? [path] : shardNames(path);
  } catch {
    return [path];
  }
}

async function cachedFile(path: string): Promise<CachedFile> {
  const blob = (await Deno.realPath(path)).replaceAll("\\", "/");
  const hash = /\/blobs\/[^/]+$/.test(blob) ? fileHash(blob.replace(/^.*\//, "")) : undefined;
  return { path, blob, bytes: (await Deno.stat(blob)).size, hash };
}

async function urlModels(settings: HubSettings): Promise<CachedEntry[]> {
  const found: CachedEntry[] = [];
  for (const host of await list(settings.urlDir)) {
    if (/^(?:models--|\.)/.test(host.name) || !host.isDirectory) continue;
    for (const model of await list(`${settings.urlDir}/${host.name}`)) {
      const folder = `${settings.urlDir}/${host.name}/${model.name}`;
      const files: CachedFile[] = [];
      let name: string | undefined;
      for (const entry of await list(folder)) {
        if (!entry.name.endsWith(FACTS)) continue;
        const path = `${folder}/${entry.name.slice(0, -FACTS.length)}`;
        const facts = await readFacts(path);
        const bytes = (await Deno.stat(path).catch(absent))?.size;
        if (facts === undefined || bytes === undefined) continue;
        name ??= facts.url;
        files.push({ path, blob: path, bytes, hash: fileHash(facts.sha256) });
      }
      if (name === undefined) continue;
      found.push({
        name,
        quant: quantOf(files[0]!.path),
        commit: undefined,
        files,
        bytes: files.reduce((sum, file) => sum + file.bytes, 0),
        complete: shardsOf(files[0]!.path).length === files.length,
      });
    }
  }
  return found;
}

/**
 * The models in the cache that a name means: of a repository alone, all of them.
 *
 * @param name The name.
 * @param options Where the cache is.
 * @throws {HubError} If there is none.
 */
export async function findModels(name: string, options: HubOptions = {}): Promise<CachedEntry[]> {
  const settings = hubSettings(options);
  const parsed = parseModelName(name, settings.endpoint);
  const all = await listModels(options);
  const found = all.filter((entry) => {
    if (parsed.kind !== "hub") return entry.name === name;
    const own = parseModelName(entry.name);
    if (own.kind !== "hub" || own.repo !== parsed.repo) return false;
    if (parsed.revision !== "main" && parsed.revision !== entry.commit) return false;
    if (parsed.file === undefined && parsed.quant === undefined) return true;
    try {
      return chooseFiles(shardsOf(own.file!), { ...parsed, revision: own.revision }).length > 0;
    } catch {
      return false;
    }
  });
  if (found.length === 0) {
    throw new HubError("not_found", `${name}: it is not in the cache; "ls" shows what is`);
  }
  return found;
}

/**
 * Removes models from the cache. Bytes that another name in the cache still means stay.
 *
 * @param name The name; of a repository alone, all its GGUF files.
 * @param options Where the cache is.
 * @returns What was removed.
 * @throws {HubError} If there is no such model, or it cannot be removed.
 */
export async function removeModel(name: string, options: HubOptions = {}): Promise<CachedEntry[]> {
  const found = await findModels(name, options);
  for (const { files, commit } of found) {
    for (const { path, blob } of files) {
      await removeIfThere(path);
      if (commit === undefined) await removeIfThere(path + FACTS);
      else if (blob !== path) {
        const used = (await listModels(options)).some((one) =>
          one.files.some((file) => file.blob === blob)
        );
        if (!used) await removeIfThere(blob);
      }
    }
  }
  return found;
}

/**
 * Hashes a file in the cache.
 *
 * @param file The file.
 * @param signal Ends it.
 * @returns Whether its bytes are those that it was fetched with; undefined if no hash is known.
 */
export async function verifyFile(
  file: CachedFile,
  signal?: AbortSignal,
): Promise<boolean | undefined> {
  if (file.hash === undefined) return undefined;
  return await hashFile(file.blob, file.hash.algorithm, signal) === file.hash.hex;
}
