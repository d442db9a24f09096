import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("./with_gpu.ts", import.meta.url));

/** Runs `deno` by way of the script. */
async function withGpu(
  args: string[],
  env: Record<string, string>,
): Promise<{ code: number; out: string; err: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--quiet", SCRIPT, ...args],
    env,
    stdin: "null",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

const SHOW = `console.log(JSON.stringify([Deno.args, Deno.env.get("DENO_WEBGPU_BACKEND"),
  Deno.env.get("XDG_RUNTIME_DIR"), Deno.env.get("VK_DRIVER_FILES")])); Deno.exit(7);`;
const CHILD = `data:application/javascript,${encodeURIComponent(SHOW)}`;
/** A system without a driver; nothing is installed where the user names drivers. */
const NONE = { VK_DRIVER_FILES: "/nonexistent.json", DENO_WEBGPU_BACKEND: "" };

Deno.test("with_gpu passes on arguments, standard output and the exit code", async () => {
  const { code, out } = await withGpu(["run", "-A", CHILD, "a b", "--filter=x"], NONE);
  assertEquals(code, 7);
  assertEquals(JSON.parse(out)[0], ["a b", "--filter=x"]);
});

Deno.test({
  name: "with_gpu gives the child a backend and a private runtime folder",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const cache = await Deno.makeTempDir();
    const own = `${cache}/rys-edge/runtime`;
    try {
      for (const given of ["", "/nonexistent", cache]) {
        if (given === cache) await Deno.chmod(cache, 0o755);
        const env = { ...NONE, XDG_CACHE_HOME: cache, XDG_RUNTIME_DIR: given };
        const { out } = await withGpu(["run", "-A", CHILD], env);
        const [, backend, dir, driver] = JSON.parse(out);
        assertEquals([backend, dir, driver], ["vulkan", own, NONE.VK_DRIVER_FILES]);
        assertEquals(((await Deno.stat(own)).mode ?? 0) & 0o777, 0o700);
      }
      const env = { ...NONE, XDG_RUNTIME_DIR: own, DENO_WEBGPU_BACKEND: "gl" };
      const [, backend, dir] = JSON.parse((await withGpu(["run", "-A", CHILD], env)).out);
      assertEquals([backend, dir], ["gl", own]);
    } finally {
      await Deno.remove(cache, { recursive: true });
    }
  },
});

Deno.test({
  name: "with_gpu says that there is no GPU, and goes on",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const { code, err } = await withGpu(["run", "-A", CHILD], NONE);
    assertEquals(code, 7);
    assertStringIncludes(err, "no GPU: no WebGPU adapter");
  },
});

Deno.test("with_gpu --software names lavapipe alone, if it is there", async () => {
  const file = `/usr/share/vulkan/icd.d/lvp_icd.${Deno.build.arch}.json`;
  const isThere = await Deno.stat(file).then(() => true, () => false);
  if (!isThere) return console.log("skipped: no WebGPU adapter of Mesa's in software");
  const env = { VK_DRIVER_FILES: "", VK_ICD_FILENAMES: "", DENO_WEBGPU_BACKEND: "" };
  const { code, out, err } = await withGpu(["--software", "run", "-A", CHILD], env);
  assertEquals(code, 7, err);
  assertEquals(JSON.parse(out)[3], file);
  assert(/GPU: llvmpipe/.test(err), err);
});
