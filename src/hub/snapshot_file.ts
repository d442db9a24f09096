import { absent, list, type RepoCache } from "./cache.ts";
import { type FileHash, fileHash } from "./repository.ts";

/** A file of a snapshot. */
export interface SnapshotFile {
  /** Its path in the snapshot. */
  path: string;
  /** Where its bytes are: a blob, or the file itself where the blob is a copy of it or not there. */
  bytes: string;
  /** The blob by the hash; there need not be one. */
  blob: string | undefined;
  /** What the bytes must hash to, if that is known. */
  hash: FileHash | undefined;
  /** Where it is written down that the bytes were checked. */
  note: string;
}

/**
 * Looks at a file of a snapshot. As a rule it is a link to a blob, whose name is the hash. Where symbolic links are not
 * allowed it is a hard link or a copy: then the hash is what we wrote down when we made it, or the name of the blob that
 * is the same file.
 *
 * @param cache The repository's folders.
 * @param commit The commit.
 * @param file Path in the repository.
 * @param known What it must hash to, if the hub says so.
 * @throws {Deno.errors.NotFound} If there is no such file.
 */
export async function snapshotFile(
  cache: RepoCache,
  commit: string,
  file: string,
  known?: FileHash,
): Promise<SnapshotFile> {
  const path = cache.snapshot(commit, file);
  const real = (await Deno.realPath(path)).replaceAll("\\", "/");
  const name = /\/blobs\/([^/]+)$/.exec(real)?.[1];
  if (name !== undefined) {
    const hash = fileHash(name);
    return { path, bytes: real, blob: real, hash, note: cache.checkedNote(name) };
  }
  const note = cache.copyNote(commit, file);
  const noted = fileHash((await Deno.readTextFile(note).catch(absent))?.split(" ")[0]);
  const hash = known ?? noted ?? fileHash(await hardLinked(cache, path));
  return { path, bytes: path, blob: hash && cache.blob(hash.hex), hash, note };
}

/** The name of the blob that is the same file. */
async function hardLinked(cache: RepoCache, path: string): Promise<string | undefined> {
  const { dev, ino, nlink } = await Deno.stat(path);
  if (ino === null || (nlink ?? 1) < 2) return undefined;
  for (const { name } of await list(`${cache.folder}/blobs`)) {
    const info = await Deno.stat(cache.blob(name)).catch(absent);
    if (info?.ino === ino && info.dev === dev) return name;
  }
  return undefined;
}

/**
 * Whether the bytes were checked since they were last written.
 *
 * @param file The file.
 */
export async function isChecked({ bytes, hash, note }: NotedFile): Promise<boolean> {
  const known = await Deno.readTextFile(note).catch(() => undefined);
  return known === await stamp(bytes, hash);
}

/** Notes that the bytes were checked. */
export async function noteChecked({ bytes, hash, note }: NotedFile): Promise<void> {
  // A cache that may be read only is checked each time.
  try {
    await Deno.mkdir(note.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(note, await stamp(bytes, hash));
  } catch { /* see above */ }
}

/** What a note is about. */
type NotedFile = Pick<SnapshotFile, "bytes" | "hash" | "note">;

async function stamp(path: string, hash: FileHash | undefined): Promise<string> {
  const { size, mtime } = await Deno.stat(path);
  return `${hash?.hex} ${size} ${Math.floor((mtime?.getTime() ?? 0) / 1000)}`;
}
