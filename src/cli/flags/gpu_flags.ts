import type { LoadModelOptions, ModelInfo } from "../../engine/mod.ts";
import { parseGpuLayers } from "../../server/from_environment.ts";
import { asUsage, UsageError } from "../errors.ts";
import type { Flags } from "./parse_flags.ts";
import { formatBytes } from "../terminal/plan_text.ts";

/** The GPU options that a command line can set. */
export type GpuOptions = Pick<LoadModelOptions, "gpu" | "gpuLayers" | "powerPreference">;

/**
 * The GPU options of the command line, for `loadModel()`.
 *
 * @param flags Read for `--gpu`, `-ngl` and `--gpu-power`.
 * @throws {UsageError} If a value is wrong, or the flags contradict each other.
 */
export function gpuOptions(flags: Flags): GpuOptions {
  const asked = flags.text("gpu");
  const gpu = asked === "on" ? "required" : asked as GpuOptions["gpu"];
  const gpuLayers = layersOf(flags);
  if (gpu === "required" && gpuLayers === 0) {
    throw new UsageError(
      `${flags.name("gpu")} ${asked} asks for a GPU, and ${
        flags.name("gpuLayers")
      } 0 for none of it`,
    );
  }
  const { powerPreference } = flags.values("load");
  return { gpu, gpuLayers, powerPreference };
}

function layersOf(flags: Flags): number | "all" | undefined {
  const text = flags.text("gpuLayers");
  if (text === undefined) return undefined;
  return asUsage("", () => parseGpuLayers(flags.name("gpuLayers"), text));
}

/**
 * Where a model is computed, in one line.
 *
 * @param info What the model reports about itself.
 * @param options What was asked for.
 */
export function gpuLine(info: ModelInfo, options: GpuOptions): string {
  const { gpu } = info;
  if (gpu === null) return isOff(options) ? "off" : `not used: ${info.gpuWhy}`;
  const { description, software, layers, bytes, cpuBytes, cpuTensors, readback } = gpu;
  const names = cpuTensors.slice(0, 3).map(({ name }) => name).join(", ");
  const more = cpuTensors.length > 3 ? " and others" : "";
  const stay = cpuBytes === 0
    ? ""
    : `; ${formatBytes(cpuBytes)} stay in memory${names === "" ? "" : `: ${names}${more}`}`;
  const slow = readback === "awaited" ? "; results are read the slow way" : "";
  return `${description}${software ? " (software)" : ""}, ${layers}/${layersInAll(info)} layers, ` +
    formatBytes(bytes) + stay + slow;
}

/**
 * What to say when layers were asked for but the CPU computes; undefined if there is nothing to say.
 *
 * @param flags Read for `-ngl`.
 * @param info What the model reports about itself.
 * @param options What was asked for.
 */
export function missedLayers(
  flags: Flags,
  info: ModelInfo,
  options: GpuOptions,
): string | undefined {
  const { gpuLayers } = options;
  if (info.gpu !== null || gpuLayers === undefined || gpuLayers === 0) return undefined;
  const why = isOff(options) ? `${flags.name("gpu")} off` : info.gpuWhy;
  return `${flags.name("gpuLayers")} ${
    flags.text("gpuLayers")
  } has no effect, the CPU computes: ${why}`;
}

/**
 * Where a model is computed, for `--json`.
 *
 * @param info What the model reports about itself.
 */
export function gpuJson(info: ModelInfo): Record<string, unknown> {
  const { gpu } = info;
  if (gpu === null) return { device: null, why: info.gpuWhy };
  return {
    device: gpu.description,
    vendor: gpu.vendor,
    software: gpu.software,
    features: gpu.features,
    readback: gpu.readback,
    layers: gpu.layers,
    layers_all: layersInAll(info),
    bytes: gpu.bytes,
    cpu_bytes: gpu.cpuBytes,
    cpu_tensors: gpu.cpuTensors,
  };
}

function isOff({ gpu, gpuLayers }: GpuOptions): boolean {
  return gpu === "off" || gpuLayers === 0;
}

/** Layers that `-ngl` counts: the output layer is one. */
function layersInAll({ nLayer, nLayerNextn }: ModelInfo): number {
  return nLayer + nLayerNextn + 1;
}
