import { assertEquals } from "@std/assert";
import type { ModelGpu, ModelInfo } from "../../engine/mod.ts";
import { fileName, memoryFor } from "./loaded_model.ts";

const GIB = 2 ** 30;

/** A model of 30 layers and 4 GiB, with so many layers on a GPU. */
function info(layers?: number): ModelInfo {
  const gpu: ModelGpu | null = layers === undefined ? null : {
    vendor: "nvidia",
    description: "NVIDIA L4",
    features: [],
    software: false,
    readback: "sync",
    layers,
    bytes: 3 * GIB,
    cpuBytes: GIB,
    cpuTensors: [],
  };
  return {
    arch: "qwen3",
    name: "",
    desc: "",
    nLayer: 29,
    nLayerNextn: 1,
    nCtxTrain: 4096,
    nEmbd: 1024,
    nVocab: 1000,
    nParams: 1,
    modelBytes: 4 * GIB,
    bos: null,
    eos: null,
    hasTokenizer: true,
    hasChatTemplate: true,
    layerPlan: "",
    gpu,
    gpuWhy: gpu ? "" : "switched off",
  };
}

Deno.test("memoryFor() leaves to contexts what WASM memory has beside the weights in it", () => {
  assertEquals(memoryFor(info()), 11.5 * GIB);
  assertEquals(memoryFor(info(12)), 14.5 * GIB);
  assertEquals(memoryFor(info(30)), 14.5 * GIB);
  assertEquals(memoryFor({ ...info(), modelBytes: 20 * GIB }), 1);
});

Deno.test("memoryFor() sets no limit where all layers, and with them the contexts, are on a GPU", () => {
  assertEquals(memoryFor(info(31)), Infinity);
});

Deno.test("fileName() takes folders, the ending and a shard's number away", () => {
  assertEquals(
    ["a/b.gguf", "C:\\m\\b.GGUF", "b-00001-of-00003.gguf", "x,y.gguf", ".gguf"].map(fileName),
    ["b", "b", "b", "x_y", "model"],
  );
});
