import { writeWhole } from "../../src/cli/write_whole.ts";
import { runOracle } from "../oracle/run_oracle.ts";

/** Types that {@linkcode quantised} makes. */
export const QUANTS = ["F16", "Q8_0", "Q4_0"] as const;

/** One of {@linkcode QUANTS}. */
export type Quant = (typeof QUANTS)[number];

/**
 * A model's file with all its weights in another type, made by llama.cpp's own quantiser inside the oracle program and
 * kept beside the file. Made from a quantised file it is worse than one made from the original: it serves to compare
 * two computations of the same weights, not to judge a type. Safe to kill at any moment and to run several times at once.
 *
 * @param path The model.
 * @param type The type.
 * @param cache Folder of the result. Default: that of the model.
 * @returns Path of the file.
 * @throws {Error} If llama.cpp cannot quantise it; the message is llama.cpp's.
 */
export async function quantised(path: string, type: Quant, cache?: string): Promise<string> {
  const slash = path.lastIndexOf("/");
  const stem = path.slice(slash + 1).replace(/\.gguf$/, "");
  const dir = cache ?? path.slice(0, slash);
  await Deno.mkdir(dir, { recursive: true });
  const made = `${dir}/${stem}.as-${type}.gguf`;
  using lock = await Deno.open(`${made}.lock`, { create: true, write: true });
  await lock.lock(true); // goes with the process
  if (await changed(made) > (await changed(path))) return made;
  const inputs = new Map([["model.gguf", await Deno.readFile(path)]]);
  const args = ["--quantize", type, "/in/model.gguf", "/out/model.gguf"];
  const { files, lines, code } = await runOracle(args, () => {}, inputs);
  const bytes = files.get("model.gguf");
  if (code !== 0 || !bytes) throw new Error(`Cannot make ${made}: ${lines.join("; ")}`);
  await writeWhole(made, bytes);
  return made;
}

/** When a file was last changed; before all time if there is none. */
async function changed(path: string): Promise<number> {
  try {
    return (await Deno.stat(path)).mtime?.getTime() ?? 0;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return -1;
    throw error;
  }
}
