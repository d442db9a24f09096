import type { FileHash } from "./repository.ts";

const CHUNK = 4 << 20;

/**
 * Hashes a file.
 *
 * @param path The file.
 * @param algorithm SHA-256, or the SHA-1 by which git names a file.
 * @param signal Ends it.
 * @param onBytes Told how many bytes are hashed.
 * @returns The hash in hexadecimal digits.
 */
export async function hashFile(
  path: string,
  algorithm: FileHash["algorithm"],
  signal?: AbortSignal,
  onBytes: (bytes: number) => void = () => {},
): Promise<string> {
  const { createHash } = await import("node:crypto");
  using file = await Deno.open(path);
  const hash = createHash(algorithm === "sha256" ? "sha256" : "sha1");
  if (algorithm === "git-sha1") hash.update(`blob ${(await file.stat()).size}\0`);
  const buffer = new Uint8Array(CHUNK);
  for (let done = 0;;) {
    signal?.throwIfAborted();
    const n = await file.read(buffer);
    if (n === null) return hash.digest("hex");
    hash.update(buffer.subarray(0, n));
    onBytes(done += n);
  }
}
