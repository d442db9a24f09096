import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  chooseGpu,
  type ChosenGpu,
  describeAdapter,
  FACTS_BYTES,
  GPU_LIMITS,
  type GpuChoice,
  type GpuInfo,
  type GpuLimit,
  packFacts,
  vendorName,
} from "./device.ts";

const LIMITS: Record<GpuLimit, number> = {
  maxBufferSize: 2 ** 34,
  maxStorageBufferBindingSize: 2 ** 32 - 4,
  maxStorageBuffersPerShaderStage: 16,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupSizeX: 1024,
  maxComputeWorkgroupSizeY: 1024,
  maxComputeWorkgroupSizeZ: 64,
  maxComputeWorkgroupStorageSize: 49152,
  maxComputeWorkgroupsPerDimension: 65535,
  minStorageBufferOffsetAlignment: 32,
  minUniformBufferOffsetAlignment: 64,
};

interface StandIn {
  features?: string[];
  limits?: Partial<Record<GpuLimit, number>>;
  info?: Record<string, unknown>;
  /** Features with which it gives a device; the others make it refuse. */
  grants?: string[];
}

/** An adapter of a kind that is not here; its device compiles everything. */
function adapter(standIn: StandIn = {}): GPUAdapter {
  const grants = standIn.grants ?? ["shader-f16", "subgroups"];
  return {
    info: { vendor: "4318", device: "10168", description: "NVIDIA L4", ...standIn.info },
    features: new Set(standIn.features ?? ["shader-f16", "timestamp-query"]),
    limits: { ...LIMITS, ...standIn.limits },
    requestDevice: ({ requiredFeatures }: { requiredFeatures: string[] }) =>
      requiredFeatures.every((name) => grants.includes(name))
        ? Promise.resolve({
          pushErrorScope() {},
          createShaderModule() {},
          popErrorScope: () => Promise.resolve(null),
        })
        : Promise.reject(new TypeError("not granted")),
  } as unknown as GPUAdapter;
}

async function choose(
  standIn: GPUAdapter | null,
  mode: GpuChoice["mode"] = "auto",
): Promise<GpuInfo | string> {
  const gpu = await chooseGpu({ mode }, { requestAdapter: () => Promise.resolve(standIn) });
  return "why" in gpu ? gpu.why : gpu.info;
}

Deno.test("vendorName() translates PCI numbers and leaves names", () => {
  assertEquals(["4318", "32902", "4098", "65541"].map(vendorName), [
    "nvidia",
    "intel",
    "amd",
    "mesa",
  ]);
  assertEquals(["NVIDIA", "apple", "", "77777"].map(vendorName), ["nvidia", "apple", "", "77777"]);
});

Deno.test("describeAdapter() tells names, numbers, limits and software", () => {
  const info = describeAdapter(adapter());
  assertEquals([info.vendor, info.vendorId, info.deviceId], ["nvidia", 0x10de, 10168]);
  assertEquals([info.description, info.software], ["NVIDIA L4", false]);
  assertEquals(info.features, ["shader-f16"]);
  assertEquals(info.subgroupSize, [4, 128]);
  assertEquals(info.limits, LIMITS);
  const named = describeAdapter(adapter({
    info: { vendor: "apple", description: "", device: "", architecture: "metal-3" },
  }));
  assertEquals([named.description, named.vendorId], ["metal-3", 0]);
  for (const description of ["llvmpipe (LLVM 15.0.6)", "SwiftShader Device"]) {
    assert(describeAdapter(adapter({ info: { description } })).software, description);
  }
});

Deno.test("chooseGpu() says why there is none", async () => {
  assertEquals(await chooseGpu({ mode: "auto" }, undefined), {
    why: "this runtime has no WebGPU",
  });
  assertStringIncludes(await choose(null) as string, "no WebGPU adapter");
  const broken = { requestAdapter: () => Promise.reject(new Error("driver lost")) };
  const gpu = await chooseGpu({ mode: "auto" }, broken);
  assertStringIncludes("why" in gpu ? gpu.why : "", "driver lost");
});

Deno.test("chooseGpu() refuses an adapter that the shaders cannot run on, and names what it lacks", async () => {
  for (const mode of ["auto", "required"] as const) {
    assertEquals(
      await choose(adapter({ features: ["timestamp-query"] }), mode),
      "the adapter NVIDIA L4 lacks the feature shader-f16",
    );
    for (
      const [name, value] of [
        ["maxStorageBuffersPerShaderStage", 4],
        ["maxComputeInvocationsPerWorkgroup", 128],
        ["maxComputeWorkgroupStorageSize", 8192],
        ["maxStorageBufferBindingSize", 2 ** 20],
      ] as const
    ) {
      const why = await choose(adapter({ limits: { [name]: value } }), mode);
      assertStringIncludes(String(why), `NVIDIA L4 has ${name} ${value}, needed: `);
    }
    assertEquals(
      await choose(adapter({ grants: [] }), mode),
      "the adapter NVIDIA L4 gives no device: not granted",
    );
  }
});

Deno.test("chooseGpu() takes software only where a GPU is required", async () => {
  const software = () => adapter({ info: { description: "llvmpipe" } });
  assertStringIncludes(await choose(software(), "auto") as string, "software (llvmpipe)");
  assertEquals((await choose(software(), "required") as GpuInfo).description, "llvmpipe");
});

Deno.test("chooseGpu() asks for subgroups, which may be granted without being listed", async () => {
  assertEquals((await choose(adapter()) as GpuInfo).features, ["shader-f16", "subgroups"]);
  const plain = await choose(adapter({ grants: ["shader-f16"] }));
  assertEquals((plain as GpuInfo).features, ["shader-f16"]);
});

Deno.test("chooseGpu() hands the power preference on, and only if there is one", async () => {
  const asked: unknown[] = [];
  const provider = {
    requestAdapter: (options?: GPURequestAdapterOptions) => {
      asked.push(options);
      return Promise.resolve(null);
    },
  };
  await chooseGpu({ mode: "auto" }, provider);
  await chooseGpu({ mode: "auto", powerPreference: "low-power" }, provider);
  assertEquals(asked, [{}, { powerPreference: "low-power" }]);
});

Deno.test("chooseGpu() opens the adapter that is here, with all its limits", async () => {
  const gpu = await chooseGpu({ mode: "required" }, navigator.gpu);
  if ("why" in gpu) return console.log(`skipped: no WebGPU adapter (${gpu.why})`);
  try {
    for (const name of GPU_LIMITS) assertEquals(gpu.device.limits[name], gpu.info.limits[name]);
    for (const name of gpu.info.features) {
      assert(gpu.device.features.has(name as GPUFeatureName) || name === "subgroups", name);
    }
  } finally {
    gpu.device.destroy();
  }
});

Deno.test("packFacts() lays the facts out as the C++ side reads them", () => {
  const gpu: ChosenGpu = {
    device: {} as GPUDevice,
    info: { ...describeAdapter(adapter()), features: ["shader-f16"], subgroupSize: [32, 64] },
    packed4x8: true,
  };
  const bytes = packFacts(gpu, false);
  assertEquals(bytes.length, FACTS_BYTES);
  const view = new DataView(bytes.buffer);
  const u32 = Array.from({ length: 14 }, (_, i) => view.getUint32(4 * i, true));
  assertEquals(u32, [1, 1, 0, 1, 32, 64, 0x10de, 10168, 1024, 49152, 65535, 32, 64, 0]);
  assertEquals([56, 64].map((at) => view.getBigUint64(at, true)), [2n ** 34n, 2n ** 32n - 4n]);
  const text = (at: number, n: number) =>
    new TextDecoder().decode(bytes.subarray(at, at + n)).replace(/\0+$/, "");
  assertEquals([text(72, 32), text(104, 64), text(168, 64), text(232, 128)], [
    "nvidia",
    "",
    "10168",
    "NVIDIA L4",
  ]);
  assertEquals(new DataView(packFacts(gpu, true).buffer).getUint32(52, true), 1);
});

Deno.test("packFacts() cuts a long description between characters, with a zero at its end", () => {
  const description = "é".repeat(100);
  const info = describeAdapter(adapter({ info: { description } }));
  const bytes = packFacts({ device: {} as GPUDevice, info, packed4x8: false }, false);
  assertEquals(bytes[FACTS_BYTES - 1], 0);
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(232));
  assertEquals(text.replace(/\0+$/, ""), "é".repeat(63));
});
