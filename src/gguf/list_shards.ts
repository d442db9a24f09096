import { GgufError } from "./gguf_error.ts";

const SHARD = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/;

/** The parts of a shard's name. */
export interface ShardName {
  /** What comes before the number. */
  prefix: string;
  /** Number of the shard, from 1. */
  number: number;
  /** Shards in all. */
  count: number;
}

/**
 * Splits a shard's name into its parts.
 *
 * @param path The path or name.
 * @returns Its parts; undefined if the name is not that of one shard of several.
 * @throws {GgufError} If it is, but its numbers make no sense.
 *
 * @example
 * ```ts
 * import { parseShardName } from "@rys/edge/gguf";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(parseShardName("a/big-00002-of-00003.gguf"), { prefix: "a/big", number: 2, count: 3 });
 * assertEquals(parseShardName("small.gguf"), undefined);
 * ```
 */
export function parseShardName(path: string): ShardName | undefined {
  const match = SHARD.exec(path);
  if (!match) return undefined;
  const [number, count] = [Number(match[2]), Number(match[3])];
  if (number < 1 || number > count) {
    throw new GgufError(`its name says shard ${number} of ${count}`, {
      file: path,
      field: "name",
      limit: count,
    });
  }
  return { prefix: match[1]!, number, count };
}

/**
 * Names the shards of a model, from any one of them.
 *
 * @param path The path or name of one shard, or of a model in one file.
 * @returns All of them, in order.
 * @throws {GgufError} If the name's numbers make no sense.
 *
 * @example
 * ```ts
 * import { shardNames } from "@rys/edge/gguf";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(shardNames("big-00002-of-00002.gguf"), ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"]);
 * assertEquals(shardNames("small.gguf"), ["small.gguf"]);
 * ```
 */
export function shardNames(path: string): string[] {
  const name = parseShardName(path);
  if (!name) return [path];
  const five = (n: number) => String(n).padStart(5, "0");
  return Array.from(
    { length: name.count },
    (_, i) => `${name.prefix}-${five(i + 1)}-of-${five(name.count)}.gguf`,
  );
}

/**
 * Finds the files of a model, from any one of them.
 *
 * @param path The path of one shard, or of a model in one file.
 * @returns All of them, in order.
 * @throws {GgufError} If a shard is missing; the error names all that are.
 *
 * @example
 * ```ts
 * import { GgufError, listShards } from "@rys/edge/gguf";
 * import { assertRejects } from "@std/assert";
 *
 * await assertRejects(() => listShards("none-00001-of-00002.gguf"), GgufError, "none-00002-of-00002.gguf");
 * ```
 */
export async function listShards(path: string): Promise<string[]> {
  const names = shardNames(path);
  if (names.length === 1) return names; // whoever opens it says what is wrong with it
  const { readdir, stat } = await import("node:fs/promises");
  // One look at the folder, as a name may promise 99,999 shards.
  const slash = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
  const folder = slash < 0 ? "." : path.slice(0, slash + 1);
  const there = new Set(await readdir(folder).catch(() => []));
  const missing: string[] = [];
  for (const name of names) {
    const isThere = there.has(name.slice(slash + 1)) &&
      (await stat(name).catch(() => undefined))?.isFile();
    if (!isThere) missing.push(name);
  }
  if (missing.length === 0) return names;
  const some = missing.slice(0, 4).map((name) => name.replace(/^.*[/\\]/, "")).join(", ");
  const more = missing.length > 4 ? ` and ${missing.length - 4} more` : "";
  throw new GgufError(
    `${missing.length} of ${names.length} shards ${
      missing.length === 1 ? "is" : "are"
    } missing: ${some}${more}`,
    { file: path },
  );
}
