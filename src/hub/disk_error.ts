import { HubError } from "./hub_error.ts";

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the user's share of the disk is full",
  EFBIG: "the file system or a limit of the process does not allow so large a file",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EIO: "the disk fails",
};

/**
 * Why a file could not be written, as an error that says what helps.
 *
 * @param path The file.
 * @param error What was thrown; a {@linkcode HubError} stays as it is.
 */
export function diskError(path: string, error: unknown): HubError {
  if (error instanceof HubError) return error;
  const folder = path.replace(/\/[^/]*$/, "");
  if (error instanceof Deno.errors.NotCapable) {
    return new HubError(
      "permission",
      `Deno may not write to ${folder}; run it with --allow-write, or --allow-write=${folder}, or name another cache by HF_HUB_CACHE`,
      { cause: error },
    );
  }
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const why = REASONS[code] ?? (error instanceof Error ? error.message : String(error));
  const helps = ["ENOSPC", "EDQUOT"].includes(code)
    ? '; make room ("ls" shows the models in the cache, "rm" removes one) and run it again: what was fetched is kept'
    : "; HF_HUB_CACHE names another place";
  return new HubError("disk", `cannot write ${path}: ${why}${helps}`, { cause: error });
}

/**
 * Refuses to fetch what does not fit on the disk. Where the free space cannot be told, nothing is refused.
 *
 * @param folder A folder on the disk.
 * @param bytes What is still to be written.
 */
export async function checkRoom(folder: string, bytes: number): Promise<void> {
  const { state } = Deno.permissions.querySync({ name: "sys", kind: "statfs" as "hostname" });
  if (state !== "granted") return;
  const { statfs } = await import("node:fs/promises");
  const info = await statfs(folder).catch(() => undefined);
  // A file system that counts no blocks at all tells nothing.
  if (info === undefined || info.blocks === 0) return;
  const free = info.bavail * info.bsize;
  if (free >= bytes) return;
  const mib = (n: number) => `${Math.ceil(n / 2 ** 20)} MiB`;
  throw new HubError(
    "disk",
    `there is no room in ${folder}: ${mib(bytes)} are still to be fetched, and ${
      mib(free)
    } are free; "ls" shows the models in the cache, "rm" removes one, HF_HUB_CACHE names another place`,
  );
}
