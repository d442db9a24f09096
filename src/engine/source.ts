import { listShards } from "../gguf/list_shards.ts";
import type { ByteSource } from "./client.ts";

/** Where a model comes from: a path, a `file:` URL, a `Blob`, its bytes, or the shards of a split model in any order. */
export type ModelSource = string | URL | Blob | Uint8Array<ArrayBuffer>;

/** The sources of a model's files, first shard first. */
export async function openSources(source: ModelSource): Promise<ByteSource[]> {
  if (source instanceof Blob) return [blobSource(source)];
  if (source instanceof Uint8Array) return [blobSource(new Blob([source]))];
  const path = source instanceof URL ? filePath(source) : source;
  const shards = await listShards(path);
  return shards.map(pathSource);
}

function filePath(url: URL): string {
  if (url.protocol !== "file:") {
    throw new TypeError(`Cannot load a model from ${url}: only file: URLs, paths, Blobs and bytes are read`);
  }
  return decodeURIComponent(url.pathname);
}

function blobSource(blob: Blob): ByteSource {
  return {
    size: blob.size,
    read: async (offset, n) => new Uint8Array(await blob.slice(offset, offset + n).arrayBuffer()),
  };
}

/** A source that the engine's Worker opens itself. */
export function pathSource(path: string): ByteSource {
  return { size: Deno.statSync(path).size, path };
}

