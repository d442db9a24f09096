import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { inputsId } from "./build.ts";
import { HookError } from "./hooks.ts";
import { BuildError, exists, run, whole } from "./progress.ts";
import { ownUpstream, syncHooked, writeIfChanged } from "./upstream.ts";

async function withFolder(use: (dir: string) => Promise<void> | void): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    await use(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

function write(path: string, text: string): void {
  Deno.mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  Deno.writeTextFileSync(path, text);
}

const HOOK = "why it is there\n@@ demo after\nint a;\n@@ with\nint b; // rys-hook: demo\n@@ end\n";

Deno.test("inputsId() is the same for the same inputs and changes with a checkout of one's own", async () => {
  const id = await inputsId(undefined);
  assertEquals(id, await inputsId(undefined));
  assert(/^[0-9a-f]{16}$/.test(id));
  await withFolder(async (dir) => {
    write(`${dir}/include/llama.h`, "int a;\n");
    const own = await inputsId(ownUpstream(dir));
    assert(own !== id);
    write(`${dir}/include/more.h`, "int b;\n");
    assert(await inputsId(ownUpstream(dir)) !== own);
  });
});

Deno.test("ownUpstream() refuses a folder that is not a checkout", async () => {
  await withFolder((dir) => {
    assertThrows(() => ownUpstream(dir), BuildError, "is not a llama.cpp checkout");
  });
});

Deno.test("whole() leaves nothing that a second run trips over", async () => {
  await withFolder(async (dir) => {
    const target = `${dir}/tree`;
    // As a kill leaves it: a partial folder with half of the files.
    write(`${target}.partial/half`, "x");
    await assertRejects(
      () => whole(target, () => Promise.reject(new Error("killed"))),
      Error,
      "killed",
    );
    assertEquals(exists(target), false);
    await whole(target, (partial) => {
      assertEquals([...Deno.readDirSync(partial)].length, 0);
      write(`${partial}/all`, "y");
      return Promise.resolve();
    });
    assertEquals(Deno.readTextFileSync(`${target}/all`), "y");
    await whole(target, () => Promise.reject(new Error("not called again")));
  });
});

Deno.test("syncHooked() copies, applies, leaves right files alone and takes old edits back", async () => {
  await withFolder((dir) => {
    const [pristine, hooks, work] = [`${dir}/pristine`, `${dir}/hooks`, `${dir}/work`];
    write(`${pristine}/include/llama.h`, "int a;\n");
    write(`${pristine}/src/llama.cpp`, "int x;\n");
    write(`${hooks}/plan/include/llama.h.hook`, HOOK);
    assertEquals(syncHooked(pristine, hooks, work), ["demo"]);
    assertEquals(
      Deno.readTextFileSync(`${work}/include/llama.h`),
      "int a;\nint b; // rys-hook: demo\n",
    );

    const before = Deno.statSync(`${work}/include/llama.h`).mtime!.getTime();
    write(`${work}/src/stale.cpp`, "left by an older upstream");
    syncHooked(pristine, hooks, work);
    assertEquals(Deno.statSync(`${work}/include/llama.h`).mtime!.getTime(), before);
    assertEquals(exists(`${work}/src/stale.cpp`), false);

    Deno.removeSync(`${hooks}/plan/include/llama.h.hook`);
    write(`${hooks}/plan/src/llama.cpp.hook`, HOOK.replace("int a;", "int x;"));
    syncHooked(pristine, hooks, work);
    assertEquals(Deno.readTextFileSync(`${work}/include/llama.h`), "int a;\n");
    assertEquals(
      Deno.readTextFileSync(`${work}/src/llama.cpp`),
      "int x;\nint b; // rys-hook: demo\n",
    );
  });
});

Deno.test("syncHooked() stops at a hook that does not match, before it writes anything", async () => {
  await withFolder((dir) => {
    const [pristine, hooks, work] = [`${dir}/pristine`, `${dir}/hooks`, `${dir}/work`];
    write(`${pristine}/include/llama.h`, "int z;\n");
    write(`${hooks}/plan/include/llama.h.hook`, HOOK);
    assertThrows(() => syncHooked(pristine, hooks, work), HookError, 'hook "demo"');
    assertEquals(exists(work), false);
    write(`${hooks}/plan/include/llama.h.hook`, "");
    Deno.removeSync(`${hooks}/plan/include/llama.h.hook`);
    write(`${hooks}/plan/include/gone.h.hook`, HOOK);
    assertThrows(
      () => syncHooked(pristine, hooks, work),
      HookError,
      "upstream has no file include/gone.h",
    );
  });
});

Deno.test("writeIfChanged() says whether it wrote", async () => {
  await withFolder((dir) => {
    const bytes = new TextEncoder().encode("a");
    assertEquals(writeIfChanged(`${dir}/sub/file`, bytes), true);
    assertEquals(writeIfChanged(`${dir}/sub/file`, bytes), false);
    assertEquals(exists(`${dir}/sub/file.partial`), false);
  });
});

Deno.test("run() reports what failed with the lines that say why", async () => {
  const error = await assertRejects(
    () => run(["sh", "-c", "echo 'x.cpp:1: error: no such thing'; seq 100; exit 3"]),
    BuildError,
    "code 3",
  );
  assert(error.message.includes("x.cpp:1: error: no such thing"));
  await assertRejects(() => run(["no-such-program-at-all"]), BuildError, "could not be started");
});
