import { shardNames } from "../gguf/list_shards.ts";
import { chooseFiles } from "./choose_files.ts";
import { type CachedModel, findCached, RepoCache } from "./cache.ts";
import { HubError } from "./hub_error.ts";
import { formatModelName, type HubName, parseModelName, type UrlName } from "./model_name.ts";
import { probeFile, type RemoteFile } from "./remote_file.ts";
import { type FileHash, readRepository } from "./repository.ts";
import { type HubOptions, type HubSettings, hubSettings } from "./settings.ts";
import { findUrlModel, lastPart } from "./url_cache.ts";

/** A model on this machine. */
export interface LocalModel {
  /** Where it is. */
  kind: "file";
  /** The name that was asked for. */
  name: string;
  /** The first file. */
  path: string;
  /** All files, in order; for a path that was given, that path alone, which may be any shard. */
  paths: string[];
  /** Its place in the hub's cache, with the hashes if the hub was asked for them; undefined for other files. */
  repository?: { repo: string; commit: string; paths: string[]; hashes?: FileHash[] };
}

/** A model that would have to be fetched. */
export interface RemoteModel {
  /** Where it is. */
  kind: "remote";
  /** The name that was asked for. */
  name: string;
  /** Its files, in order. */
  files: RemoteFile[];
  /** Bytes of all files. */
  size: number;
  /** Its place in the hub's cache; undefined for other servers. */
  repository: { repo: string; revision: string; commit: string; paths: string[] } | undefined;
}

/**
 * Finds out which files a name stands for, and fetches none of them. A path is taken as it is. A name on the hub
 * (`hf:owner/repo[:quant]`, `hf:owner/repo/file.gguf`, `@revision` after the repository) or a URL is looked for in the
 * cache and asked for on the network; if that cannot be reached, what the cache has is taken.
 *
 * Only names that are not paths read the environment, the cache or the network, and need Deno's permission for it.
 *
 * @param name The name.
 * @param options Endpoint, token, cache.
 * @returns Paths to read; or files to read with {@linkcode openRemote}, or to fetch.
 * @throws {SyntaxError} If the name is malformed.
 * @throws {HubError} If there is no such model, or it may not be read; the message says what helps.
 *
 * @example
 * ```ts
 * import { resolveModel } from "@rys/edge";
 * import { assertEquals } from "@std/assert";
 *
 * const model = await resolveModel("models/demo.gguf");
 * assertEquals(model.kind === "file" && model.path, "models/demo.gguf");
 * ```
 */
export async function resolveModel(
  name: string | URL,
  options: HubOptions = {},
): Promise<LocalModel | RemoteModel> {
  const text = String(name);
  if (parseModelName(name).kind === "file") {
    return { kind: "file", name: text, path: text, paths: [text] };
  }
  return await resolveRemote(text, hubSettings(options));
}

/** The same for a name that is not a path. */
export async function resolveRemote(
  text: string,
  settings: HubSettings,
): Promise<LocalModel | RemoteModel> {
  const parsed = parseModelName(text, settings.endpoint);
  if (parsed.kind === "file") throw new TypeError(`${text} is a path`);
  return parsed.kind === "hub"
    ? await resolveHub(parsed, settings)
    : await resolveUrl(parsed, settings);
}

async function resolveHub(
  name: HubName,
  settings: HubSettings,
): Promise<LocalModel | RemoteModel> {
  const text = formatModelName(name);
  const cached = await findCached(name, settings);
  const local = ({ commit, files, paths }: CachedModel, hashes?: FileHash[]): LocalModel => ({
    kind: "file",
    name: text,
    path: paths[0]!,
    paths,
    repository: { repo: name.repo, commit, paths: files, ...hashes ? { hashes } : {} },
  });
  if (settings.offline) {
    if (cached !== undefined) return local(cached);
    throw notCached(text, settings.cacheDir);
  }
  // The files of a commit never change; without a file's name, which one is meant depends on what else there is.
  if (cached?.commit === name.revision && name.file !== undefined) return local(cached);
  let repository;
  try {
    repository = await readRepository(name, settings);
  } catch (error) {
    if (cached === undefined || !(error instanceof HubError) || error.kind !== "network") {
      throw error;
    }
    settings.onNote(`${error.message}; the copy in the cache is used`);
    return local(cached);
  }
  const { commit } = repository;
  const chosen = chooseFiles(repository.files.map(({ path }) => path), name);
  const cache = new RepoCache(settings, name.repo);
  const byPath = new Map(repository.files.map((file) => [file.path, file]));
  const paths = chosen.map((path) => cache.snapshot(commit, path));
  if (
    (await Promise.all(chosen.map((path, i) => hasSize(paths[i]!, byPath.get(path)!.size)))).every(
      Boolean,
    )
  ) {
    await cache.setCommit(name.revision, commit).catch(() => {}); // a cache that may not be written
    return local({ commit, files: chosen, paths }, chosen.map((path) => byPath.get(path)!.hash));
  }
  const encoded = (path: string) => path.split("/").map(encodeURIComponent).join("/");
  const files = chosen.map((path): RemoteFile => {
    const { size, hash } = byPath.get(path)!;
    return {
      name: path.replace(/^.*\//, ""),
      url: new URL(`${settings.endpoint}/${name.repo}/resolve/${commit}/${encoded(path)}`),
      size,
      hash,
      etag: hash.hex,
      about: { name: text, repo: name.repo, revision: name.revision, file: path },
    };
  });
  const { repo, revision } = name;
  return {
    kind: "remote",
    name: text,
    files,
    size: files.reduce((sum, { size }) => sum + size, 0),
    repository: { repo, revision, commit, paths: chosen },
  };
}

async function resolveUrl(
  { url }: UrlName,
  settings: HubSettings,
): Promise<LocalModel | RemoteModel> {
  const text = url.href;
  const names = shardNames(url.pathname);
  const urls = names.map((path) => Object.assign(new URL(url), { pathname: path }));
  const cached = await findUrlModel(urls, settings);
  const local = (paths: string[]): LocalModel => ({
    kind: "file",
    name: text,
    path: paths[0]!,
    paths,
  });
  if (settings.offline) {
    if (cached !== undefined) return local(cached.paths);
    throw notCached(text, settings.urlDir);
  }
  const files: RemoteFile[] = [];
  try {
    for (const one of urls) {
      const about = { name: text };
      const { size, hash, etag } = await probeFile(one, about, settings);
      const name = lastPart(one) || one.host;
      files.push({ name, url: one, size, hash, etag, about });
    }
  } catch (error) {
    if (cached === undefined || !(error instanceof HubError) || error.kind !== "network") {
      throw error;
    }
    settings.onNote(`${error.message}; the copy in the cache is used`);
    return local(cached.paths);
  }
  const isSame = cached !== undefined &&
    files.every(({ size, etag }, i) =>
      cached.facts[i]!.size === size && cached.facts[i]!.etag === (etag ?? "")
    );
  if (isSame) return local(cached.paths);
  return {
    kind: "remote",
    name: text,
    files,
    size: files.reduce((sum, { size }) => sum + size, 0),
    repository: undefined,
  };
}

async function hasSize(path: string, size: number): Promise<boolean> {
  const info = await Deno.stat(path).catch(() => undefined);
  return info?.isFile === true && info.size === size;
}

function notCached(name: string, folder: string): HubError {
  return new HubError(
    "offline",
    `${name}: it is not in the cache (${folder}), and the network may not be used (--offline, HF_HUB_OFFLINE or LLAMA_ARG_OFFLINE); "pull ${name}" fetches it`,
  );
}
