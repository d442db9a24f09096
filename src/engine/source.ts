import { GgufError } from "../gguf/gguf_error.ts";
import { readHeader } from "../gguf/read_header.ts";
import { type GgufModel, readModel } from "../gguf/read_model.ts";
import { isRemoteName } from "../hub/model_name.ts";
import type { HubOptions } from "../hub/settings.ts";
import { EngineError, type EngineFile } from "./client.ts";

/**
 * Where a model comes from: a path (of any shard of a split model), a `file:` URL (as such or as text), a name on the hub
 * (`hf:owner/repo:Q4_K_M`) or an `https:` URL, which is fetched into the cache first, a `Blob`, its bytes, or the result of {@linkcode readModel}, whose header is then not read again.
 */
export type ModelSource = string | URL | Blob | Uint8Array<ArrayBuffer> | ArrayBuffer | GgufModel;

/**
 * Checks a model's header and returns its files, first shard first.
 *
 * @throws {GgufError} If a file is not a sound GGUF or a shard is missing.
 */
export async function openSources(
  source: ModelSource,
  hub: HubOptions = {},
): Promise<EngineFile[]> {
  if (source instanceof Uint8Array || source instanceof ArrayBuffer) {
    source = new File([source], "bytes"); // its name in messages
  }
  if (source instanceof Blob) {
    const blob = source;
    await readHeader(blob);
    return [{
      size: blob.size,
      read: async (offset, n) => new Uint8Array(await blob.slice(offset, offset + n).arrayBuffer()),
    }];
  }
  if ((typeof source === "string" || source instanceof URL) && isRemoteName(String(source))) {
    // Only here: a model on this machine needs neither the network nor its permissions.
    const { fetchModel } = await import("../hub/fetch_model.ts");
    source = (await fetchModel(source, hub))[0]!;
  } else if (source instanceof URL && source.protocol !== "file:") {
    throw new TypeError(
      `Cannot load a model from ${source}: paths, file: and https: URLs, hf: names, Blobs and bytes are read`,
    );
  }
  if (typeof source === "string" || source instanceof URL) source = await readModel(source);
  if (!isModel(source)) {
    throw new TypeError(
      `Cannot load a model from ${typeof source}: a path, URL, Blob, Uint8Array, ArrayBuffer or what readModel() gives is needed`,
    );
  }
  const { files, header } = source;
  const sources = files.map(pathSource);
  const size = sources.reduce((sum, { size }) => sum + size, 0);
  if (size !== header.size) {
    throw new GgufError(
      `it has changed since its header was read: ${size} bytes, ${header.size} before`,
      { file: files[0]! },
    );
  }
  return sources;
}

function isModel(source: unknown): source is GgufModel {
  return typeof source === "object" && source !== null && "files" in source && "header" in source;
}

/**
 * A file that the engine's Worker opens itself.
 *
 * @throws {EngineError} If there is no such file.
 */
export function pathSource(path: string): EngineFile {
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
