/**
 * What WebGPU offers here: the adapters, what the engine makes of them, and a computation that is checked.
 *
 * @module
 */

import { chooseGpu, describeAdapter, type GpuInfo, type GpuProvider } from "../../../gpu/device.ts";
import { makeReadback, type Readback } from "../../../gpu/readback.ts";
import type { AdapterState } from "./gpu_files.ts";

const PREFERENCES = [undefined, "low-power", "high-performance"] as const;

/** How long to wait for an answer from the driver, in milliseconds. */
const PATIENCE_MS = 20_000;

/** One adapter. */
export interface AdapterReport {
  /** Power preferences that lead to it; "default" is the system's own choice. */
  preferences: string[];
  /** What it is, and its limits. */
  info: GpuInfo;
  /** The features that it offers. */
  features: string[];
}

/** The device that the engine would make. */
export interface DeviceReport {
  /** Granted features that the engine uses. */
  features: string[];
  /** Lanes of a subgroup. */
  subgroupSize: [min: number, max: number];
  /** Whether WGSL's packed 4x8 dot products compile. */
  packed4x8: boolean;
  /** How results are read. */
  readback: "sync" | "awaited";
  /** What is wrong with the checked computation; "" if nothing is. */
  computeError: string;
}

/** What WebGPU offers. */
export interface GpuReport {
  /** The verdict, in a word. */
  state: AdapterState;
  /** The adapters, the system's own choice first. */
  adapters: AdapterReport[];
  /** The device; null where there is none. */
  device: DeviceReport | null;
  /** Why `--gpu auto` does not use it; "" where it does. */
  why: string;
}

/**
 * Looks at what WebGPU offers, as the engine would.
 *
 * @param provider `navigator.gpu`, or what stands in for it.
 */
export async function lookAtGpu(provider: GpuProvider | undefined): Promise<GpuReport> {
  const adapters = provider === undefined ? [] : await listAdapters(provider);
  const none = (state: AdapterState, why: string): GpuReport => ({
    state,
    adapters,
    device: null,
    why,
  });
  const choose = async (mode: "auto" | "required") =>
    await within(PATIENCE_MS, chooseGpu({ mode }, provider)) ??
      { why: "the graphics driver does not answer" };
  const auto = await choose("auto");
  const gpu = "why" in auto && adapters.some(({ info }) => info.software)
    ? await choose("required")
    : auto;
  const why = "why" in auto ? ownWords(auto.why) : "";
  if ("why" in gpu) return none(adapters.length === 0 ? "none" : "unfit", ownWords(gpu.why));
  try {
    const readback = await makeReadback(gpu.device);
    const late = "no result came from the GPU";
    const computeError = await within(PATIENCE_MS, checkCompute(gpu.device, readback)) ?? late;
    const device: DeviceReport = {
      features: gpu.info.features,
      subgroupSize: gpu.info.subgroupSize,
      packed4x8: gpu.packed4x8,
      readback: readback.form,
      computeError,
    };
    const state = computeError !== "" ? "wrong" : why !== "" ? "software" : "usable";
    return { state, adapters, device, why };
  } catch (error) {
    return none("unfit", error instanceof Error ? error.message : String(error));
  } finally {
    gpu.device.destroy();
  }
}

async function listAdapters(provider: GpuProvider): Promise<AdapterReport[]> {
  const reports: AdapterReport[] = [];
  for (const powerPreference of PREFERENCES) {
    const adapter = await within(
      PATIENCE_MS,
      provider.requestAdapter(powerPreference === undefined ? {} : { powerPreference }),
    ).catch(() => null);
    if (!adapter) continue;
    const info = describeAdapter(adapter);
    const preference = powerPreference ?? "default";
    const same = reports.find((other) =>
      other.info.description === info.description && other.info.deviceId === info.deviceId
    );
    if (same) same.preferences.push(preference);
    else reports.push({ preferences: [preference], info, features: [...adapter.features].sort() });
  }
  return reports;
}

const N = 1024;

/** Half-precision arithmetic, workgroup memory and a barrier; each result needs another invocation's value. */
const SHADER = `enable f16;
@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
var<workgroup> part: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
  part[i] = u32(f16(src[id.x]) * 3.0h + 1.0h);
  workgroupBarrier();
  dst[id.x] = part[63u - i] * 1000u + part[(i + 1u) % 64u];
}`;

/**
 * Computes something on the GPU and compares.
 *
 * @param device The device; its feature shader-f16 is on.
 * @param readback Reads its buffers.
 * @returns What is wrong; "" if the results are right.
 */
export async function checkCompute(
  device: GPUDevice,
  readback: Pick<Readback, "read">,
): Promise<string> {
  const input = new Uint32Array(N).map((_, i) => (i * 37) % 101); // exact in half precision
  const half = (i: number) => input[i]! * 3 + 1;
  const expected = input.map((_, i) => {
    const base = i - i % 64;
    return half(base + 63 - i % 64) * 1000 + half(base + (i + 1) % 64);
  });
  const size = input.byteLength;
  device.pushErrorScope("validation");
  const buffer = (usage: number) => device.createBuffer({ label: "doctor", size, usage });
  const src = buffer(GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST);
  const dst = buffer(GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC);
  const staging = buffer(GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
  const pipeline = device.createComputePipeline({
    label: "doctor",
    layout: "auto",
    compute: { module: device.createShaderModule({ code: SHADER }), entryPoint: "main" },
  });
  device.queue.writeBuffer(src, 0, input);
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(
    0,
    device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [src, dst].map((buffer, binding) => ({ binding, resource: { buffer } })),
    }),
  );
  pass.dispatchWorkgroups(N / 64);
  pass.end();
  encoder.copyBufferToBuffer(dst, 0, staging, 0, size);
  device.queue.submit([encoder.finish()]);
  const refused = await device.popErrorScope();
  if (refused !== null) return refused.message;
  const bytes = new Uint8Array(size);
  await readback.read(staging, 0, bytes);
  const got = new Uint32Array(bytes.buffer);
  const wrong = got.findIndex((value, i) => value !== expected[i]);
  return wrong < 0 ? "" : `value ${wrong} of ${N} is ${got[wrong]}, right is ${expected[wrong]}`;
}

/** A promise's value, or undefined if it takes too long. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<undefined>((resolve) => timer = setTimeout(resolve, ms, undefined));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The engine's reason without its advice to run `doctor`, which this is. */
function ownWords(why: string): string {
  return why.replace(/ \(run "doctor"[^)]*\)/, "");
}
