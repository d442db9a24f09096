import { ExportError } from "./export_error.ts";

/** When a file is full. */
export interface SplitLimits {
  /** Most bytes of tensors in a file. */
  maxBytes?: number | undefined;
  /** Most tensors in a file. */
  maxTensors?: number | undefined;
}

/**
 * Distributes tensors over files, in their order, as llama.cpp's gguf-split does.
 *
 * @param sizes Bytes of each tensor, with its padding.
 * @param limits When a file is full; a tensor that is larger than a file may be has one of its own.
 * @returns For each file, its first tensor and the one after its last.
 */
export function splitTensors(
  sizes: readonly number[],
  { maxBytes = Infinity, maxTensors = Infinity }: SplitLimits,
): [from: number, to: number][] {
  const files: [number, number][] = [];
  let from = 0;
  let bytes = 0;
  for (const [i, size] of sizes.entries()) {
    if (i > from && (i - from >= maxTensors || bytes + size > maxBytes)) {
      files.push([from, i]);
      from = i;
      bytes = 0;
    }
    bytes += size;
  }
  files.push([from, sizes.length]);
  if (files.length > 65_535) {
    throw new ExportError(`there would be ${files.length} files; at most 65535 are possible`);
  }
  return files;
}

/**
 * The files' names: the output itself, or llama.cpp's names of shards.
 *
 * @param output The output as it was named.
 * @param count How many.
 */
export function outputNames(output: string, count: number): string[] {
  if (count === 1) return [output];
  const prefix = output.replace(/\.gguf$/i, "");
  const five = (n: number) => String(n).padStart(5, "0");
  return Array.from({ length: count }, (_, i) => `${prefix}-${five(i + 1)}-of-${five(count)}.gguf`);
}
