// The recording device in an engine's Worker, and what it says from there.

import type { LoadModelOptions } from "@rys/edge";
import { type RecordingOptions, type RecordingReport, REPORTS } from "./recording_device.ts";
import { plainKey, tensorBytes, type TestTensor, writeGgufFile } from "../../src/gguf/_testing.ts";
import { tokenizerKeys, writeRandomModel } from "../../bench/_random_model.ts";

/** A recording device for one engine. */
export interface Recording {
  /** Makes `loadModel` use it. */
  load: Pick<LoadModelOptions, "gpu" | "gpuBridge">;
  /** What was done with it. */
  report(): Promise<RecordingReport>;
}

// Never closed: under Deno 2.9 a channel that is opened after another was closed can refuse to post.
let reports: BroadcastChannel | undefined;
let nextId = 1;

/**
 * A recording device.
 *
 * @param options What it is like, limits included.
 * @param bridge How it is driven.
 */
export function recording(
  options: RecordingOptions & Record<string, string | number> = {},
  bridge: LoadModelOptions["gpuBridge"] = {},
): Recording {
  const channel = reports ??= new BroadcastChannel(REPORTS);
  const id = `${Deno.pid}.${nextId++}`;
  const url = new URL("./recording_device.ts", import.meta.url);
  for (const [key, value] of Object.entries({ ...options, id })) {
    url.searchParams.set(key, String(value));
  }
  return {
    load: { gpu: "required", gpuBridge: { ...bridge, provider: url.href } },
    report: () =>
      new Promise((resolve) => {
        const listen = ({ data }: MessageEvent<{ id: string; report: RecordingReport }>) => {
          if (data.id !== id) return;
          channel.removeEventListener("message", listen);
          resolve(data.report);
        };
        channel.addEventListener("message", listen);
        channel.postMessage(id);
      }),
  };
}

/** A test on engines of its own; they start threads as they need them: no sanitizers. */
export function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeOps: false, sanitizeResources: false });
}

/** Hands out a folder and takes it away. */
export async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Writes a random model of so many layers, width 256. */
export function writeLayers(path: string, nLayer: number): void {
  writeRandomModel(path, "Q4_0", {
    nLayer,
    nEmbd: 256,
    nFf: 512,
    nHead: 4,
    nHeadKv: 2,
    head: 64,
    nVocab: 512,
  });
}

/** Sizes of a model with nothing in it. */
export interface EmptyShape {
  nLayer: number;
  nEmbd: number;
  nFf: number;
  nHeadKv: number;
  nCtx: number;
}

/** A tensor of {@linkcode writeEmptyModel}. */
export interface EmptyTensor {
  name: string;
  bytes: number;
  /** The word of 8 bytes at its beginning. */
  first: bigint;
  /** The word of 8 bytes at its end. */
  last: bigint;
}

/**
 * Writes a model of the architecture llama that is all zeros but for a word at the beginning and one at the end of each
 * tensor. It takes next to no room on the disk, whatever its size.
 *
 * @returns Its tensors, in the order of the file.
 */
export function writeEmptyModel(path: string, shape: EmptyShape): EmptyTensor[] {
  const { nLayer, nEmbd, nFf, nHeadKv, nCtx } = shape;
  const head = 128;
  const nVocab = 512;
  const keys = [
    ...Object.entries({
      "general.architecture": "llama",
      "general.name": "empty",
      "llama.block_count": nLayer,
      "llama.context_length": nCtx,
      "llama.embedding_length": nEmbd,
      "llama.feed_forward_length": nFf,
      "llama.attention.head_count": nEmbd / head,
      "llama.attention.head_count_kv": nHeadKv,
      "llama.rope.dimension_count": head,
    }).map(([key, value]) => plainKey(key, value)),
    { key: "llama.attention.layer_norm_rms_epsilon", type: "float32", value: 1e-5 } as const,
    ...tokenizerKeys(nVocab),
  ];
  const written: TestTensor[] = [];
  const tensors: EmptyTensor[] = [];
  const tensor = (name: string, dims: number[], type: "F16" | "F32") => {
    const i = BigInt(tensors.length + 1);
    const [first, last] = [i << 8n | 1n, i << 8n | 2n];
    const shaped = { name: `${name}.weight`, shape: dims, type: type === "F16" ? 1 : 0 };
    const bytes = tensorBytes(shaped);
    const word = (value: bigint) => new Uint8Array(BigUint64Array.of(value).buffer);
    written.push({ ...shaped, data: [[0, word(first)], [bytes - 8, word(last)]] });
    tensors.push({ name: shaped.name, bytes, first, last });
  };
  tensor("token_embd", [nEmbd, nVocab], "F16");
  for (let i = 0; i < nLayer; i++) {
    const blk = `blk.${i}`;
    tensor(`${blk}.attn_norm`, [nEmbd], "F32");
    tensor(`${blk}.attn_q`, [nEmbd, nEmbd], "F16");
    tensor(`${blk}.attn_k`, [nEmbd, nHeadKv * head], "F16");
    tensor(`${blk}.attn_v`, [nEmbd, nHeadKv * head], "F16");
    tensor(`${blk}.attn_output`, [nEmbd, nEmbd], "F16");
    tensor(`${blk}.ffn_norm`, [nEmbd], "F32");
    tensor(`${blk}.ffn_gate`, [nEmbd, nFf], "F16");
    tensor(`${blk}.ffn_up`, [nEmbd, nFf], "F16");
    tensor(`${blk}.ffn_down`, [nFf, nEmbd], "F16");
  }
  tensor("output_norm", [nEmbd], "F32");
  tensor("output", [nEmbd, nVocab], "F16");
  writeGgufFile(path, { keys, tensors: written });
  return tensors;
}
