import { fileURLToPath } from "node:url";
import { writeWhole } from "../../src/cli/write_whole.ts";
import { runOracle } from "./run_oracle.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/**
 * A tiny random model of 12 layers, written by the oracle program and kept in `.cache/`.
 *
 * @param name Variant, as `rys-oracle --list` names it, e.g. `qwen35+nextn`.
 * @returns Path of the GGUF file.
 */
export async function fixture(name: string): Promise<string> {
  const { id } = JSON.parse(await Deno.readTextFile(`${ROOT}wasm/oracle/build.json`));
  const dir = `${ROOT}.cache/fixtures-${id}`;
  const path = `${dir}/${name}.gguf`;
  if (await Deno.stat(path).then(() => true, () => false)) return path;
  const { files, lines, code } = await runOracle(["--write", "/out", name]);
  const bytes = files.get(`${name}.gguf`);
  if (code !== 0 || !bytes) throw new Error(`no fixture ${name}: ${lines.slice(-3).join("; ")}`);
  await Deno.mkdir(dir, { recursive: true });
  await writeWhole(path, bytes); // another test may write the same file
  return path;
}

/**
 * The same for any variant, in memory: some take 60 MB.
 *
 * @param name Variant, as `rys-oracle --list` names it.
 */
export async function fixtureBytes(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const { files, lines, code } = await runOracle(["--write", "/out", `=${name}`]);
  const bytes = files.get(`${name}.gguf`);
  if (code !== 0 || !bytes) throw new Error(`no fixture ${name}: ${lines.slice(-3).join("; ")}`);
  return bytes;
}
