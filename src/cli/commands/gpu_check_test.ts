import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { chooseGpu, type GpuProvider } from "../../../gpu/device.ts";
import { makeReadback } from "../../../gpu/readback.ts";
import { checkCompute, lookAtGpu } from "./gpu_check.ts";
import { gpuFindings, gpuReport } from "./gpu_text.ts";

const textOf = (report: Parameters<typeof gpuFindings>[0]) =>
  gpuFindings(report).map(({ name, value }) => `${name}: ${value}\n`).join("");

Deno.test("lookAtGpu() without WebGPU or without an adapter says so", async () => {
  const none = await lookAtGpu(undefined);
  assertEquals([none.state, none.adapters, none.device], ["none", [], null]);
  assertEquals(textOf(none), "GPU: none: this runtime has no WebGPU; the CPU computes\n");
  const empty = await lookAtGpu({ requestAdapter: () => Promise.resolve(null) });
  assertEquals(empty.state, "none");
  assertStringIncludes(textOf(empty), "no WebGPU adapter");
});

Deno.test("lookAtGpu() finds an adapter, and its device computes rightly", async () => {
  if (!await navigator.gpu?.requestAdapter()) {
    return console.log("skipped: no WebGPU adapter");
  }
  const report = await lookAtGpu(navigator.gpu);
  assert(report.adapters.length > 0);
  assertEquals(
    report.adapters.flatMap(({ preferences }) => preferences).toSorted(),
    ["default", "high-performance", "low-power"],
  );
  assertEquals(report.device?.computeError, "");
  assertEquals(report.device?.features.includes("shader-f16"), true);
  const { info } = report.adapters[0]!;
  assertEquals(report.state, info.software ? "software" : "usable");
  assertEquals(report.why === "", report.state === "usable");
  const text = textOf(report);
  for (const part of [info.description, "shader-f16 yes", "packed 4x8", "gave the right result"]) {
    assertStringIncludes(text, part);
  }
  if (info.software) assertStringIncludes(text, "--gpu required computes here");
  const json = gpuReport(report, null, []);
  assertEquals([json.adapter, json.used], [info.description, !info.software]);
});

Deno.test("checkCompute() sees a single wrong result", async () => {
  const gpu = await chooseGpu({ mode: "required" }, navigator.gpu);
  if ("why" in gpu) return console.log(`skipped: no WebGPU adapter (${gpu.why})`);
  const readback = await makeReadback(gpu.device);
  const error = await checkCompute(gpu.device, {
    async read(buffer, offset, bytes) {
      await readback.read(buffer, offset, bytes);
      bytes[4 * 70]! ^= 1;
    },
  });
  assert(/^value 70 of 1024 is \d+, right is \d+$/.test(error), error);
  assertEquals(await checkCompute(gpu.device, readback), "");
  gpu.device.destroy();
});

Deno.test("lookAtGpu() tells an adapter without shader-f16 as unfit", async () => {
  const real = await navigator.gpu?.requestAdapter();
  if (!real) return console.log("skipped: no WebGPU adapter");
  // The real adapter with one feature hidden.
  const provider: GpuProvider = {
    requestAdapter: () =>
      Promise.resolve({
        info: real.info,
        limits: real.limits,
        features: new Set([...real.features].filter((name) => name !== "shader-f16")),
      } as unknown as GPUAdapter),
  };
  const report = await lookAtGpu(provider);
  assertEquals([report.state, report.device], ["unfit", null]);
  assertStringIncludes(textOf(report), "lacks the feature shader-f16");
  assertStringIncludes(textOf(report), "shader-f16 no");
});

Deno.test("lookAtGpu() does not advise to run doctor, which it is of", async () => {
  const report = await lookAtGpu({ requestAdapter: () => Promise.resolve(null) });
  assertEquals([report.state, report.why], ["none", "no WebGPU adapter"]);
  assertEquals(textOf(report).includes("run "), false, textOf(report));
});
