import { assert, assertEquals } from "@std/assert";

const module = new URL("./driver_env.ts", import.meta.url).href;

/** What a process's environment is after `prepareDriverEnv()`. */
async function after(
  env: Record<string, string>,
  permissions: string[],
): Promise<Record<string, string | null>> {
  const names = '["DENO_WEBGPU_BACKEND", "XDG_RUNTIME_DIR"]';
  const code = `import { prepareDriverEnv } from ${JSON.stringify(module)}; prepareDriverEnv();
    const get = (n) => { try { return Deno.env.get(n) ?? null; } catch { return "not allowed"; } };
    console.log(JSON.stringify(Object.fromEntries(${names}.map((n) => [n, get(n)]))));`;
  const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-check",
      "--no-prompt",
      ...permissions,
      "data:text/javascript," + encodeURIComponent(code),
    ],
    env: { PATH: Deno.env.get("PATH")!, ...env },
    clearEnv: true,
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

const ignore = Deno.build.os !== "linux";

Deno.test({
  name: "prepareDriverEnv() names Vulkan and a private folder where nobody set them",
  ignore,
  fn: async () => {
    const home = await Deno.makeTempDir();
    try {
      const env = await after({ XDG_CACHE_HOME: home, HOME: home }, ["-A"]);
      assertEquals(env.DENO_WEBGPU_BACKEND, "vulkan");
      const { mode, isDirectory } = Deno.statSync(env.XDG_RUNTIME_DIR!);
      assertEquals([isDirectory, (mode ?? 0) & 0o777], [true, 0o700]);
    } finally {
      await Deno.remove(home, { recursive: true });
    }
  },
});

Deno.test({
  name: "prepareDriverEnv() leaves what is set, and does nothing where it is not allowed to",
  ignore,
  fn: async () => {
    const set = { DENO_WEBGPU_BACKEND: "gl", XDG_RUNTIME_DIR: "/tmp" };
    assertEquals(await after(set, ["-A"]), set);
    const closed = { DENO_WEBGPU_BACKEND: "not allowed", XDG_RUNTIME_DIR: "not allowed" };
    assertEquals(await after({}, ["--allow-read", "--allow-import"]), closed);
    const env = await after({ HOME: "/nonexistent" }, ["--allow-read", "--allow-env"]);
    assertEquals(env.DENO_WEBGPU_BACKEND, "vulkan");
  },
});
