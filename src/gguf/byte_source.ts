import { GgufError } from "./gguf_error.ts";

/** Bytes that can be read at any place. */
export interface ByteSource {
  /** Bytes in all. */
  readonly size: number;
  /** The name for messages. */
  readonly name?: string;
  /** Reads exactly `length` bytes from `offset`. */
  read(offset: number, length: number): Uint8Array | Promise<Uint8Array>;
}

/** What a header can be read from: a path, a file URL (as such or as text), or bytes in one of four forms. */
export type GgufSource = string | URL | Blob | Uint8Array | ArrayBuffer | ByteSource;

/** A source that is open. */
export interface OpenSource {
  readonly name: string;
  readonly size: number;
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** Opens a source; whoever does closes it. */
export async function openSource(source: GgufSource, name?: string): Promise<OpenSource> {
  if (typeof source === "string" || source instanceof URL) return await openFile(source, name);
  if (source instanceof ArrayBuffer) source = new Uint8Array(source);
  const close = () => Promise.resolve();
  if (source instanceof Uint8Array) {
    return {
      name: name ?? "bytes",
      size: source.length,
      read: (offset, length) => Promise.resolve(source.subarray(offset, offset + length)),
      close,
    };
  }
  if (source instanceof Blob) {
    const named = "name" in source && typeof source.name === "string" ? source.name : "blob";
    return {
      name: name ?? named,
      size: source.size,
      read: async (offset, length) =>
        new Uint8Array(await source.slice(offset, offset + length).arrayBuffer()),
      close,
    };
  }
  if (typeof source !== "object" || source === null || typeof source.read !== "function") {
    throw new TypeError(
      "A GGUF source must be a path, URL, Blob, Uint8Array, ArrayBuffer or an object with size and read",
    );
  }
  const file = name ?? source.name ?? "source";
  if (!Number.isSafeInteger(source.size) || source.size < 0) {
    throw new GgufError(`its size is ${source.size}, not a number of bytes`, { file });
  }
  return {
    name: file,
    size: source.size,
    read: async (offset, length) => await source.read(offset, length),
    close,
  };
}

/**
 * The path that a path or a file URL stands for.
 *
 * @throws {TypeError} If it is the URL of something else.
 */
export async function pathOf(file: string | URL): Promise<string> {
  if (typeof file === "string" && !/^file:\/\//i.test(file)) return file;
  const { fileURLToPath } = await import("node:url");
  return fileURLToPath(file);
}

async function openFile(path: string | URL, name?: string): Promise<OpenSource> {
  const file = name ?? String(path);
  if (typeof path === "string") path = await pathOf(path);
  // Only here: everything else in this folder runs in a browser too. Deno's own files have no positioned read.
  const { open } = await import("node:fs/promises");
  const failed = (error: unknown): never => {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const problem = code === "ENOENT"
      ? "there is no such file"
      : code === "EISDIR"
      ? "it is a directory, not a file"
      : `it cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    throw new GgufError(problem, { file, cause: error });
  };
  const handle = await open(path, "r").catch(failed);
  try {
    const stat = await handle.stat();
    if (stat.isDirectory()) throw new GgufError("it is a directory, not a file", { file });
    if (!stat.isFile()) throw new GgufError("it is not a regular file", { file });
    return {
      name: file,
      size: stat.size,
      read: async (offset, length) => {
        const bytes = new Uint8Array(length);
        let done = 0;
        while (done < length) {
          const { bytesRead } = await handle.read(bytes, done, length - done, offset + done).catch(
            failed,
          );
          if (bytesRead === 0) break;
          done += bytesRead;
        }
        return bytes.subarray(0, done);
      },
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}
