// Compiles shaders on the adapter: a process of its own, since a compiler may end it and frees its pipelines only then.
// Reads one JSON line from stdin, answers each shader with lines of JSON.

import { chooseGpu } from "../../gpu/device.ts";
import { adaptWgsl } from "../../gpu/dialect.ts";
import { emitsSpirv } from "../../gpu/executor.ts";
import type { CompileLine, CompileRequest } from "./shaders.ts";

const { pipelines, variants } = await new Response(Deno.stdin.readable).json() as CompileRequest;
const encoder = new TextEncoder();
const say = (line: CompileLine) =>
  Deno.stdout.writeSync(encoder.encode(JSON.stringify(line) + "\n"));

const gpu = await chooseGpu({ mode: "required" }, navigator.gpu);
if ("why" in gpu) {
  console.error(gpu.why);
  Deno.exit(1);
}
const { device, info: { limits, features } } = gpu;
const options = { spirv: emitsSpirv() };
for (const [i, v] of variants.entries()) {
  if (
    v.threads > limits.maxComputeInvocationsPerWorkgroup ||
    v.memory > limits.maxComputeWorkgroupStorageSize ||
    (v.subgroups && !features.includes("subgroups"))
  ) {
    say({ i, skipped: true });
    continue;
  }
  say({ i, started: true });
  try {
    const code = adaptWgsl(v.source, "naga", options);
    device.pushErrorScope("validation");
    device.pushErrorScope("internal");
    const module = device.createShaderModule({ code });
    if (pipelines) {
      const { entry: entryPoint, constants } = v;
      device.createComputePipeline({
        layout: "auto",
        compute: { module, entryPoint, constants },
      });
    }
    const errors = [await device.popErrorScope(), await device.popErrorScope()];
    const error = errors.find((e) => e !== null)?.message;
    say(error === undefined ? { i } : { i, error });
  } catch (error) {
    say({ i, error: String(error) });
  }
}
device.destroy();
Deno.exit(0);
