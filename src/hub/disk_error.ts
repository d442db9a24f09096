import { diskCode, diskReason, freeSpace } from "../disk.ts";
import { HubError } from "./hub_error.ts";

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
  const helps = ["ENOSPC", "EDQUOT"].includes(diskCode(error))
    ? '; make room ("ls" shows the models in the cache, "rm" removes one) and run it again: what was fetched is kept'
    : "; HF_HUB_CACHE names another place";
  return new HubError("disk", `cannot write ${path}: ${diskReason(error)}${helps}`, {
    cause: error,
  });
}

/**
 * Refuses to fetch what does not fit on the disk. Where the free space cannot be told, nothing is refused.
 *
 * @param folder A folder on the disk.
 * @param bytes What is still to be written.
 */
export async function checkRoom(folder: string, bytes: number): Promise<void> {
  const free = await freeSpace(folder);
  if (free === undefined || free >= bytes) return;
  const mib = (n: number) => `${Math.ceil(n / 2 ** 20)} MiB`;
  throw new HubError(
    "disk",
    `there is no room in ${folder}: ${mib(bytes)} are still to be fetched, and ${
      mib(free)
    } are free; "ls" shows the models in the cache, "rm" removes one, HF_HUB_CACHE names another place`,
  );
}
