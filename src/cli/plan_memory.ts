import { ENGINE_BYTES, HEAP_BYTES } from "../engine/memory.ts";
import { type MemoryNeeds, memoryNeeds } from "../gguf/mod.ts";
import type { PlanCost } from "../plan/mod.ts";
import { asUsage } from "./errors.ts";
import { gpuOptions } from "./flags/gpu_flags.ts";
import type { Flags } from "./flags/parse_flags.ts";
import { findGpu, type GpuFound } from "./gpu_bounds.ts";
import type { ModelFile } from "./model_file.ts";
import { formatBytes } from "./terminal/plan_text.ts";

/** Whether a model and a context fit where they would be. */
export interface MemoryLook extends MemoryNeeds {
  /** Bytes of WASM memory for weights and caches. */
  limit: number;
  /** They fit if the CPU computes. */
  fitsCpu: boolean;
  /** What stays in WASM memory fits there if the GPU computes. */
  fitsWithGpu: boolean;
  /** The GPU; undefined if there is none, or none is wanted. */
  gpu: GpuFound | undefined;
  /** The GPU would compute. */
  usesGpu: boolean;
}

/**
 * Looks at this machine, and whether a model with a plan fits.
 *
 * @param model The model.
 * @param cost What the plan costs.
 * @param flags Read for `--gpu`.
 */
export async function lookAtMemory(
  model: ModelFile,
  cost: PlanCost,
  flags: Flags,
): Promise<MemoryLook> {
  const options = asUsage("", () => gpuOptions(flags));
  const gpu = await findGpu(options);
  const needs = memoryNeeds(model.header, cost.plan, gpu);
  const limit = HEAP_BYTES - ENGINE_BYTES;
  return {
    ...needs,
    limit,
    fitsCpu: needs.cpuBytes <= limit,
    fitsWithGpu: needs.cpuBytesWithGpu <= limit,
    gpu,
    usesGpu: gpu !== undefined && (!gpu.isSoftware || options.gpu === "required"),
  };
}

/** What a look at memory found, as `name = value`. */
export function memoryLines(look: MemoryLook): [name: string, value: string][] {
  const { gpu, limit, usesGpu, cpuTensors } = look;
  const within = (bytes: number, fits: boolean) =>
    `${formatBytes(bytes)} of ${formatBytes(limit)}${fits ? "" : ": too much"}`;
  const lines: [string, string][] = [[
    "WASM memory",
    `${within(look.cpuBytes, look.fitsCpu)}${
      usesGpu ? `; with the GPU ${within(look.cpuBytesWithGpu, look.fitsWithGpu)}` : ""
    }`,
  ]];
  if (gpu === undefined) return lines;
  const { description, isSoftware } = gpu;
  if (!usesGpu) {
    lines.push([
      "GPU",
      `${description}${isSoftware ? ", software: not used unless asked for (--gpu required)" : ""}`,
    ]);
    return lines;
  }
  const names = cpuTensors.slice(0, 3).map(({ name }) => name).join(", ");
  const stays = [
    ...cpuTensors.length > 0
      ? [
        `${cpuTensors.length} tensors stay in memory (${names}${
          cpuTensors.length > 3 ? " and others" : ""
        })`,
      ]
      : [],
    ...look.cacheStays ? ["caches that it cannot bind stay in memory"] : [],
  ];
  lines.push([
    "GPU",
    [
      `${description}: ${formatBytes(look.gpuBytes)}; WebGPU does not tell how much it has`,
      ...stays,
    ].join("; "),
  ]);
  return lines;
}

/** The same under the names it has outside of TypeScript. */
export function memoryJson(look: MemoryLook): Record<string, unknown> {
  return {
    wasm_limit: look.limit,
    cpu_bytes: look.cpuBytes,
    fits_cpu: look.fitsCpu,
    gpu: look.gpu === undefined ? null : {
      device: look.gpu.description,
      software: look.gpu.isSoftware,
      used: look.usesGpu,
      bytes: look.gpuBytes,
      cpu_bytes: look.cpuBytesWithGpu,
      fits_cpu: look.fitsWithGpu,
      cpu_tensors: look.cpuTensors.map(({ name }) => name),
      cache_stays: look.cacheStays,
      max_binding_bytes: look.gpu.maxStorageBufferBindingSize,
      max_buffer_bytes: look.gpu.maxBufferSize,
    },
  };
}
