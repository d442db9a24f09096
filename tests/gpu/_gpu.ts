// Shared by the tests that need a GPU.

import { loadModel, type LoadModelOptions, type Model } from "@rys/edge";
import { chooseGpu } from "../../gpu/device.ts";
import { prepareDriverEnv } from "../../gpu/driver_env.ts";

prepareDriverEnv();

const gpu = await chooseGpu({ mode: "required" }, navigator.gpu);

/** Why there is no adapter to test on, or "". */
export const NO_GPU = "why" in gpu ? gpu.why : "";
if (NO_GPU) console.log(`skipped: no WebGPU adapter (${NO_GPU})`);
else if ("device" in gpu) gpu.device.destroy();

/** A test that needs an adapter. The engine starts threads as it needs them: no sanitizers. */
export function gpuTest(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: NO_GPU !== "", sanitizeOps: false, sanitizeResources: false, fn });
}

/** Loads a model on whatever adapter there is, a software one too. */
export function loadOnGpu(path: string, options: LoadModelOptions = {}): Promise<Model> {
  return loadModel(path, { gpu: "required", ...options });
}

/** Normalised mean squared error of `a` against `b`, as test-backend-ops has it. */
export function nmse(a: Float32Array, b: Float32Array): number {
  let error = 0;
  let power = 0;
  for (let i = 0; i < b.length; i++) {
    error += (a[i]! - b[i]!) ** 2;
    power += b[i]! ** 2;
  }
  return error / power;
}
