import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { json, program, type ProgramOptions, ROOT } from "./_program.ts";

/** What `doctor --json` says of the GPU. */
interface DoctorGpu {
  state: string;
  used: boolean;
  adapter: string | null;
  adapters: { description: string; limits: Record<string, number> }[];
  device: { compute_check: { ok: boolean; error: string } } | null;
  system: { driver_files: { path: string; found: string | null }[] };
  problems: { what: string; fix: string }[];
}

async function doctorGpu(options: ProgramOptions = {}): Promise<DoctorGpu> {
  const { out } = await program(["doctor", "--json"], options);
  return JSON.parse(out).gpu;
}

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
  const own = err.replaceAll(/^error: XDG_RUNTIME_DIR .*\n/gm, ""); // Mesa's, where the folder is not set
  assertEquals([code, own], [0, ""]);
  assert(/memory +unknown: Deno may not look \(--allow-sys\)/.test(out), out);
  assert(/cache +unknown: Deno may not look/.test(out), out);
  if (Deno.build.os === "linux") {
    assert(/GPU devices +unknown: Deno may not look/.test(out), out);
    assert(/variables +unknown: Deno may not look \(--allow-env\)/.test(out), out);
  }
});

Deno.test("doctor says what WebGPU offers and what the system has for it", async () => {
  const gpu = await doctorGpu();
  const adapter = await navigator.gpu?.requestAdapter();
  assertEquals(gpu.adapters.length > 0, Boolean(adapter));
  if (!adapter) {
    console.log("skipped: no WebGPU adapter");
    return;
  }
  const [first] = gpu.adapters;
  assertEquals(gpu.adapter, first?.description);
  assertEquals(first?.limits.maxBufferSize, adapter.limits.maxBufferSize);
  assertEquals(gpu.used, gpu.state === "usable");
  if (adapter.features.has("shader-f16")) {
    assertEquals(gpu.device?.compute_check, { ok: true, error: "" });
  }
  if (Deno.build.os !== "linux") return;
  assert(gpu.system.driver_files.some(({ found }) => found), "a driver is in use");
  const { out } = await program(["doctor"]);
  for (const part of ["GPU use", "GPU check", "Vulkan driver", "GPU devices", "variables"]) {
    assertStringIncludes(out, part);
  }
});

Deno.test({
  name: "doctor says why there is no adapter, and what helps",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const env = { DENO_WEBGPU_BACKEND: "vulkan", VK_DRIVER_FILES: "/nonexistent.json" };
    const { code, out } = await program(["doctor"], { env });
    assertEquals(code, 0); // a GPU is not needed
    assert(/^ +GPU +none: no WebGPU adapter/m.test(out), out);
    assertStringIncludes(out, "VK_DRIVER_FILES names /nonexistent.json, which is not there");
    assertStringIncludes(out, "what helps: correct VK_DRIVER_FILES, or unset it");
    const gpu = await doctorGpu({ env });
    assertEquals([gpu.state, gpu.adapter, gpu.device], ["none", null, null]);
    assert(gpu.problems.some(({ what }) => what.includes("/nonexistent.json")));
  },
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
  for (const name of ["mod.ts", "deno.json", "deno.lock", "src", "gpu", "dev"]) await copy(name);
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
