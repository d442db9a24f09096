// What a disk says: how much is free, and why a file could not be written.

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the user's share of the disk is full",
  EFBIG: "the file system or a limit of the process does not allow so large a file",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EIO: "the disk fails",
};

/** Errors to which Deno gives no code, by the system's words. */
const WORDS: readonly (readonly [code: string, words: RegExp])[] = [
  ["EFBIG", /file too large/i],
  ["EDQUOT", /quota exceeded/i],
];

/** The system's code of an error, such as `ENOSPC`; empty if it has none. */
export function diskCode(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if ("code" in error && typeof error.code === "string") return error.code;
  return WORDS.find(([, words]) => words.test(error.message))?.[0] ?? "";
}

/**
 * Why a file could not be read or written.
 *
 * @param error What was thrown.
 */
export function diskReason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return REASONS[diskCode(error)] ?? text.replace(/ \(os error \d+\).*$/s, "");
}

/**
 * How much can still be written, where that can be told: Deno's permission for it (`--allow-sys=statfs`) is used if it is
 * there, and never asked for.
 *
 * @param folder A folder on the disk.
 * @returns Bytes; undefined if it cannot be told.
 */
export async function freeSpace(folder: string): Promise<number | undefined> {
  const { state } = Deno.permissions.querySync({ name: "sys", kind: "statfs" as "hostname" });
  if (state !== "granted") return undefined;
  const { statfs } = await import("node:fs/promises");
  const info = await statfs(folder).catch(() => undefined);
  // A file system that counts no blocks at all tells nothing.
  if (info === undefined || info.blocks === 0) return undefined;
  return info.bavail * info.bsize;
}
