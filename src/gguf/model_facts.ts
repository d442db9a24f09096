import type { LayerFacts, ModelFacts } from "../plan/cost.ts";
import { GgufError } from "./gguf_error.ts";
import { indexerLayers } from "./_indexer.ts";
import { MetadataReader } from "./read_header.ts";
import type { GgufHeader } from "./types.ts";

// What llama.cpp derives from an architecture's name, and no file says.

const RECURRENT = new Set(["mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"]);

/** Which layers of a hybrid are recurrent: those without key-value heads, a pattern, or by another rule. */
const HYBRID: ReadonlyMap<
  string,
  "no-kv-heads" | "all" | "nemotron" | { readonly interval: number }
> = new Map<
  string,
  "no-kv-heads" | "all" | "nemotron" | { readonly interval: number }
>([
  ["jamba", "no-kv-heads"],
  ["plamo2", "no-kv-heads"],
  ["granitehybrid", "no-kv-heads"],
  ["lfm2", "no-kv-heads"],
  ["lfm2moe", "no-kv-heads"],
  ["kimi-linear", "no-kv-heads"],
  ["kimi-k3", "no-kv-heads"],
  ["bailingmoe3", "no-kv-heads"],
  ["falcon-h1", "all"],
  ["nemotron_h", "nemotron"],
  ["nemotron_h_moe", "nemotron"],
  ["qwen3next", { interval: 4 }],
  ["qwen35", { interval: 4 }],
  ["qwen35moe", { interval: 4 }],
  ["qwen4exp", { interval: 4 }],
  ["minimax-01", { interval: 8 }],
]);

/** Models that look both ways and keep nothing. */
const NO_MEMORY = new Set([
  "bert",
  "jina-bert-v2",
  "jina-bert-v3",
  "nomic-bert",
  "nomic-bert-moe",
  "neo-bert",
  "eurobert",
  "wavtokenizer-dec",
  "modern-bert",
  "gemma-embedding",
  "dream",
  "llada",
  "llada-moe",
  "rnd1",
]);

interface AttentionWindow {
  /** Every how many layers one attends to everything; 0 if the file lists the layers. */
  period: number;
  /** That one comes first, not last. */
  denseFirst?: boolean;
  /** The window if the file has none. */
  default?: number;
  /** The window whatever the file has. */
  fixed?: number;
  /** Without a window in the file there is none, though others have a default. */
  optional?: boolean;
}

/** Models with a cache of its own for layers that attend to a window. */
const WINDOWS: ReadonlyMap<string, AttentionWindow> = new Map<string, AttentionWindow>([
  ["afmoe", { period: 4, optional: true }],
  ["cohere2", { period: 4 }],
  ["cohere2moe", { period: 4, denseFirst: true }],
  ["dots3note", { period: 0 }],
  ["exaone-moe", { period: 4, default: 128 }],
  ["exaone4", { period: 4, default: 4096 }],
  ["gemma2", { period: 2, default: 4096 }],
  ["gemma3", { period: 6, optional: true }],
  ["gemma3n", { period: 5 }],
  ["gemma4", { period: 0 }],
  ["gpt-oss", { period: 2 }],
  ["granite_swa", { period: 0 }],
  ["laguna", { period: 4, denseFirst: true, optional: true }],
  ["llama4", { period: 4, fixed: 8192 }],
  ["maple", { period: 0 }],
  ["mellum", { period: 4, optional: true }],
  ["mimo2", { period: 0 }],
  ["muse-glimmer", { period: 4 }],
  ["olmo2", { period: 4, optional: true }],
  ["plamo3", { period: 8, optional: true }],
  ["smallthinker", { period: 4, denseFirst: true, fixed: 4096, optional: true }],
  ["spark2_5", { period: 0 }],
  ["step35", { period: 0 }],
]);

/** Models whose memory is of a kind that is not computed here, or not in full. */
const INEXACT: ReadonlyMap<string, string> = new Map([
  ["qwen4exp", "the indexer's cache is not counted"],
  ["deepseek4", "its compressed caches are not counted"],
  ["dflash", "its ring of drafts is not counted"],
  ["gemma4-assistant", "it shares another model's cache"],
]);

const RS_ROLLBACK = new Set([
  "kimi-k3",
  "qwen35",
  "qwen35moe",
  "qwen4exp",
  "deepseek4",
  "nemotron_h",
  "nemotron_h_moe",
  "lfm2",
  "lfm2moe",
  "bailingmoe3",
]);

/**
 * Gathers what decides the size of a model's memory, layer by layer, the way llama.cpp derives it.
 *
 * @param header The model's header; of a model in several files, the one with the tensors of all.
 * @returns The facts, for `estimateCost` of `@rys/edge/plan`.
 * @throws {GgufError} If the file has no layers, or lacks a key that llama.cpp requires.
 *
 * @example
 * ```ts
 * import { GgufError, modelFacts, readHeader } from "@rys/edge/gguf";
 * import { assertThrows } from "@std/assert";
 *
 * // Magic, version 3, no tensors, no keys.
 * const empty = new Uint8Array(24);
 * empty.set([0x47, 0x47, 0x55, 0x46, 3]);
 * const header = await readHeader(empty, { name: "empty.gguf" });
 * assertThrows(() => modelFacts(header), GgufError, "it has no layers");
 * ```
 */
export function modelFacts(header: GgufHeader): ModelFacts {
  const { architecture, nLayer, nextn } = header;
  if (nLayer < 1) {
    throw new GgufError("it has no layers: no language model, or a part of one", {
      file: header.file,
      field: `key "${architecture}.block_count"`,
      expected: "at least 1",
    });
  }
  const read = new MetadataReader(header.file, header.metadata);
  const count = (key: string, otherwise: number): number =>
    read.count(`${architecture}.${key}`) ?? otherwise;
  const all = nLayer + nextn;

  const window = slidingWindow(header, read);
  const recurrent = recurrentLayers(header, read);
  const headSize = headSizes(header, read);
  const isRouted = architecture === "graniteswitch";
  const memory = memoryKind(architecture);
  const kvFromStart = firstLayersWithKv(header, read);
  const isMla = count("attention.key_length_mla", 0) > 0 &&
    count("attention.value_length_mla", 0) > 0;

  const indexer = indexerLayers(header, read);
  const indexerWidth = indexer === undefined ? 0 : count("attention.indexer.key_length", 0);

  const layers: LayerFacts[] = [];
  const weights = layerWeights(header, read);
  for (let il = 0; il < all; il++) {
    const nHeadKv = header.nHeadKv[il]!;
    const isSwa = window.isSwa[il] ?? false;
    const isRecr = recurrent[il] ?? false;
    const isTrunk = il < nLayer;
    layers.push({
      nEmbdKGqa: nHeadKv * (isSwa ? headSize.kSwa : headSize.k),
      nEmbdVGqa: nHeadKv * (isSwa ? headSize.vSwa : headSize.v),
      nEmbdHeadK: isSwa ? headSize.kSwa : headSize.k,
      nEmbdHeadV: isSwa ? headSize.vSwa : headSize.v,
      hasKv: il < kvFromStart && attends(memory, header, read, il, isRecr),
      isRecr: isTrunk && isRecr && memory !== "none",
      isSwa,
      ...isTrunk && indexer?.(il) === true
        ? { nEmbdIndexerK: indexerWidth, nEmbdIndexerV: isMla ? 0 : headSize.v }
        : {},
      ...weights[il],
    });
  }
  if (isRouted) {
    // One more layer of one head, which llama.cpp appends for the adapters' router.
    layers.push({
      nEmbdKGqa: headSize.k,
      nEmbdVGqa: headSize.v,
      hasKv: true,
      isRecr: false,
      isSwa: false,
    });
  }

  const inexact = [INEXACT.get(architecture) ?? []].flat();
  const loops = count("num_loops", 1);
  if (loops > 1) inexact.push(`the model loops ${loops} times over its layers`);
  return {
    architecture,
    nLayer,
    nextn: isRouted ? 1 : nextn,
    nCtxTrain: header.contextLength,
    layers,
    hasSwaCache: window.nSwa !== undefined,
    nSwa: window.nSwa ?? 0,
    ...stateSizes(header, read, headSize.k),
    isMla,
    isCausal: read.metadata.get(`${architecture}.attention.causal`)?.value !== false,
    hasRsRollback: RS_ROLLBACK.has(architecture),
    inexact: inexact.map((why) => `${architecture}: ${why}`),
  };
}

type Memory = "none" | "recurrent" | "hybrid" | "attention";

function memoryKind(architecture: string): Memory {
  if (NO_MEMORY.has(architecture)) return "none";
  if (RECURRENT.has(architecture)) return "recurrent";
  return HYBRID.has(architecture) ? "hybrid" : "attention";
}

/** Whether llama.cpp makes a place for layer `il` in the attention cache. */
function attends(
  memory: Memory,
  header: GgufHeader,
  read: MetadataReader,
  il: number,
  isRecr: boolean,
): boolean {
  const isTrunk = il < header.nLayer;
  if (memory === "none" || memory === "recurrent") return false;
  if (memory === "attention") return isTrunk;
  const rule = HYBRID.get(header.architecture)!;
  if (rule === "all") return true;
  if (rule === "nemotron") return !isRecr && feedForward(header, read)[il] === 0;
  if (rule === "no-kv-heads") return !isRecr;
  return isTrunk && !isRecr;
}

function feedForward(header: GgufHeader, read: MetadataReader): number[] {
  const all = header.nLayer + header.nextn;
  return read.perLayer(`${header.architecture}.feed_forward_length`, all) ??
    Array<number>(all).fill(0);
}

function recurrentLayers(header: GgufHeader, read: MetadataReader): boolean[] {
  const { architecture, nLayer, nextn } = header;
  const own = (key: string) => `${architecture}.${key}`;
  const trunk = <T>(one: (il: number) => T) => Array.from({ length: nLayer }, (_, il) => one(il));
  if (RECURRENT.has(architecture)) return trunk(() => true);
  const rule = HYBRID.get(architecture);
  if (rule === undefined) return [];
  if (rule === "all") return trunk(() => true);
  if (rule === "no-kv-heads") return trunk((il) => header.nHeadKv[il] === 0);
  if (rule === "nemotron") {
    const ff = feedForward(header, read);
    return trunk((il) => header.nHeadKv[il] === 0 && ff[il] === 0);
  }
  const listed = read.perLayer(own("attention.recurrent_layers"), nLayer + nextn);
  if (listed) return trunk((il) => listed[il] !== 0);
  const interval = Math.max(1, read.count(own("full_attention_interval")) ?? rule.interval);
  return trunk((il) => (il + 1) % interval !== 0);
}

function slidingWindow(
  header: GgufHeader,
  read: MetadataReader,
): { nSwa: number | undefined; isSwa: boolean[] } {
  const { architecture, nLayer } = header;
  const none = { nSwa: undefined, isSwa: [] };
  const said = read.count(`${architecture}.attention.sliding_window`);
  if (architecture === "lfm2") {
    // Its attention layers are all alike.
    if (!said) return none;
    return {
      nSwa: said,
      isSwa: Array.from({ length: nLayer }, (_, il) => header.nHeadKv[il] !== 0),
    };
  }
  const window = WINDOWS.get(architecture);
  if (!window) return none;
  if (architecture === "exaone4" && nLayer !== 64) return none;
  if (architecture === "llama4" && said === 0) return none;
  if (window.optional && !said) return none;
  const nSwa = window.fixed ?? said ?? window.default;
  const missing = (key: string): never => {
    throw new GgufError("the key is missing", {
      file: header.file,
      field: `key "${architecture}.${key}"`,
    });
  };
  if (nSwa === undefined) return missing("attention.sliding_window");
  const key = "attention.sliding_window_pattern";
  const listed = read.list(`${architecture}.${key}`);
  if (listed) return { nSwa, isSwa: listed.map((value) => value !== 0) };
  if (window.period === 0) return missing(key);
  const period = read.count(`${architecture}.${key}`) ?? window.period;
  const isSwa = Array.from({ length: nLayer }, (_, il) => {
    if (period === 0) return true;
    return window.denseFirst ? il % period !== 0 : il % period < period - 1;
  });
  return { nSwa, isSwa };
}

function headSizes(
  header: GgufHeader,
  read: MetadataReader,
): { k: number; v: number; kSwa: number; vSwa: number } {
  const own = (key: string) => `${header.architecture}.attention.${key}`;
  const heads = header.nHead[0] ?? 0;
  if (heads === 0) {
    return {
      k: 0,
      v: 0,
      kSwa: read.count(own("key_length_swa")) ?? 0,
      vSwa: read.count(own("value_length_swa")) ?? 0,
    };
  }
  const even = Math.floor(header.embeddingLength / heads);
  const k = read.count(own("key_length")) ?? even;
  const v = read.count(own("value_length")) ?? even;
  return {
    k,
    v,
    kSwa: read.count(own("key_length_swa")) ?? k,
    vSwa: read.count(own("value_length_swa")) ?? v,
  };
}

/** How many layers from the first own keys and values; the others reuse those of earlier ones. */
function firstLayersWithKv(header: GgufHeader, read: MetadataReader): number {
  if (header.architecture === "gemma3n") return 20;
  if (header.architecture !== "gemma4") return Infinity;
  return header.nLayer + header.nextn - (read.count("gemma4.attention.shared_kv_layers") ?? 0);
}

function stateSizes(
  header: GgufHeader,
  read: MetadataReader,
  headSize: number,
): { nEmbdR: number; nEmbdS: number } {
  const { architecture, embeddingLength: nEmbd } = header;
  const count = (key: string, otherwise = 0): number =>
    read.count(`${architecture}.${key}`) ?? otherwise;
  const heads = header.nHead[0] ?? 0;
  if (!RECURRENT.has(architecture) && !HYBRID.has(architecture)) return { nEmbdR: 0, nEmbdS: 0 };
  if (architecture.includes("rwkv")) {
    return {
      nEmbdR: count("token_shift_count", 2) * nEmbd,
      nEmbdS: nEmbd * count("wkv.head_size"),
    };
  }
  if (architecture === "lfm2" || architecture === "lfm2moe") {
    return { nEmbdR: nEmbd * Math.max(0, count("shortconv.l_cache") - 1), nEmbdS: 0 };
  }
  const kernel = count("ssm.conv_kernel");
  if (
    architecture === "kimi-linear" || architecture === "kimi-k3" || architecture === "bailingmoe3"
  ) {
    const size = count("kda.head_dim");
    return {
      nEmbdR: 3 * (kernel > 0 ? kernel - 1 : 3) * heads * size,
      nEmbdS: size * size * heads,
    };
  }
  if (architecture === "minimax-01") return { nEmbdR: 0, nEmbdS: headSize * headSize * heads };
  const inner = count("ssm.inner_size");
  const state = count("ssm.state_size");
  // These two have one group, and llama.cpp does not read how many.
  const groups = architecture === "mamba" || architecture === "jamba"
    ? 0
    : count("ssm.group_count");
  return { nEmbdR: Math.max(0, kernel - 1) * (inner + 2 * groups * state), nEmbdS: state * inner };
}

/** Bytes of each layer's weights, and of those that one token meets. */
function layerWeights(
  header: GgufHeader,
  read: MetadataReader,
): { weightBytes: number; activeBytes: number }[] {
  const all = header.nLayer + header.nextn;
  const experts = read.count(`${header.architecture}.expert_count`) ?? 0;
  const used = read.perLayer(`${header.architecture}.expert_used_count`, all) ??
    Array<number>(all).fill(0);
  const weights = Array.from({ length: all }, () => ({ weightBytes: 0, activeBytes: 0 }));
  for (const { name, bytes } of header.tensors) {
    const match = /^(?:blk|enc\.blk|dec\.blk)\.(\d+)\.(.*)$/.exec(name);
    const layer = match ? weights[Number(match[1])] : undefined;
    if (!match || !layer) continue;
    layer.weightBytes += bytes;
    const isExpert = experts > 0 && /_exps(?:\.|$)/.test(match[2]!);
    layer.activeBytes += isExpert
      ? Math.ceil(bytes * Math.min(1, used[Number(match[1])]! / experts))
      : bytes;
  }
  return weights;
}
