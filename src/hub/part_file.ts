import { absent } from "./cache.ts";
import { diskError } from "./disk_error.ts";

/** A range of bytes, the end not included. */
export type Range = [start: number, end: number];

/** What a partial file is fetched for, so that it can be listed and removed. */
export interface PartSource {
  /** The file's name, `hf:owner/repo/file.gguf` or a URL. */
  name?: string;
  /** The commit of its repository. */
  commit?: string;
}

/** What a partial file is a part of. A part of something else is thrown away. */
export interface PartIdentity extends PartSource {
  /** The version: hash or etag. */
  etag: string;
  /** Bytes in all. */
  size: number;
}

/** A file of which some parts are there, and a second file that says which: so fetching goes on where it ended. */
export class PartFile {
  /** Where the bytes are. */
  readonly path: string;
  #done: Range[] = [];
  #dirty = false;

  private constructor(target: string, readonly identity: PartIdentity) {
    this.path = partPath(target);
  }

  /**
   * Opens the partial file of a target, or begins one.
   *
   * @param target What the file is to become.
   * @param identity What it is a part of.
   * @throws {HubError} If it cannot be written.
   */
  static async open(target: string, identity: PartIdentity): Promise<PartFile> {
    const part = new PartFile(target, identity);
    const known = await readSidecar(target);
    const info = await Deno.stat(part.path).catch(absent);
    if (
      known !== undefined && info !== undefined &&
      known.etag === identity.etag && known.size === identity.size
    ) {
      part.#done = known.done;
    } else await part.discard();
    return part;
  }

  /** Bytes that are there. */
  get bytes(): number {
    return this.#done.reduce((sum, [start, end]) => sum + end - start, 0);
  }

  /** The ranges that are not there, none longer than `most`. */
  missing(most: number): Range[] {
    const gaps: Range[] = [];
    let at = 0;
    const gap = (end: number) => {
      for (; at < end; at = Math.min(at + most, end)) gaps.push([at, Math.min(at + most, end)]);
    };
    for (const [start, end] of this.#done) {
      gap(start);
      at = end;
    }
    gap(this.identity.size);
    return gaps;
  }

  /** Notes that a range is there. */
  mark(start: number, end: number): void {
    if (end <= start) return;
    this.#dirty = true;
    this.#done = mergeRanges([...this.#done, [start, end]]);
  }

  /** Writes down what is there, so that it counts if the process is killed. */
  async save(): Promise<void> {
    if (!this.#dirty) return;
    this.#dirty = false;
    const path = sidecarPath(this.path);
    try {
      // Written beside and renamed: a kill in the middle leaves the one before.
      await Deno.writeTextFile(
        `${path}.new`,
        JSON.stringify({ ...this.identity, done: this.#done }),
      );
      await Deno.rename(`${path}.new`, path);
    } catch (error) {
      this.#dirty = true;
      throw diskError(path, error);
    }
  }

  /** Makes the partial file the target. */
  async finish(target: string): Promise<void> {
    try {
      {
        using file = await Deno.open(this.path, { read: true, write: true });
        await file.syncData();
      }
      await Deno.rename(this.path, target);
    } catch (error) {
      throw diskError(target, error);
    }
    await removeIfThere(sidecarPath(this.path));
  }

  /** Throws away what is there. */
  async discard(): Promise<void> {
    this.#done = [];
    this.#dirty = false;
    await removeIfThere(sidecarPath(this.path));
    await removeIfThere(this.path);
  }
}

/** What the name of a partial file has after the target's. */
export const PART = ".rys-part";

/** Where the partial file of a target is. Other programs of the hub use other names, and fill theirs from the start. */
export function partPath(target: string): string {
  return target + PART;
}

function sidecarPath(part: string): string {
  return `${part}.json`;
}

/**
 * What is written down about the partial file of a target.
 *
 * @param target What the file is to become.
 * @returns undefined if there is none, or it is damaged.
 */
export async function readSidecar(
  target: string,
): Promise<PartIdentity & { done: Range[] } | undefined> {
  const text = await Deno.readTextFile(sidecarPath(partPath(target))).catch(absent);
  if (text === undefined) return undefined;
  try {
    const { etag, size, done, name, commit } = JSON.parse(text) as Record<string, unknown>;
    if (typeof etag !== "string" || !Number.isSafeInteger(size) || !Array.isArray(done)) {
      return undefined;
    }
    const isRange = (one: unknown): one is Range =>
      Array.isArray(one) && one.length === 2 && one.every(Number.isSafeInteger) &&
      0 <= one[0] && one[0] < one[1] && one[1] <= (size as number);
    if (!done.every(isRange)) return undefined;
    return {
      etag,
      size: size as number,
      done: mergeRanges(done),
      ...typeof name === "string" ? { name } : {},
      ...typeof commit === "string" ? { commit } : {},
    };
  } catch {
    return undefined;
  }
}

/** The files of a partial download. */
export function partFiles(target: string): string[] {
  const part = partPath(target);
  return [part, sidecarPath(part), `${sidecarPath(part)}.new`];
}

/**
 * Sorts ranges, and joins those that touch or overlap.
 *
 * @param ranges The ranges.
 */
export function mergeRanges(ranges: readonly Range[]): Range[] {
  const merged: Range[] = [];
  for (const [start, end] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end);
    else merged.push([start, end]);
  }
  return merged;
}

/** Removes a file that need not be there. */
export async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path).catch(absent);
  } catch (error) {
    throw diskError(path, error);
  }
}
