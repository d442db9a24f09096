import { assertEquals, assertThrows } from "@std/assert";
import type { ModelInfo } from "../../engine/mod.ts";
import { UsageError } from "../errors.ts";
import { gpuJson, gpuLine, gpuOptions, missedLayers } from "./gpu_flags.ts";
import { parseFlags } from "./parse_flags.ts";

type ModelGpu = NonNullable<ModelInfo["gpu"]>;

const options = (...args: string[]) => gpuOptions(parseFlags(args));

function info(gpu: Partial<ModelGpu> | string): ModelInfo {
  return {
    nLayer: 28,
    nLayerNextn: 2,
    gpu: typeof gpu === "string" ? null : {
      vendor: "nvidia",
      description: "NVIDIA L4",
      features: ["shader-f16"],
      software: false,
      readback: "sync",
      layers: 31,
      bytes: 2 ** 30,
      cpuBytes: 0,
      cpuTensors: [],
      ...gpu,
    },
    gpuWhy: typeof gpu === "string" ? gpu : "",
  } as ModelInfo;
}

Deno.test("gpuOptions() leaves to the engine what was not given", () => {
  assertEquals(options(), {
    gpu: undefined,
    gpuLayers: undefined,
    powerPreference: undefined,
  });
});

Deno.test("gpuOptions() reads a bare --gpu, and on, as required", () => {
  assertEquals(options("--gpu").gpu, "required");
  assertEquals(options("--gpu", "-n", "4").gpu, "required");
  assertEquals(options("--gpu", "on").gpu, "required");
  assertEquals(options("--gpu=auto").gpu, "auto");
  assertEquals(options("--gpu", "off").gpu, "off");
  assertEquals(options("--gpu-power", "low-power").powerPreference, "low-power");
});

Deno.test("gpuOptions() reads -ngl as llama.cpp does", () => {
  const layers = (text: string) => options("-ngl", text).gpuLayers;
  assertEquals(["0", "12", "99", "+3"].map(layers), [0, 12, 99, 3]);
  assertEquals(["all", "auto", "-1", "-2"].map(layers), ["all", "all", "all", "all"]);
  assertEquals(layers("99999999999999999999"), 9999);
  for (const wrong of ["many", "1.5", "", "1e3", "ALL", "-3"]) {
    assertThrows(() => layers(wrong), UsageError, "-ngl must be a whole number from 0");
  }
});

Deno.test("gpuOptions() refuses a GPU that gets no layer", () => {
  assertThrows(() => options("--gpu", "on", "-ngl", "0"), UsageError, "--gpu on asks for a GPU");
  assertThrows(
    () => options("--gpu=all"),
    UsageError,
    '--gpu must be auto, on, off or required, not "all"',
  );
  assertThrows(() => options("--gpu-power", "high"), UsageError, "high-performance");
});

Deno.test("gpuLine() says which GPU, what is there, and what is not", () => {
  assertEquals(gpuLine(info({}), {}), "NVIDIA L4, 31/31 layers, 1.00 GiB");
  const names = ["token_embd.weight", "a", "b", "c"];
  assertEquals(
    gpuLine(
      info({
        cpuBytes: 300 * 2 ** 20,
        cpuTensors: names.map((name) => ({ name, bytes: 1 })),
        software: true,
        readback: "awaited",
      }),
      {},
    ),
    "NVIDIA L4 (software), 31/31 layers, 1.00 GiB; 300 MiB stay in memory: " +
      "token_embd.weight, a, b and others; results are read the slow way",
  );
  assertEquals(
    gpuLine(info({ layers: 3, cpuBytes: 2 ** 20 }), { gpuLayers: 3 }),
    "NVIDIA L4, 3/31 layers, 1.00 GiB; 1.00 MiB stay in memory",
  );
  assertEquals(gpuLine(info("no adapter"), {}), "not used: no adapter");
  assertEquals(gpuLine(info("switched off"), { gpu: "off" }), "off");
  assertEquals(gpuLine(info("switched off"), { gpuLayers: 0 }), "off");
});

Deno.test("missedLayers() speaks only where layers were asked for and the CPU computes", () => {
  const missed = (gpu: Partial<ModelGpu> | string, ...args: string[]) => {
    const flags = parseFlags(args);
    return missedLayers(flags, info(gpu), gpuOptions(flags));
  };
  assertEquals(missed("no adapter"), undefined);
  assertEquals(missed("no adapter", "-ngl", "0"), undefined);
  assertEquals(missed({}, "-ngl", "9"), undefined);
  assertEquals(
    missed("no adapter", "-ngl", "9"),
    "-ngl 9 has no effect, the CPU computes: no adapter",
  );
  assertEquals(
    missed("switched off", "-ngl", "all", "--gpu", "off"),
    "-ngl all has no effect, the CPU computes: --gpu off",
  );
});

Deno.test("gpuJson() has a device, or the reason why there is none", () => {
  assertEquals(gpuJson(info("no adapter")), { device: null, why: "no adapter" });
  const { device, layers, layers_all, bytes } = gpuJson(info({ layers: 4 }));
  assertEquals([device, layers, layers_all, bytes], ["NVIDIA L4", 4, 31, 2 ** 30]);
});
