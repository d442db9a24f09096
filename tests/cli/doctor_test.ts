import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { json, program, ROOT } from "./_program.ts";

Deno.test("doctor finds everything here", async () => {
  const got = await json(["doctor"]);
  assertEquals(got.ok, true);
  assertEquals(got.missing, []);
  assert(got.wasm.bytes > 1e6 && got.wasm.valid);
  assert(/^[0-9a-f]+$/.test(got.wasm.build.id));
  assertEquals(got.deno, Deno.version.deno);
  const { code, out } = await program(["doctor"]);
  assertEquals(code, 0);
  for (const part of ["WASM memory64", "GPU", "cache", "everything needed is here"]) {
    assertStringIncludes(out, part);
  }
});

Deno.test("doctor says where it may not look and what is not set", async () => {
  const { code, out, err } = await program(["doctor"], {
    allow: ["--allow-read", "--no-prompt"],
  });
  assertEquals([code, err], [0, ""]);
  assert(/memory +unknown: Deno may not look \(--allow-sys\)/.test(out), out);
  assert(/cache +unknown: Deno may not look/.test(out), out);
});

/** A copy of the program in a folder without the built WASM. */
async function bareCopy(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "my space" });
  const copy = async (name: string) => {
    const from = new URL(name, ROOT);
    if ((await Deno.stat(from)).isFile) return await Deno.copyFile(from, `${folder}/${name}`);
    await Deno.mkdir(`${folder}/${name}`);
    for await (const entry of Deno.readDir(from)) await copy(`${name}/${entry.name}`);
  };
  for (const name of ["mod.ts", "deno.json", "deno.lock", "src", "dev"]) await copy(name);
  await Deno.mkdir(`${folder}/models`);
  await Deno.copyFile(new URL("models/demo.gguf", ROOT), `${folder}/models/demo.gguf`);
  return folder;
}

Deno.test("without the built WASM the program says how to make it", async () => {
  const folder = await bareCopy();
  try {
    const mod = `${folder}/mod.ts`;
    const run = await program(["--repeat-layers", "33,34"], { mod });
    assertEquals(run.code, 1);
    assertEquals(run.err.trimEnd().split("\n").length, 1, run.err);
    assertStringIncludes(run.err, "deno task build");
    const doctor = await program(["doctor"], { mod });
    assertEquals(doctor.code, 1);
    assertStringIncludes(doctor.out, "missing: WASM");
    assertStringIncludes(doctor.out, `in ${folder}/wasm/dist/`);
    assertStringIncludes(doctor.out, "deno task build");
    const plan = await program(["plan", "--n-layer", "64", "--repeat-layers", "26,34"], { mod });
    assertEquals(plan.code, 0);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
