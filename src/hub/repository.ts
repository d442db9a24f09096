import { follow, refusal, Retryable, retrying } from "./http.ts";
import { HubError } from "./hub_error.ts";
import { formatModelName, type HubName, isInside } from "./model_name.ts";
import type { HubSettings } from "./settings.ts";

/** How a file's bytes are checked: by the hub's SHA-256, or by git's own SHA-1 of a file that is not in LFS. */
export interface FileHash {
  /** What is computed. */
  algorithm: "sha256" | "git-sha1";
  /** In lower-case hexadecimal digits. */
  hex: string;
}

/** A file in a repository. */
export interface RepoFile {
  /** Path in the repository. */
  path: string;
  /** Bytes. */
  size: number;
  /** Its hash. */
  hash: FileHash;
}

/** A repository at one commit. */
export interface Repository {
  /** The commit, 40 hexadecimal digits. */
  commit: string;
  /** Its files. */
  files: RepoFile[];
}

/** Most files that a repository may list. */
const MAX_FILES = 100_000;

/** Whether a revision is a commit, whose files never change. */
export function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/.test(revision);
}

/**
 * A hash by its digits, as the hub's etags have it.
 *
 * @param hex 64 digits (SHA-256) or 40 (git's SHA-1); quotation marks and `W/` are ignored.
 * @returns The hash; undefined if it is none.
 */
export function fileHash(hex: string | null | undefined): FileHash | undefined {
  const digits = /^(?:W\/)?"?([0-9a-f]{64}|[0-9a-f]{40})"?$/.exec(hex ?? "")?.[1];
  if (digits === undefined) return undefined;
  return { algorithm: digits.length === 64 ? "sha256" : "git-sha1", hex: digits };
}

/**
 * Asks the hub for a repository's commit and files.
 *
 * @param name The repository and its revision.
 * @param settings Endpoint, token.
 * @throws {HubError} If there is none, or it cannot be asked.
 */
export async function readRepository(
  name: HubName,
  settings: HubSettings,
): Promise<Repository> {
  const { listFiles, modelInfo } = await import("@huggingface/hub");
  const { repo, revision } = name;
  const about = { name: formatModelName(name), repo, revision };
  // The library's own errors do not keep the headers that say what is wrong.
  const viaUs = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const followed = await follow(url, init ?? {}, settings);
    if (!followed.response.ok) throw await refusal(followed, about, settings);
    return followed.response;
  };
  const common = { hubUrl: settings.endpoint, fetch: viaUs as typeof fetch };
  const ask = <T>(attempt: () => Promise<T>) =>
    retrying(settings, () => attempt().catch((error) => malformed(error, about.name, settings)));
  const commit = isCommit(revision) ? revision : await ask(async () => {
    const { sha } = await modelInfo({ ...common, name: repo, revision, additionalFields: ["sha"] });
    if (!isCommit(sha)) throw new TypeError("its commit is missing");
    return sha;
  });
  const files = await ask(async () => {
    const found: RepoFile[] = [];
    for await (
      const { type, path, size, oid, lfs } of listFiles({
        ...common,
        repo,
        revision: commit,
        recursive: true,
      })
    ) {
      const hash = fileHash(lfs?.oid ?? oid);
      if (type !== "file" || !isInside(path) || !Number.isSafeInteger(size) || size < 0) continue;
      if (hash === undefined) continue;
      if (found.push({ path, size, hash }) > MAX_FILES) break;
    }
    return found;
  });
  return { commit, files };
}

function malformed(error: unknown, name: string, settings: HubSettings): never {
  if (error instanceof HubError || error instanceof Retryable) throw error;
  settings.signal?.throwIfAborted();
  throw new HubError(
    "network",
    `${name}: ${settings.endpoint} does not answer as the hub does: ${
      error instanceof Error ? error.message : error
    }`,
    { cause: error },
  );
}
