import type { GgufModel } from "../gguf/read_model.ts";
import { readModel, readModelFiles } from "../gguf/read_model.ts";
import { openRemote } from "./remote_file.ts";
import { resolveModel } from "./resolve.ts";
import type { HubOptions } from "./settings.ts";

/** A model by its name, of which only the header was read. */
export interface NamedModel extends GgufModel {
  /** The name, as it was given. */
  name: string;
  /** Its files are elsewhere: `files` holds their names, not paths. */
  isRemote: boolean;
}

/**
 * Reads a model's header by its name: a path, `hf:owner/repo[:quant]`, or a URL. Of a model that is elsewhere a few MB
 * are fetched, and no tensors; the cache is used if the model is there, and nothing is put into it.
 *
 * @param name The name.
 * @param options Endpoint, token, cache, signal.
 * @returns The header with the tensors of all files.
 * @throws {HubError} If there is no such model, or it may not be read.
 * @throws {GgufError} If it is not a sound model.
 *
 * @example
 * ```ts
 * import { readNamedModel } from "@rys/edge";
 * import { assertEquals } from "@std/assert";
 *
 * const { header, isRemote } = await readNamedModel("models/demo.gguf");
 * assertEquals([header.nLayer, isRemote], [40, false]);
 * ```
 */
export async function readNamedModel(name: string, options: HubOptions = {}): Promise<NamedModel> {
  const found = await resolveModel(name, options);
  if (found.kind === "file") return { name, isRemote: false, ...await readModel(found.path) };
  const model = await readModelFiles(found.files.map((file) => ({
    name: found.files.length === 1 ? found.name : `${found.name} ${file.name}`,
    source: openRemote(file, options),
  })));
  return { name, isRemote: true, ...model };
}
