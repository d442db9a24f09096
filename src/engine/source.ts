import { fileURLToPath } from "node:url";
import { readHeader } from "../gguf/read_header.ts";
import { readModel } from "../gguf/read_model.ts";
import { type ByteSource, EngineError } from "./client.ts";

/** Where a model comes from: a path (of any shard of a split model), a `file:` URL, a `Blob`, or its bytes. */
export type ModelSource = string | URL | Blob | Uint8Array<ArrayBuffer>;

/**
 * Checks a model's header and gives its files to read from, first shard first.
 *
 * @throws {GgufError} If a file is no sound GGUF or a shard is missing.
 */
export async function openSources(source: ModelSource): Promise<ByteSource[]> {
  if (source instanceof Uint8Array) source = new File([source], "bytes"); // messages call it so
  if (source instanceof Blob) {
    const blob = source;
    await readHeader(blob);
    return [{
      size: blob.size,
      read: async (offset, n) => new Uint8Array(await blob.slice(offset, offset + n).arrayBuffer()),
    }];
  }
  if (source instanceof URL) {
    if (source.protocol !== "file:") {
      throw new TypeError(
        `Cannot load a model from ${source}: only file: URLs, paths, Blobs and bytes are read`,
      );
    }
    source = fileURLToPath(source);
  }
  if (typeof source !== "string") {
    throw new TypeError(
      `Cannot load a model from ${typeof source}: a path, URL, Blob or Uint8Array is needed`,
    );
  }
  const { files } = await readModel(source);
  return files.map(pathSource);
}

/**
 * A source that the engine's Worker opens itself.
 *
 * @throws {EngineError} If there is no such file.
 */
export function pathSource(path: string): ByteSource {
  let info: Deno.FileInfo;
  try {
    info = Deno.statSync(path);
  } catch (error) {
    throw new EngineError(
      error instanceof Deno.errors.NotFound
        ? `${path}: there is no such file`
        : `${path}: it cannot be read: ${error instanceof Error ? error.message : error}`,
    );
  }
  if (!info.isFile) throw new EngineError(`${path}: it is not a file`);
  return { size: info.size, path };
}
