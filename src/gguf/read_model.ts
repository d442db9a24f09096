import { GgufError } from "./gguf_error.ts";
import { pathOf } from "./byte_source.ts";
import { listShards } from "./list_shards.ts";
import { readHeader } from "./read_header.ts";
import type { GgufHeader } from "./types.ts";

/** A model in one file or several. */
export interface GgufModel {
  /** The files, in order. */
  files: string[];
  /** The first file's header, with the tensors of all. */
  header: GgufHeader;
}

/**
 * Reads the headers of all the files of a model, from any one of them.
 *
 * @param path The path or file URL of one shard, or of a model in one file.
 * @returns The files in order, and the header with the tensors of all.
 * @throws {GgufError} If a file is missing, is not sound, or belongs to another model.
 *
 * @example
 * ```ts
 * import { GgufError, readModel } from "@rys/edge/gguf";
 * import { assertRejects } from "@std/assert";
 *
 * await assertRejects(() => readModel("no-such-file.gguf"), GgufError, "there is no such file");
 * ```
 */
export async function readModel(path: string | URL): Promise<GgufModel> {
  const files = await listShards(await pathOf(path));
  const header = await readHeader(files[0]!);
  if (header.splitCount !== files.length) {
    const problem = files.length === 1
      ? `it is shard ${
        header.splitNo + 1
      } of ${header.splitCount}, and its name does not tell the others'`
      : `it says that there are ${header.splitCount} shards, its name says ${files.length}`;
    throw new GgufError(problem, {
      file: files[0]!,
      field: 'key "split.count"',
      expected: `${files.length}`,
    });
  }
  const names = new Set(header.tensors.map((tensor) => tensor.name));
  const whole: GgufHeader = { ...header, tensors: [...header.tensors] };
  for (const [shard, file] of files.entries()) {
    const part = shard === 0 ? header : await readHeader(file);
    if (part.splitNo !== shard || part.splitCount !== files.length) {
      throw new GgufError(
        `it says that it is shard ${part.splitNo + 1} of ${part.splitCount}, its name says ${
          shard + 1
        } of ${files.length}`,
        { file, field: 'key "split.no"', expected: `${shard}` },
      );
    }
    if (shard === 0) continue;
    whole.size += part.size;
    whole.weightBytes += part.weightBytes;
    for (const tensor of part.tensors) {
      if (names.has(tensor.name)) {
        throw new GgufError("another shard has the same tensor", {
          file,
          field: `tensor ${JSON.stringify(tensor.name)}`,
        });
      }
      names.add(tensor.name);
      whole.tensors.push({ ...tensor, shard });
    }
  }
  const total = header.metadata.get("split.tensors.count")?.value;
  if (total !== undefined && Number(total) !== whole.tensors.length) {
    throw new GgufError(`${total} tensors were promised, the shards have ${whole.tensors.length}`, {
      file: files[0]!,
      field: 'key "split.tensors.count"',
    });
  }
  return { files, header: whole };
}
