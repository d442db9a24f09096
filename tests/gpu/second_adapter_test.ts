// An adapter without f16: SwiftShader, which comes with Chromium. Another driver needs another process.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { inRepo } from "../engine/_engine.ts";

const ICD = [
  "/usr/lib/chromium/vk_swiftshader_icd.json",
  "/usr/lib/chromium-browser/vk_swiftshader_icd.json",
  "/opt/google/chrome/vk_swiftshader_icd.json",
].find((path) => {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
});
if (!ICD) {
  console.log("without a second adapter: Chromium, which carries SwiftShader, is not there");
}

async function run(...flags: string[]): Promise<{ code: number; out: string; err: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-check",
      inRepo("mod.ts"),
      ...["-p", "Once upon a time", "-n", "8", "--temp", "0", ...flags],
    ],
    cwd: inRepo("."),
    env: {
      VK_DRIVER_FILES: ICD!,
      VK_ICD_FILENAMES: ICD!,
      DENO_WEBGPU_BACKEND: "vulkan",
      NO_COLOR: "1",
    },
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

Deno.test({
  name: "an adapter without shader-f16: the CPU computes, and one line says why",
  ignore: !ICD,
  fn: async () => {
    const off = await run("--gpu", "off");
    const auto = await run("--gpu", "auto");
    assertEquals([auto.code, off.code], [0, 0]);
    assertEquals(auto.out, off.out);
    const lines = auto.err.split("\n").filter((line) => line.includes("shader-f16"));
    assertEquals(lines.length, 1, auto.err);
    assertStringIncludes(lines[0]!, "SwiftShader");
    assert(!off.err.includes("shader-f16"), off.err);
  },
});

Deno.test({
  name: "an adapter without shader-f16 where a GPU is required: exit code 1, and the reason",
  ignore: !ICD,
  fn: async () => {
    const { code, out, err } = await run("--gpu", "required");
    assertEquals([code, out], [1, ""]);
    assertStringIncludes(err, "shader-f16");
  },
});
