import { absent } from "./cache.ts";
import { diskError } from "./disk_error.ts";
import { pause } from "./http.ts";

/** How often a lock that another process holds is tried again, in milliseconds. */
const POLL_MS = 200;

/**
 * Runs `use` while no other process does so under the same lock. The system gives the lock back when its holder ends,
 * however it ends. The hub's Python programs lock the same file in the same way.
 *
 * @param path The lock's file; its folder is made, and it stays.
 * @param signal Ends the waiting.
 * @param onWait Called again and again while another process holds it.
 * @param use What to do.
 */
export async function withLock<T>(
  path: string,
  signal: AbortSignal | undefined,
  onWait: () => Promise<void> | void,
  use: () => Promise<T>,
): Promise<T> {
  for (;;) {
    using file = await openLock(path);
    while (!await tryLock(file)) {
      await onWait();
      await pause(POLL_MS, signal);
    }
    // Who removes the model removes the lock as well: then this is no longer the one that others take.
    if (await isStill(path, file)) return await use();
  }
}

/**
 * Runs `use` under a lock if no other process holds it, and removes the lock's file.
 *
 * @param path The lock's file.
 * @param use What to do.
 * @returns Whether it was done.
 */
export async function withFreeLock(path: string, use: () => Promise<void>): Promise<boolean> {
  {
    using file = await openLock(path);
    if (!await tryLock(file)) return false;
    await use();
    // Windows removes no file that is open.
    if (await Deno.remove(path).then(() => true, () => false)) return true;
  }
  await Deno.remove(path).catch(() => {});
  return true;
}

async function isStill(path: string, file: Deno.FsFile): Promise<boolean> {
  const [mine, there] = [await file.stat(), await Deno.stat(path).catch(absent)];
  return there !== undefined && there.ino === mine.ino;
}

async function openLock(path: string): Promise<Deno.FsFile> {
  try {
    await Deno.mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
    return await Deno.open(path, { create: true, read: true, write: true });
  } catch (error) {
    throw diskError(path, error);
  }
}

async function tryLock(file: Deno.FsFile): Promise<boolean> {
  try {
    return await file.tryLock(true);
  } catch (error) {
    // Some network file systems have no locks: there, two processes that fetch the same file both do the work.
    if (error instanceof Deno.errors.NotSupported || codeOf(error) === "ENOLCK") return true;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
