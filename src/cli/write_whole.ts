import { fileError } from "./errors.ts";

/** Options of {@linkcode writeWhole}. */
export interface WriteWholeOptions {
  /** Stops the writing. */
  signal?: AbortSignal | undefined;
}

/**
 * Writes a file whole or not at all: the new file is written beside the old one and takes its place when it is on the
 * disk. A failure, as on a full disk, leaves only the old file. What is not a regular file (a device, a pipe)
 * is written to directly.
 *
 * @param path The file; if it is a link, the file that the link leads to is written.
 * @param data Its new content.
 * @param options A signal.
 * @throws {Failure} If it cannot be written.
 */
export async function writeWhole(
  path: string,
  data: string | Uint8Array,
  { signal }: WriteWholeOptions = {},
): Promise<void> {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  let beside: string | undefined;
  try {
    const old = await Deno.stat(path).catch(() => undefined);
    if (old !== undefined && !old.isFile && !old.isDirectory) {
      return await Deno.writeFile(path, bytes, signal ? { signal } : {});
    }
    const target = old === undefined ? path : await Deno.realPath(path);
    beside = `${target}.${crypto.randomUUID().slice(0, 8)}.partial`;
    {
      using file = await Deno.open(beside, { createNew: true, write: true });
      if (old?.mode) await Deno.chmod(beside, old.mode & 0o7777);
      for (let at = 0; at < bytes.length;) {
        signal?.throwIfAborted();
        at += await file.write(bytes.subarray(at, at + CHUNK));
      }
      await file.sync(); // a disk may report only now that it is full
    }
    await Deno.rename(beside, target);
  } catch (error) {
    if (beside !== undefined) await Deno.remove(beside).catch(() => {});
    signal?.throwIfAborted();
    throw fileError("write", path, error);
  }
}

/** Bytes written between two checks of the signal. */
const CHUNK = 1 << 22;
