import { dirname } from "node:path";
import { diskCode, diskReason, freeSpace } from "../disk.ts";
import type { OpenSource } from "../gguf/byte_source.ts";
import { ExportError } from "./export_error.ts";

/** Data that are copied. */
export interface Piece {
  /** Which source they come from. */
  shard: number;
  /** Where they begin there. */
  from: number;
  /** Bytes that are read. */
  bytes: number;
  /** Their place after the header. */
  at: number;
  /** They are rows of `nLayer` slices, of each of which these are written, in this order. */
  slices?: { slice: number; nLayer: number; layers: readonly number[] };
}

/** A file to write. */
export interface OutputFile {
  /** Its path. */
  path: string;
  /** Its header, to where data begin. */
  head: Uint8Array;
  /** What follows the header, in order. */
  pieces: readonly Piece[];
  /** Bytes in all. */
  size: number;
}

/** What may happen while files are written. */
export interface WriteFilesOptions {
  /** Replace files that are there. */
  force?: boolean | undefined;
  /** Stops the writing. */
  signal?: AbortSignal | undefined;
  /** Called as bytes are written. */
  onProgress?: ((written: number, total: number) => void) | undefined;
}

/** Bytes that are read and written at once. */
const CHUNK = 1 << 23;

/**
 * Writes files whole or not at all: each is written under another name beside its place, and all get their names when
 * all are on the disk, the first one last. What was written is removed if anything fails.
 *
 * @param files The files.
 * @param sources Where pieces come from, by number.
 * @param options What is allowed, and a signal.
 * @throws {ExportError} If a file exists, or cannot be written.
 */
export async function writeFiles(
  files: readonly OutputFile[],
  sources: readonly OpenSource[],
  options: WriteFilesOptions,
): Promise<void> {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const targets = await checkTargets(files.map(({ path }) => path), sources, options.force);
  await checkRoom(targets[0]!, total);
  const suffix = `.${crypto.randomUUID().slice(0, 8)}.partial`;
  const partials: string[] = [];
  let written = 0;
  const onBytes = (bytes: number) => options.onProgress?.(written += bytes, total);
  try {
    for (const [i, file] of files.entries()) {
      const partial = targets[i]! + suffix;
      partials.push(partial);
      await writeOne(partial, file, sources, onBytes, options.signal);
    }
    for (const target of targets.toReversed()) {
      // Somebody else may have written it meanwhile.
      if (!options.force && await exists(target)) throw taken(target);
      await Deno.rename(target + suffix, target);
    }
  } catch (error) {
    for (const partial of partials) await Deno.remove(partial).catch(() => {});
    options.signal?.throwIfAborted();
    if (error instanceof ExportError || isOfModel(error)) throw error;
    throw new ExportError(`cannot write ${files[0]!.path}: ${reasonOf(error, total)}`, {
      cause: error,
    });
  }
}

/** An error of the model that is read. */
const isOfModel = (error: unknown): boolean => error instanceof Error && error.name === "GgufError";

const taken = (path: string) =>
  new ExportError(`cannot write ${path}: the file exists; --force (force: true) replaces it`);

const exists = (path: string) => Deno.lstat(path).then(() => true, () => false);

/**
 * Where files are to be written: their paths, or what these link to.
 *
 * @param paths The paths.
 * @param sources The model's files, none of which may be written to.
 * @param force Replace files that are there.
 * @throws {ExportError} If one is there and may not be replaced.
 */
export async function checkTargets(
  paths: readonly string[],
  sources: readonly OpenSource[],
  force: boolean | undefined,
): Promise<string[]> {
  const targets: string[] = [];
  for (const path of paths) targets.push(await checkTarget(path, sources, force));
  return targets;
}

async function checkTarget(
  path: string,
  sources: readonly OpenSource[],
  force: boolean | undefined,
): Promise<string> {
  const old = await Deno.stat(path).catch(() => undefined);
  if (old === undefined) {
    if (!force && await exists(path)) throw taken(path);
    return path;
  }
  const fail = (why: string) => new ExportError(`cannot write ${path}: ${why}`);
  if (old.isDirectory) throw fail("it is a folder");
  if (!old.isFile) throw fail("it is not a regular file");
  const target = await Deno.realPath(path);
  for (const { name } of sources) {
    if (await Deno.realPath(name).catch(() => "") === target) {
      throw fail("it is the model that is exported");
    }
  }
  if (!force) throw taken(path);
  return target;
}

/** Refuses to begin what the disk has no room for, where that can be told. */
async function checkRoom(path: string, bytes: number): Promise<void> {
  const room = await freeSpace(dirname(path));
  if (room === undefined || room >= bytes) return;
  throw new ExportError(
    `cannot write ${path}: it takes ${bytes} bytes, and the disk has room for ${room}`,
  );
}

async function writeOne(
  path: string,
  { head, pieces, size }: OutputFile,
  sources: readonly OpenSource[],
  onBytes: (bytes: number) => void,
  signal: AbortSignal | undefined,
): Promise<void> {
  using file = await Deno.open(path, { createNew: true, write: true });
  let at = 0;
  const put = async (bytes: Uint8Array) => {
    signal?.throwIfAborted();
    for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
    at += bytes.length;
    onBytes(bytes.length);
  };
  await put(head);
  for (const piece of pieces) {
    await put(new Uint8Array(head.length + piece.at - at)); // the padding before it
    const source = sources[piece.shard]!;
    const row = piece.slices === undefined ? 1 : piece.slices.slice * piece.slices.nLayer;
    const chunk = Math.max(row, CHUNK - CHUNK % row); // whole rows
    for (let done = 0; done < piece.bytes; done += chunk) {
      const length = Math.min(chunk, piece.bytes - done);
      const bytes = await source.read(piece.from + done, length);
      if (bytes.length !== length) {
        throw new ExportError(
          `${source.name} has become shorter while it was read: ${length} bytes at byte ${
            piece.from + done
          } gave ${bytes.length}`,
        );
      }
      await put(piece.slices === undefined ? bytes : pickSlices(bytes, piece.slices));
    }
  }
  await put(new Uint8Array(size - at));
  await file.sync(); // a disk may report only now that it is full
}

/** Rows with other slices. */
function pickSlices(
  rows: Uint8Array,
  { slice, nLayer, layers }: NonNullable<Piece["slices"]>,
): Uint8Array {
  const row = slice * nLayer;
  const out = new Uint8Array(rows.length / row * slice * layers.length);
  let at = 0;
  for (let from = 0; from < rows.length; from += row) {
    for (const il of layers) {
      out.set(rows.subarray(from + il * slice, from + (il + 1) * slice), at);
      at += slice;
    }
  }
  return out;
}

function reasonOf(error: unknown, bytes: number): string {
  if (error instanceof Deno.errors.NotFound) return "there is no such folder";
  if (error instanceof Deno.errors.NotCapable) {
    return "Deno may not write there; run it with --allow-write, or --allow-write=FOLDER";
  }
  const reason = diskReason(error);
  return ["ENOSPC", "EDQUOT"].includes(diskCode(error))
    ? `${reason}; ${bytes} bytes are needed in all`
    : reason;
}
