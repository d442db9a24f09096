import { absent, list, RepoCache } from "./cache.ts";
import { chooseFiles, quantOf } from "./choose_files.ts";
import { parseShardName, shardNames } from "../gguf/list_shards.ts";
import { hashFile } from "./hash_file.ts";
import { HubError } from "./hub_error.ts";
import { formatModelName, type HubName, parseModelName } from "./model_name.ts";
import { PART, partPath, readSidecar } from "./part_file.ts";
import { type FileHash, fileHash } from "./repository.ts";
import { type HubOptions, type HubSettings, hubSettings } from "./settings.ts";
import { snapshotFile } from "./snapshot_file.ts";
import { FACTS, readFacts } from "./url_cache.ts";

/** A file in the cache. */
export interface CachedFile {
  /** Its path on this machine. */
  path: string;
  /** The blob that has its bytes or is a copy of it; the file itself if there is none. */
  blob: string;
  /** Bytes. */
  bytes: number;
  /** What they must hash to, if that is known. */
  hash: FileHash | undefined;
  /** Where it is written down that it was checked, for files of the hub. */
  note: string | undefined;
}

/** A file of which some parts are in the cache. */
export interface PartialFile {
  /** What it is to become. */
  target: string;
  /** Bytes that are there. */
  bytes: number;
  /** Bytes of the whole file; undefined if that is not known. */
  size: number | undefined;
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
  /** Its files that were not fetched to their end. */
  partial: PartialFile[];
  /** Bytes of all that is there. */
  bytes: number;
  /** Whether all shards are there. */
  complete: boolean;
}

/**
 * The GGUF models in the cache, of the hub and of URLs, also those of which only a part is there.
 *
 * @param options Where the cache is.
 */
export async function listModels(options: HubOptions = {}): Promise<CachedEntry[]> {
  const settings = hubSettings(options);
  return [...await hubModels(settings), ...await urlModels(settings)];
}

/** The caches of all repositories. */
async function repoCaches(settings: HubSettings): Promise<RepoCache[]> {
  return (await list(settings.cacheDir)).flatMap(({ name }) => {
    const match = /^models--(.+?)--(.+)$/.exec(name);
    return match ? [new RepoCache(settings, `${match[1]}/${match[2]}`)] : [];
  });
}

/** The models of the hub in the cache. */
export async function hubModels(settings: HubSettings): Promise<CachedEntry[]> {
  const found: CachedEntry[] = [];
  for (const cache of await repoCaches(settings)) {
    const { repo } = cache;
    const main = await cache.commit("main");
    const own: CachedEntry[] = [];
    for (const commit of await cache.commits()) {
      const paths = (await cache.files(commit)).filter((path) => /\.gguf$/i.test(path));
      const seen = new Set<string>();
      for (const path of paths) {
        const shards = shardsOf(path).filter((one) => paths.includes(one));
        if (seen.has(path)) continue;
        for (const one of shards) seen.add(one);
        const files = await Promise.all(shards.map((one) => cachedFile(cache, commit, one)));
        const revision = commit === main ? "main" : commit;
        own.push({
          name: formatModelName({ kind: "hub", repo, revision, file: shards[0]! }),
          quant: quantOf(path),
          commit,
          files,
          partial: [],
          bytes: 0,
          complete: shards.length === shardsOf(path).length,
        });
      }
    }
    for (const { name, commit, ...part } of await partialFiles(`${cache.folder}/blobs`)) {
      const file = hubName(name)?.file;
      const of = own.find((one) =>
        file !== undefined && one.commit === commit &&
        shardsOf(hubName(one.name)?.file ?? "").includes(file)
      );
      if (of !== undefined) of.partial.push(part);
      else {
        own.push({
          name: name ?? `hf:${repo}`,
          quant: file === undefined ? undefined : quantOf(file),
          commit,
          files: [],
          partial: [part],
          bytes: 0,
          complete: false,
        });
      }
    }
    found.push(...own);
  }
  return found.map(counted);
}

/** A name on the hub; undefined if it is another. */
function hubName(name: string | undefined): HubName | undefined {
  try {
    const parsed = name === undefined ? undefined : parseModelName(name);
    return parsed?.kind === "hub" ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function counted(entry: CachedEntry): CachedEntry {
  const bytes = [...entry.files, ...entry.partial].reduce((sum, { bytes }) => sum + bytes, 0);
  return { ...entry, bytes };
}

/** The files of a folder that were not fetched to their end. */
async function partialFiles(
  folder: string,
): Promise<(PartialFile & { name: string | undefined; commit: string | undefined })[]> {
  const targets = new Set((await list(folder)).flatMap(({ name }) => {
    const at = name.indexOf(PART);
    return at > 0 ? [`${folder}/${name.slice(0, at)}`] : [];
  }));
  return await Promise.all([...targets].map(async (target) => {
    const known = await readSidecar(target);
    const length = (await Deno.stat(partPath(target)).catch(absent))?.size ?? 0;
    const done = known?.done.reduce((sum, [start, end]) => sum + end - start, 0);
    return {
      target,
      bytes: done ?? length,
      size: known?.size,
      name: known?.name,
      commit: known?.commit,
    };
  }));
}

function shardsOf(path: string): string[] {
  try {
    return parseShardName(path) === undefined ? [path] : shardNames(path);
  } catch {
    return [path];
  }
}

async function cachedFile(cache: RepoCache, commit: string, file: string): Promise<CachedFile> {
  const { path, bytes, blob, hash, note } = await snapshotFile(cache, commit, file);
  return { path, blob: blob ?? path, bytes: (await Deno.stat(bytes)).size, hash, note };
}

async function urlModels(settings: HubSettings): Promise<CachedEntry[]> {
  const found: CachedEntry[] = [];
  for (const host of await list(settings.urlDir)) {
    if (/^(?:models--|\.)/.test(host.name) || !host.isDirectory) continue;
    for (const model of await list(`${settings.urlDir}/${host.name}`)) {
      const folder = `${settings.urlDir}/${host.name}/${model.name}`;
      const files: CachedFile[] = [];
      const names: string[] = [];
      for (const entry of await list(folder)) {
        if (!entry.name.endsWith(FACTS)) continue;
        const path = `${folder}/${entry.name.slice(0, -FACTS.length)}`;
        const facts = await readFacts(path);
        const bytes = (await Deno.stat(path).catch(absent))?.size;
        if (facts === undefined || bytes === undefined) continue;
        names.push(facts.url);
        files.push({ path, blob: path, bytes, hash: fileHash(facts.sha256), note: undefined });
      }
      const partial = await partialFiles(folder);
      names.push(...partial.flatMap(({ name }) => name ?? []));
      const path = files[0]?.path ?? partial[0]?.target;
      if (names.length === 0 || path === undefined) continue;
      found.push(counted({
        name: names[0]!,
        quant: quantOf(path),
        commit: undefined,
        files,
        partial: partial.map(({ target, bytes, size }) => ({ target, bytes, size })),
        bytes: 0,
        complete: shardsOf(path).length === files.length,
      }));
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
    if (own.file === undefined) return false;
    try {
      return chooseFiles(shardsOf(own.file), { ...parsed, revision: own.revision }).length > 0;
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
  return await hashFile(file.path, file.hash.algorithm, signal) === file.hash.hex;
}
