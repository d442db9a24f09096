import { chooseFiles } from "./choose_files.ts";
import { HubError } from "./hub_error.ts";
import { type HubName, isInside } from "./model_name.ts";
import { isCommit } from "./repository.ts";
import type { HubSettings } from "./settings.ts";

/** A model's files in the cache. */
export interface CachedModel {
  /** The commit. */
  commit: string;
  /** Their paths in the repository. */
  files: string[];
  /** Their paths on this machine, in the commit's snapshot. */
  paths: string[];
}

/** The folders of a repository in the hub's cache, which other programs of the hub read and write as well. */
export class RepoCache {
  /** The repository's folder. */
  readonly folder: string;
  /** Where its locks are and what we note about its files: beside the cache's folders, where no program lists it. */
  readonly locks: string;

  /**
   * @param settings Where the cache is.
   * @param repo The repository.
   */
  constructor(settings: HubSettings, readonly repo: string) {
    this.folder = `${settings.cacheDir}/${repoFolderName(repo)}`;
    this.locks = `${settings.cacheDir}/.locks/${repoFolderName(repo)}`;
  }

  /** Where a file's bytes are, whatever its name is. */
  blob(hex: string): string {
    return `${this.folder}/blobs/${hex}`;
  }

  /** Where a file of a commit is: a link to its bytes, or they themselves. */
  snapshot(commit: string, path: string): string {
    return `${this.folder}/snapshots/${commit}/${path}`;
  }

  /** The lock of a blob. */
  lock(hex: string): string {
    return `${this.locks}/${hex}.lock`;
  }

  /** The note that a blob was checked. */
  checkedNote(hex: string): string {
    return `${this.locks}/${hex}.rys-checked`;
  }

  /** The note about a file of a snapshot that is no symbolic link: its hash, and that it was checked. */
  copyNote(commit: string, path: string): string {
    return `${this.locks}/${commit}/${path}.rys-checked`;
  }

  /** The commit that a revision was when it was last asked for; undefined if it never was. */
  async commit(revision: string): Promise<string | undefined> {
    if (isCommit(revision)) return revision;
    if (!isInside(revision)) return undefined;
    const text = await Deno.readTextFile(`${this.folder}/refs/${revision}`).catch(absent);
    const commit = text?.trim() ?? "";
    return isCommit(commit) ? commit : undefined;
  }

  /** Remembers which commit a revision is. */
  async setCommit(revision: string, commit: string): Promise<void> {
    if (isCommit(revision) || await this.commit(revision) === commit) return;
    const path = `${this.folder}/refs/${revision}`;
    await Deno.mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
    // Not half a commit, if two processes write it.
    const part = `${path}.${crypto.randomUUID()}`;
    await Deno.writeTextFile(part, commit);
    await Deno.rename(part, path);
  }

  /** The files of a commit that are here, with slashes in their paths. */
  async files(commit: string): Promise<string[]> {
    const root = `${this.folder}/snapshots/${commit}`;
    const found: string[] = [];
    const walk = async (below: string): Promise<void> => {
      for (const entry of await list(`${root}${below}`)) {
        const path = `${below}/${entry.name}`;
        if (entry.isDirectory) await walk(path);
        // A link to bytes that are gone is not a file.
        else if ((await Deno.stat(root + path).catch(absent))?.isFile) found.push(path.slice(1));
      }
    };
    await walk("");
    return found;
  }

  /** The commits that have a snapshot. */
  async commits(): Promise<string[]> {
    const entries = await list(`${this.folder}/snapshots`);
    return entries.filter(({ name, isDirectory }) => isDirectory && isCommit(name))
      .map(({ name }) => name);
  }
}

/** The folder of a repository in the cache. */
export function repoFolderName(repo: string): string {
  return `models--${repo.replaceAll("/", "--")}`;
}

/**
 * Finds a model in the cache, without asking the hub.
 *
 * @param name The model.
 * @param settings Where the cache is.
 * @returns Its files; undefined if they are not all there.
 */
export async function findCached(
  name: HubName,
  settings: HubSettings,
): Promise<CachedModel | undefined> {
  const cache = new RepoCache(settings, name.repo);
  const commit = await cache.commit(name.revision);
  if (commit === undefined) return undefined;
  try {
    const files = chooseFiles(await cache.files(commit), name);
    return { commit, files, paths: files.map((path) => cache.snapshot(commit, path)) };
  } catch (error) {
    if (error instanceof HubError) return undefined;
    throw error;
  }
}

/** The entries of a folder; none if there is no folder. */
export async function list(folder: string): Promise<Deno.DirEntry[]> {
  const entries: Deno.DirEntry[] = [];
  try {
    for await (const entry of Deno.readDir(folder)) entries.push(entry);
  } catch (error) {
    absent(error);
  }
  return entries.sort((a, b) => a.name < b.name ? -1 : 1);
}

/** Lets "there is no such file" be undefined, and everything else an error. */
export function absent(error: unknown): undefined {
  if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
    return undefined;
  }
  throw error;
}
