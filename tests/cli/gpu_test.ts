import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { json, MODEL, program } from "./_program.ts";

const quick = ["-m", MODEL, "-p", "Once upon a time", "-n", "6", "--temp", "0", "-c", "256"];

/** A system on which Deno finds no graphics driver. */
const NO_DRIVER = { DENO_WEBGPU_BACKEND: "vulkan", VK_DRIVER_FILES: "/nonexistent.json" };

/** Whether there is an adapter that can compute; says so if not. */
async function hasAdapter(): Promise<boolean> {
  const adapter = await navigator.gpu?.requestAdapter();
  if (adapter?.features.has("shader-f16")) return true;
  console.log("skipped: no WebGPU adapter");
  return false;
}

Deno.test("run without a GPU says so in one quiet line and computes on the CPU", async () => {
  const { code, err } = await program(quick, { env: NO_DRIVER });
  assertEquals(code, 0);
  const lines = err.split("\n").filter((line) => /GPU|adapter/.test(line));
  assertEquals(lines.length, 1, err);
  assert(/^GPU +=.* not used: no WebGPU adapter/.test(lines[0]!), lines[0]);
  assert(!err.includes("warning"), err);
  const { gpu } = await json(quick, { env: NO_DRIVER });
  assertEquals(gpu.device, null);
  assertStringIncludes(gpu.why ?? "", "no WebGPU adapter");
});

Deno.test("run -ngl says that it has no effect where the CPU computes", async () => {
  const asked = await program([...quick, "-ngl", "99", "--quiet"], { env: NO_DRIVER });
  assertEquals(asked.code, 0);
  assert(/^warning: -ngl 99 has no effect.*no WebGPU adapter/.test(asked.err), asked.err);
  assertEquals(asked.err.trimEnd().split("\n").length, 1, asked.err);
  const none = await program([...quick, "-ngl", "0", "--quiet"], { env: NO_DRIVER });
  assertEquals([none.code, none.err], [0, ""]);
});

Deno.test("--gpu required without a GPU ends with 1 and the reason", async () => {
  for (const args of [["--gpu", "required"], ["--gpu"], ["--gpu=on", "-ngl", "3"]]) {
    const { code, out, err } = await program([...quick, ...args], { env: NO_DRIVER });
    assertEquals([code, out], [1, ""]);
    assertEquals(err.trimEnd().split("\n").length, 1, err);
    assertStringIncludes(err, "a GPU is required: no WebGPU adapter");
  }
});

Deno.test("--gpu off is the CPU", async () => {
  const { gpu } = await json([...quick, "--gpu", "off"]);
  assertEquals(gpu.device, null);
  const { err } = await program([...quick, "--gpu", "off"]);
  assert(/^GPU +=.* off$/m.test(err), err);
});

Deno.test("run --gpu required gives the CPU's text, and says what is on the GPU", async () => {
  if (!await hasAdapter()) return;
  const cpu = await json([...quick, "--gpu", "off"]);
  const gpu = await json([...quick, "--gpu", "required"]);
  assertEquals(gpu.text, cpu.text);
  assert(typeof gpu.gpu.device === "string" && gpu.gpu.device !== "");
  assertEquals([gpu.gpu.layers, gpu.gpu.layers_all], [41, 41]);
  assertEquals([gpu.gpu.bytes, gpu.gpu.cpu_bytes], [gpu.model_bytes, 0]);
  assertEquals(gpu.kv_bytes, cpu.kv_bytes);

  const part = await program([...quick, "--gpu", "required", "-ngl", "9"]);
  assertEquals(part.out.trim(), cpu.text.trim());
  assert(/^GPU +=.* 9\/41 layers, .*B; .*B stay in memory$/m.test(part.err), part.err);
});

Deno.test("what plan tells of the caches is what a GPU allocates", async () => {
  if (!await hasAdapter()) return;
  const plan = ["--repeat-layers", "20,24"];
  const told = await json(["plan", "-m", MODEL, "-c", "256", ...plan]);
  const got = await json([...quick, "-n", "1", "--gpu", "required", ...plan]);
  assertEquals(got.kv_bytes, told.cost.kv_bytes);
  assertEquals(got.recurrent_bytes, told.cost.recurrent_bytes);
});

Deno.test("bench names the backend", async () => {
  const short = ["bench", "-m", MODEL, "-p", "4", "-n", "2", "-r", "1", "--quiet"];
  const cpu = await json([...short, "--gpu", "off"]);
  assertEquals([cpu.backend, cpu.gpu.device], ["CPU", null]);
  assertStringIncludes((await program([...short, "--gpu", "off"])).out, "; CPU, ");
  if (!await hasAdapter()) return;
  const gpu = await json([...short, "--gpu"]);
  assertEquals(gpu.backend, "WebGPU");
  assertStringIncludes((await program([...short, "--gpu"])).out, `; WebGPU (${gpu.gpu.device}`);
});
