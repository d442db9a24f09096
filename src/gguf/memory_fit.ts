import type { MemoryCost } from "../plan/cost.ts";
import type { GgufHeader } from "./types.ts";

/** Number formats that the GPU backend multiplies with; weights of another stay in memory. */
const GPU_TYPES = /^(?:f32|f16|q1_0|q[458]_[01]|q[2-6]_k|iq\d\w*|mxfp4|nvfp4|i32)$/i;

/** What of a GPU decides what it can hold. */
export interface GpuBounds {
  /** Bytes that a shader can see of a buffer. */
  maxStorageBufferBindingSize: number;
  /** Bytes of the largest buffer. */
  maxBufferSize: number;
}

/** What a model and a context need, on the CPU or with all layers on a GPU. */
export interface MemoryNeeds {
  /** Bytes of WASM memory if the CPU computes: weights, caches, states; without the engine's own. */
  cpuBytes: number;
  /** Bytes of WASM memory if the GPU computes. */
  cpuBytesWithGpu: number;
  /** Bytes of GPU memory if it computes. WebGPU does not tell how much there is. */
  gpuBytes: number;
  /** Weights that the GPU cannot bind or compute with: the largest ones first. */
  cpuTensors: { name: string; bytes: number }[];
  /** Caches of some layers are too large for the GPU to bind, and stay in memory. */
  cacheStays: boolean;
}

/**
 * Sums up what a model and a context need.
 *
 * @param header The model's header.
 * @param cost The context's memory.
 * @param gpu The GPU's limits. Default: none, so that everything fits on it.
 *
 * @example
 * ```ts
 * import { memoryNeeds, modelFacts, readHeader } from "@rys/edge/gguf";
 * import { estimateCost } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const header = await readHeader("models/demo.gguf");
 * const { plan } = estimateCost(modelFacts(header), undefined, { nCtx: 512 });
 * assertEquals(memoryNeeds(header, plan).cpuBytes, header.weightBytes + plan.kvBytes);
 * ```
 */
export function memoryNeeds(
  header: Pick<GgufHeader, "tensors" | "weightBytes">,
  cost: MemoryCost,
  gpu: GpuBounds = { maxStorageBufferBindingSize: Infinity, maxBufferSize: Infinity },
): MemoryNeeds {
  const most = Math.min(gpu.maxStorageBufferBindingSize, gpu.maxBufferSize);
  const cpuTensors = header.tensors
    .filter(({ bytes, type }) => bytes > most || !GPU_TYPES.test(type.name))
    .map(({ name, bytes }) => ({ name, bytes }))
    .sort((a, b) => b.bytes - a.bytes);
  const cacheStays = cost.largestKvBytes > most;
  const stay = cpuTensors.reduce((sum, { bytes }) => sum + bytes, 0);
  const caches = cost.kvBytes + cost.recurrentBytes;
  const cachesOnCpu = cacheStays ? cost.kvBytes : 0;
  return {
    cpuBytes: header.weightBytes + caches,
    cpuBytesWithGpu: stay + cachesOnCpu,
    gpuBytes: header.weightBytes - stay + caches - cachesOnCpu,
    cpuTensors,
    cacheStays,
  };
}
