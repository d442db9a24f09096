/**
 * Which adapter the engine computes on, what it can do, or why the engine cannot use one.
 *
 * @module
 */

/** How the engine looks for a GPU. */
export interface GpuChoice {
  /** `auto`: the GPU if there is a usable one; `required`: an error if not; `off`: `navigator.gpu` is not touched. */
  mode: "auto" | "off" | "required";
  /** Which adapter to use if there are several. */
  powerPreference?: GPUPowerPreference;
  /** `awaited` never uses the synchronous read-back, `sync` is tried first and checked (default). */
  readback?: "sync" | "awaited";
  /** One crossing per call and nothing cached: for the comparison in bench/. */
  immediate?: boolean;
  /** Used in place of the adapter's vendor, which decides between kernels: so that tests reach all of them. */
  vendor?: string;
  /** URL of a module whose `gpu` stands in for `navigator.gpu`, as the recording device does. */
  provider?: string;
}

/** The part of `navigator.gpu` that is used. */
export type GpuProvider = Pick<GPU, "requestAdapter"> & {
  wgslLanguageFeatures?: { has(name: string): boolean };
};

/** A GPU, in terms for people. */
export interface GpuInfo {
  /** Vendor in words, such as `nvidia`; the PCI number if the vendor is unknown. */
  vendor: string;
  /** What the driver calls the device. */
  description: string;
  /** PCI numbers, 0 if unknown. */
  vendorId: number;
  deviceId: number;
  /** Features that the engine uses and that were granted. */
  features: string[];
  /** Lanes of a subgroup, smallest and largest. */
  subgroupSize: [min: number, max: number];
  /** The limits that the engine looks at, in bytes or counts. */
  limits: Record<GpuLimit, number>;
  /** True for a software rasteriser: correct, but slower than the CPU path. */
  software: boolean;
}

/** Names of the limits that the engine looks at. */
export type GpuLimit = typeof GPU_LIMITS[number];

/** The limits that the engine asks for: all that the adapter has. */
export const GPU_LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupStorageSize",
  "maxComputeWorkgroupsPerDimension",
  "minStorageBufferOffsetAlignment",
  "minUniformBufferOffsetAlignment",
] as const;

/** Smallest values with which the shaders work. */
const NEEDED: Partial<Record<GpuLimit, number>> = {
  maxStorageBuffersPerShaderStage: 8, // WebGPU's default
  maxComputeInvocationsPerWorkgroup: 256, // tiles of the matrix products
  maxComputeWorkgroupStorageSize: 16384,
  maxStorageBufferBindingSize: 1 << 27,
};

const VENDORS: Record<number, string> = {
  0x1002: "amd",
  0x10de: "nvidia",
  0x8086: "intel",
  0x106b: "apple",
  0x13b5: "arm",
  0x5143: "qualcomm",
  0x10005: "mesa",
  0x1af4: "virtio",
  0x1ae0: "google",
};

/** A device that the engine can use. */
export interface ChosenGpu {
  device: GPUDevice;
  info: GpuInfo;
  /** Whether WGSL's packed 4x8 dot products work. */
  packed4x8: boolean;
}

/**
 * The vendor by llama.cpp's name. Deno gives the PCI number, in decimal, as the name.
 *
 * @param vendor Vendor as the adapter's info has it.
 */
export function vendorName(vendor: string): string {
  return VENDORS[/^\d+$/.test(vendor) ? Number(vendor) : -1] ?? vendor.toLowerCase();
}

/**
 * What an adapter is and can do.
 *
 * @param adapter The adapter.
 */
export function describeAdapter(adapter: GPUAdapter): GpuInfo {
  const info = adapter.info as GPUAdapterInfo & Partial<Record<string, string | number | boolean>>;
  const number = (text: unknown) => /^\d+$/.test(String(text)) ? Number(text) : 0;
  const description = info.description || info.device || info.architecture || "unnamed";
  const limits = Object.fromEntries(
    GPU_LIMITS.map((name) => [name, adapter.limits[name]]),
  ) as Record<GpuLimit, number>;
  return {
    vendor: vendorName(info.vendor),
    description,
    vendorId: number(info.vendor),
    deviceId: number(info.device),
    features: [...adapter.features].filter((name) => WANTED.includes(name)),
    // an unknown size is the widest range that WebGPU allows
    subgroupSize: [Number(info.subgroupMinSize) || 4, Number(info.subgroupMaxSize) || 128],
    limits,
    software: /llvmpipe|lavapipe|swiftshader|softpipe|basic render/i.test(description),
  };
}

const WANTED = ["shader-f16", "subgroups"];

/**
 * Chooses an adapter and creates the device, or says in one line why there is none.
 *
 * @param choice What was asked for; not `off`.
 * @param provider `navigator.gpu` or what stands in for it.
 * @returns A device, or the reason why the CPU computes.
 */
export async function chooseGpu(
  choice: GpuChoice,
  provider: GpuProvider | undefined,
): Promise<ChosenGpu | { why: string }> {
  if (!provider) return { why: "this runtime has no WebGPU" };
  let adapter: GPUAdapter | null;
  try {
    adapter = await provider.requestAdapter(
      choice.powerPreference ? { powerPreference: choice.powerPreference } : {},
    );
  } catch (error) {
    return { why: `asking for a WebGPU adapter failed: ${(error as Error).message}` };
  }
  if (!adapter) return { why: 'no WebGPU adapter (run "doctor" for what is missing)' };
  const info = describeAdapter(adapter);
  if (!adapter.features.has("shader-f16")) {
    return { why: `the adapter ${info.description} lacks the feature shader-f16` };
  }
  for (const [name, least] of Object.entries(NEEDED) as [GpuLimit, number][]) {
    if (info.limits[name] < least) {
      return {
        why: `the adapter ${info.description} has ${name} ${info.limits[name]}, needed: ${least}`,
      };
    }
  }
  if (info.software && choice.mode === "auto" && !choice.provider) {
    return { why: `the only adapter is software (${info.description}), slower than the CPU path` };
  }
  const requiredLimits = Object.fromEntries(
    GPU_LIMITS.map((name) => [name, info.limits[name]]),
  );
  // Deno grants subgroups if the hardware has them, yet does not list them: the only way to know is to ask.
  let device: GPUDevice | undefined;
  let reason = "";
  for (const features of [["shader-f16", "subgroups"], ["shader-f16"]]) {
    try {
      device = await adapter.requestDevice({
        label: "rys",
        requiredFeatures: features as GPUFeatureName[],
        requiredLimits,
      });
      info.features = features;
      break;
    } catch (error) {
      reason = (error as Error).message;
    }
  }
  if (!device) return { why: `the adapter ${info.description} gives no device: ${reason}` };
  if (choice.vendor !== undefined) info.vendor = choice.vendor;
  const packed4x8 = await compiles(
    device,
    "@compute @workgroup_size(1) fn main() { _ = dot4I8Packed(1u, 2u); }",
  );
  return { device, info, packed4x8 };
}

/** Whether the device accepts a shader; language features are not listed everywhere. */
async function compiles(device: GPUDevice, code: string): Promise<boolean> {
  device.pushErrorScope("validation");
  device.createShaderModule({ code });
  return await device.popErrorScope() === null;
}

/** Members of `rys_gpu_facts` (gpu/webgpu/rys_gpu.h) in their order: a number's type, or the bytes of a text. */
export const FACTS = {
  present: "uint32_t",
  shader_f16: "uint32_t",
  subgroups: "uint32_t",
  packed_4x8: "uint32_t",
  subgroup_min_size: "uint32_t",
  subgroup_max_size: "uint32_t",
  vendor_id: "uint32_t",
  device_id: "uint32_t",
  max_compute_invocations_per_workgroup: "uint32_t",
  max_compute_workgroup_storage_size: "uint32_t",
  max_compute_workgroups_per_dimension: "uint32_t",
  min_storage_buffer_offset_alignment: "uint32_t",
  min_uniform_buffer_offset_alignment: "uint32_t",
  immediate: "uint32_t",
  max_buffer_size: "uint64_t",
  max_storage_buffer_binding_size: "uint64_t",
  vendor: 32,
  architecture: 64,
  device: 64,
  description: 128,
} as const;

type FactName = keyof typeof FACTS;

const sizeOf = (kind: typeof FACTS[FactName]): number =>
  kind === "uint32_t" ? 4 : kind === "uint64_t" ? 8 : kind;

/** Bytes of `rys_gpu_facts`. */
export const FACTS_BYTES: number = Object.values(FACTS).reduce((n, kind) => n + sizeOf(kind), 0);

/**
 * The device's facts as `rys_gpu_facts`.
 *
 * @param gpu The device.
 * @param immediate See {@linkcode GpuChoice.immediate}.
 */
export function packFacts(gpu: ChosenGpu, immediate: boolean): Uint8Array {
  const { info } = gpu;
  const { limits, features } = info;
  const values: Record<FactName, number | string> = {
    present: 1,
    shader_f16: Number(features.includes("shader-f16")),
    subgroups: Number(features.includes("subgroups")),
    packed_4x8: Number(gpu.packed4x8),
    subgroup_min_size: info.subgroupSize[0],
    subgroup_max_size: info.subgroupSize[1],
    vendor_id: info.vendorId,
    device_id: info.deviceId,
    max_compute_invocations_per_workgroup: limits.maxComputeInvocationsPerWorkgroup,
    max_compute_workgroup_storage_size: limits.maxComputeWorkgroupStorageSize,
    max_compute_workgroups_per_dimension: limits.maxComputeWorkgroupsPerDimension,
    min_storage_buffer_offset_alignment: limits.minStorageBufferOffsetAlignment,
    min_uniform_buffer_offset_alignment: limits.minUniformBufferOffsetAlignment,
    immediate: Number(immediate),
    max_buffer_size: limits.maxBufferSize,
    max_storage_buffer_binding_size: limits.maxStorageBufferBindingSize,
    vendor: info.vendor,
    architecture: "",
    device: String(info.deviceId || ""),
    description: info.description,
  };
  const bytes = new Uint8Array(FACTS_BYTES);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [name, kind] of Object.entries(FACTS) as [FactName, typeof FACTS[FactName]][]) {
    const value = values[name];
    if (kind === "uint32_t") view.setUint32(at, Number(value), true);
    else if (kind === "uint64_t") view.setBigUint64(at, BigInt(value), true);
    else new TextEncoder().encodeInto(String(value), bytes.subarray(at, at + kind - 1)); // ends with a zero
    at += sizeOf(kind);
  }
  return bytes;
}
