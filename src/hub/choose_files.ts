import { parseShardName, shardNames } from "../gguf/list_shards.ts";
import { HubError } from "./hub_error.ts";
import { formatModelName, type HubName } from "./model_name.ts";

/** Quantisations to look for where none is named, as llama.cpp does. */
const PREFERRED = ["Q4_K_M", "Q8_0"];
/** Files of a repository that are no language model on their own. */
const PARTS = /mmproj|imatrix|mtp-|eagle3-|dflash-|dspark-/;
/** Names to list in a message. */
const MAX_LISTED = 12;

/**
 * Chooses a model's files among those of a repository, as llama.cpp does: the file that is named; else the first one
 * with the quantisation in its name; else one in Q4_K_M, in Q8_0, or the first. Files that only go with a model
 * (`mmproj`, `imatrix`, drafts) are left out. Of a split model all shards are chosen, in order.
 *
 * @param paths The repository's files.
 * @param name What is looked for.
 * @throws {HubError} If there is none; the message lists what there is.
 */
export function chooseFiles(paths: readonly string[], name: HubName): string[] {
  const models = paths.filter(isModel).sort();
  const first = name.file === undefined
    ? firstOf(models, name.quant)
    : paths.find((path) => path === name.file);
  if (first === undefined) throw missing(models, name);
  const shards = shardNames(first);
  const there = new Set(paths);
  const gone = shards.filter((path) => !there.has(path));
  if (gone.length > 0) {
    throw new HubError(
      "not_found",
      `${
        formatModelName(name)
      }: ${gone.length} of ${shards.length} shards are not in ${name.repo}: ${
        gone.slice(0, 4).join(", ")
      }${gone.length > 4 ? ", ..." : ""}`,
    );
  }
  return shards;
}

/** The quantisation in a file's name, in capitals; undefined if there is none. */
export function quantOf(path: string): string | undefined {
  const stem = (parseShardName(path)?.prefix ?? path).replace(/\.gguf$/i, "");
  return /[-.](\w+)$/.exec(stem)?.[1]?.toUpperCase();
}

function isModel(path: string): boolean {
  return /\.gguf$/i.test(path) && !PARTS.test(path.replace(/^.*\//, "")) && isShardName(path);
}

function isShardName(path: string): boolean {
  try {
    parseShardName(path);
    return true;
  } catch {
    return false; // shard 3 of 2
  }
}

function firstOf(models: readonly string[], quant: string | undefined): string | undefined {
  const firsts = models.filter((path) => (parseShardName(path)?.number ?? 1) === 1);
  for (const one of quant === undefined ? PREFERRED : [quant]) {
    const text = one.replaceAll(".", "\\.");
    // A whole word first: Q4_K is not meant where it ends another name, as in "IQ4_K".
    for (const before of ["(?:^|[^a-z0-9])", ""]) {
      const pattern = new RegExp(`${before}${text}[.-]`, "i");
      const found = firsts.find((path) => pattern.test(path));
      if (found !== undefined) return found;
    }
  }
  return quant === undefined ? firsts[0] : undefined;
}

function missing(models: readonly string[], name: HubName): HubError {
  const wanted = name.file !== undefined
    ? `no file ${JSON.stringify(name.file)}`
    : name.quant !== undefined
    ? `no model in ${name.quant}`
    : "no GGUF model";
  const firsts = models.filter((path) => (parseShardName(path)?.number ?? 1) === 1);
  const list = firsts.slice(0, MAX_LISTED).join(", ");
  const more = firsts.length > MAX_LISTED ? ` and ${firsts.length - MAX_LISTED} more` : "";
  return new HubError(
    "not_found",
    `${formatModelName(name)}: ${name.repo} has ${wanted}; it has ${
      firsts.length === 0
        ? 'no GGUF files at all: look for a repository with "GGUF" in its name'
        : `${list}${more}`
    }`,
  );
}
