import { type GgufSource, pathOf } from "./byte_source.ts";
import { GgufError } from "./gguf_error.ts";
import { listShards, parseShardName, shardNames } from "./list_shards.ts";
import { readHeader } from "./read_header.ts";
import type { GgufHeader } from "./types.ts";

/** A model in one file or several. */
export interface GgufModel {
  /** The files, in order. */
  files: string[];
  /** The first file's header, with the tensors of all. */
  header: GgufHeader;
}

/** One file of a model, for {@linkcode readModelFiles}. */
export interface ModelFileSource {
  /** Its name, which says which shard it is if there are several. */
  name: string;
  /** Its bytes. */
  source: GgufSource;
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
  return await readInOrder(files.map((name) => ({ name, source: name })));
}

/**
 * Reads the headers of the files of a model that are given one by one, in any order.
 *
 * @param files All of them. The names of several say which shard each is.
 * @returns Their names in order, and the header with the tensors of all.
 * @throws {GgufError} If one is missing or stands there twice, is not sound, or belongs to another model.
 *
 * @example
 * ```ts
 * import { GgufError, readModelFiles } from "@rys/edge/gguf";
 * import { assertRejects } from "@std/assert";
 *
 * const files = [{ name: "big-00002-of-00002.gguf", source: new Uint8Array(24) }];
 * await assertRejects(() => readModelFiles(files), GgufError, "shard 1 of 2 is missing: big-00001-of-00002.gguf");
 * ```
 */
export async function readModelFiles(files: readonly ModelFileSource[]): Promise<GgufModel> {
  const first = files[0];
  if (first === undefined) throw new TypeError("A model has at least one file");
  const names = shardNames(first.name);
  const wrong = (problem: string, file = first.name): never => {
    throw new GgufError(problem, { file, field: "name" });
  };
  const byName = new Map<string, ModelFileSource>();
  for (const file of files) {
    if (byName.has(file.name)) wrong("the file is given twice", file.name);
    if (!names.includes(file.name)) {
      wrong(
        parseShardName(file.name) === undefined || names.length === 1
          ? "it is not a shard of one model with the others"
          : `it is no shard of the same model as ${first.name}`,
        file.name,
      );
    }
    byName.set(file.name, file);
  }
  const missing = names.findIndex((name) => !byName.has(name));
  if (missing >= 0) {
    wrong(`shard ${missing + 1} of ${names.length} is missing: ${names[missing]}`);
  }
  return await readInOrder(names.map((name) => byName.get(name)!));
}

const headerOf = ({ name, source }: ModelFileSource) => readHeader(source, { name });

/** Refuses a shard that does not say that it is one. */
function checkSays(header: GgufHeader, key: string, count: number): void {
  if (count === 1 || header.metadata.has(key)) return;
  throw new GgufError(`its name says that it is one of ${count} shards, and it has no key ${key}`, {
    file: header.file,
    field: "key count",
    offset: 16, // the format's place for it
  });
}

async function readInOrder(files: readonly ModelFileSource[]): Promise<GgufModel> {
  const header = await headerOf(files[0]!);
  checkSays(header, "split.count", files.length);
  if (header.splitCount !== files.length) {
    const problem = files.length === 1
      ? `it is shard ${
        header.splitNo + 1
      } of ${header.splitCount}, and its name does not tell the others'`
      : `it says that there are ${header.splitCount} shards, its name says ${files.length}`;
    throw new GgufError(problem, {
      file: header.file,
      field: 'key "split.count"',
      offset: header.metadata.get("split.count")?.valueAt,
      expected: `${files.length}`,
    });
  }
  const names = new Set(header.tensors.map((tensor) => tensor.name));
  const whole: GgufHeader = { ...header, tensors: [...header.tensors] };
  for (const [shard, file] of files.entries()) {
    const part = shard === 0 ? header : await headerOf(file);
    checkSays(part, "split.no", files.length);
    if (part.splitNo !== shard || part.splitCount !== files.length) {
      throw new GgufError(
        `it says that it is shard ${part.splitNo + 1} of ${part.splitCount}, its name says ${
          shard + 1
        } of ${files.length}`,
        {
          file: part.file,
          field: 'key "split.no"',
          offset: part.metadata.get("split.no")?.valueAt,
          expected: `${shard}`,
        },
      );
    }
    if (shard === 0) continue;
    whole.size += part.size;
    whole.weightBytes += part.weightBytes;
    for (const tensor of part.tensors) {
      if (names.has(tensor.name)) {
        throw new GgufError("another shard has the same tensor", {
          file: part.file,
          field: `tensor ${JSON.stringify(tensor.name)}`,
          offset: tensor.describedAt,
        });
      }
      names.add(tensor.name);
      whole.tensors.push({ ...tensor, shard });
    }
  }
  const total = header.metadata.get("split.tensors.count")?.value;
  if (total !== undefined && Number(total) !== whole.tensors.length) {
    throw new GgufError(`${total} tensors were promised, the shards have ${whole.tensors.length}`, {
      file: header.file,
      field: 'key "split.tensors.count"',
      offset: header.metadata.get("split.tensors.count")?.valueAt,
    });
  }
  return { files: files.map(({ name }) => name), header: whole };
}
