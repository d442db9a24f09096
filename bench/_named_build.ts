import { buildCache } from "../wasm/upstream.ts";
import { Progress } from "../wasm/progress.ts";
import { findToolchain } from "../wasm/toolchain.ts";
import { ROOT } from "./_bench.ts";

/**
 * Links the objects of `wasm/dist` once more, with the names of functions.
 *
 * @param to Folder for the result; a link makes the same code, which is checked byte by byte.
 * @throws {Error} If the engine cannot be built here, or if the code differs.
 */
export async function linkWithNames(to: string): Promise<void> {
  const dist = `${ROOT}/wasm/dist`;
  const build = async (...args: string[]) => {
    const { success } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", `${ROOT}/wasm/build.ts`, ...args],
      stdout: "inherit",
      stderr: "inherit",
    }).output();
    if (!success) throw new Error("the engine cannot be built here, which the names need");
  };
  await build();
  const cache = buildCache();
  const { dir, inside, run } = await findToolchain(cache, new Progress());
  const same = () => equal(readCode(`${dir}/build/rys.wasm`), readCode(`${dist}/rys.wasm`));
  if (!same()) await build("--force"); // those objects are of other sources, or were removed
  {
    using lock = await Deno.open(`${cache}/lock`, { create: true, write: true });
    await lock.lock(true);
    const commands = await run(["ninja", "-C", `${inside}/build`, "-t", "commands", "rys"]);
    const link = commands.trimEnd().split("\n").at(-1)!;
    if (!link.includes(" -o rys.js ")) throw new Error(`the last step is no link: ${link}`);
    const named = link.replace(" -o rys.js ", " --profiling-funcs -o named/rys.js ");
    await run(["sh", "-c", `cd ${inside}/build && mkdir -p named && ${named}`]);
    await Deno.mkdir(to, { recursive: true });
    for (const name of ["rys.js", "rys.wasm"]) {
      await Deno.copyFile(`${dir}/build/named/${name}`, `${to}/${name}`);
    }
    await Deno.remove(`${dir}/build/named`, { recursive: true });
  }
  if (!equal(readCode(`${to}/rys.wasm`), readCode(`${dist}/rys.wasm`))) {
    throw new Error("the link with names made other code than wasm/dist has");
  }
  await Deno.copyFile(`${dist}/build.json`, `${to}/build.json`);
}

/** The code section of a WASM module; empty if there is no such file. */
function readCode(path: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = Deno.readFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return new Uint8Array();
    throw error;
  }
  let at = 8;
  while (at < bytes.length) {
    const id = bytes[at++];
    let size = 0;
    for (let shift = 0;; shift += 7) {
      const byte = bytes[at++]!;
      size += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    if (id === 10) return bytes.subarray(at, at + size);
    at += size;
  }
  throw new Error(`${path} has no code`);
}

const equal = (a: Uint8Array, b: Uint8Array) =>
  a.length === b.length && a.every((x, i) => x === b[i]);
