import { describeAdapter } from "../../gpu/device.ts";
import { prepareDriverEnv } from "../../gpu/driver_env.ts";
import type { GpuBounds } from "../gguf/mod.ts";
import type { GpuOptions } from "./flags/gpu_flags.ts";

/** The GPU that the engine would look at. */
export interface GpuFound extends GpuBounds {
  /** What the driver calls it. */
  description: string;
  /** A software rasteriser, which is used only if a GPU is required. */
  isSoftware: boolean;
}

/**
 * Looks for the GPU that the engine would use, without making a device of it.
 *
 * @param options What the command line says of GPUs.
 * @returns The GPU; undefined if there is none, or none is wanted.
 */
export async function findGpu({ gpu, powerPreference }: GpuOptions): Promise<GpuFound | undefined> {
  if (gpu === "off" || !navigator.gpu) return undefined;
  prepareDriverEnv(); // as the engine does
  const adapter = await navigator.gpu.requestAdapter(powerPreference ? { powerPreference } : {});
  if (!adapter) return undefined;
  const { description, software, limits } = describeAdapter(adapter);
  const { maxStorageBufferBindingSize, maxBufferSize } = limits;
  return { description, isSoftware: software, maxStorageBufferBindingSize, maxBufferSize };
}
