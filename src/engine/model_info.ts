import type { EngineGpu } from "./protocol.ts";

/** What a loaded model reports about itself. */
export interface ModelInfo {
  /** `general.architecture`. */
  arch: string;
  /** `general.name`, or "". */
  name: string;
  /** In a few words: architecture, parameters, number format, size; e.g. `"qwen3, 1.7 M parameters, F16, 3.2 MiB"`. */
  desc: string;
  /** Trunk layers. */
  nLayer: number;
  /** Next-token (MTP) layers after them. */
  nLayerNextn: number;
  /** Context size it was trained with, in tokens. */
  nCtxTrain: number;
  /** Embedding width. */
  nEmbd: number;
  /** Vocabulary size. */
  nVocab: number;
  /** Parameters. */
  nParams: number;
  /** Bytes of weights. */
  modelBytes: number;
  /** Begin-of-text token, or null. */
  bos: number | null;
  /** End-of-text token, or null. */
  eos: number | null;
  /** Whether it has a tokenizer. */
  hasTokenizer: boolean;
  /** Whether it has a chat template. */
  hasChatTemplate: boolean;
  /** The file's own plan (`rys.layer_plan`), or "". */
  layerPlan: string;
  /** The GPU that computes, or null. */
  gpu: ModelGpu | null;
  /** Why the CPU computes, in a few words; "" on a GPU. */
  gpuWhy: string;
}

/** A model's GPU. */
export interface ModelGpu {
  /** Vendor, such as `"nvidia"`. */
  vendor: string;
  /** What the driver calls the device. */
  description: string;
  /** Granted features that the engine uses. */
  features: string[];
  /** True for a software rasteriser. */
  software: boolean;
  /** How results are read: `"awaited"` costs some 11 ms a token under Deno 2.9. */
  readback: "sync" | "awaited";
  /** Layers on the GPU, the output layer included. */
  layers: number;
  /** Bytes of weights on the GPU. */
  bytes: number;
  /** Bytes of weights in memory. */
  cpuBytes: number;
  /** Weights that stayed in memory because the GPU cannot bind or compute them: the largest ones, at most 16. */
  cpuTensors: { name: string; bytes: number }[];
}

/** {@linkcode ModelInfo} in the engine's own form. */
export interface RawModel {
  arch: string;
  name: string;
  desc: string;
  n_layer: number;
  n_layer_nextn: number;
  n_ctx_train: number;
  n_embd: number;
  n_vocab: number;
  n_params: number;
  model_bytes: number;
  vocab_type: number;
  bos: number | null;
  eos: number | null;
  has_chat_template: boolean;
  layer_plan: string;
  gpu_layers: number;
  gpu_bytes: number;
  cpu_bytes: number;
  cpu_tensors: { name: string; bytes: number }[];
}

/** What the engine reports about a model and its GPU, as {@linkcode ModelInfo}. */
export function modelInfo(raw: RawModel, gpu: EngineGpu): ModelInfo {
  return {
    arch: raw.arch,
    name: raw.name,
    desc: describe(raw),
    nLayer: raw.n_layer,
    nLayerNextn: raw.n_layer_nextn,
    nCtxTrain: raw.n_ctx_train,
    nEmbd: raw.n_embd,
    nVocab: raw.n_vocab,
    nParams: raw.n_params,
    modelBytes: raw.model_bytes,
    bos: raw.bos,
    eos: raw.eos,
    hasTokenizer: raw.vocab_type !== 0,
    hasChatTemplate: raw.has_chat_template,
    layerPlan: raw.layer_plan,
    gpu: "why" in gpu ? null : {
      vendor: gpu.info.vendor,
      description: gpu.info.description,
      features: gpu.info.features,
      software: gpu.info.software,
      readback: gpu.readback,
      layers: raw.gpu_layers,
      bytes: raw.gpu_bytes,
      cpuBytes: raw.cpu_bytes,
      cpuTensors: raw.cpu_tensors,
    },
    gpuWhy: "why" in gpu ? gpu.why : "",
  };
}

/** A model in a few words. */
function describe(raw: RawModel): string {
  // llama.cpp's own words are the architecture, a size by the number of layers (wrong for small models) and the format.
  const format = /^\S+ \S+(?: \((?:Scout|Maverick)\))? (.*)$/.exec(raw.desc)?.[1] ?? "";
  return [
    raw.arch,
    `${inUnits(raw.n_params, 1000, ["", " k", " M", " G"])} parameters`,
    format,
    inUnits(raw.model_bytes, 1024, UNITS),
  ].filter((part) => part !== "").join(", ");
}

/** Units of bytes, each 1024 times the one before. */
export const UNITS = [" bytes", " KiB", " MiB", " GiB"];

/** A number with the unit that suits its size. */
export function inUnits(n: number, step: number, units: string[]): string {
  let unit = 0;
  for (; n >= step && unit < units.length - 1; unit++) n /= step;
  return `${unit > 0 && n < 10 ? n.toFixed(1) : n.toFixed(0)}${units[unit]}`;
}
