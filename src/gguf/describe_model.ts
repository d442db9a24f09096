import { fileTypeName } from "./file_type.ts";
import { GgufError } from "./gguf_error.ts";
import { modelFacts } from "./model_facts.ts";
import { type PlanSupport, planSupport } from "./plan_support.ts";
import type { GgufHeader } from "./types.ts";

/** What a layer mixes its tokens with. */
export type LayerKind = "attention" | "window" | "recurrent" | "attention+recurrent" | "none";

/** One layer of a model. */
export interface LayerDescription {
  /** Attention to all tokens or to a window of them, a recurrent state, both, or neither. */
  kind: LayerKind;
  /** Its feed-forward part chooses between experts. */
  hasExperts: boolean;
  /** It predicts further tokens (MTP), and comes after the layers that plans are made of. */
  isNextn: boolean;
  /** It attends with keys and values of its own, and so has a part of the KV cache. */
  hasKv: boolean;
  /** Bytes of its weights. */
  bytes: number;
}

/** The tensors of one number format. */
export interface TypeShare {
  /** Name of the format, e.g. `"q4_K"`. */
  type: string;
  /** Number of tensors. */
  tensors: number;
  /** Numbers in them. */
  values: number;
  /** Bytes of them. */
  bytes: number;
}

/** What a chat template's text refers to. */
export interface ChatTemplateDescription {
  /** Length in characters. */
  length: number;
  /** Names of further templates of the file. */
  others: string[];
  /** It has a place for tools, */
  tools: boolean;
  /** for the calls that an answer made, */
  toolCalls: boolean;
  /** for a system message, */
  system: boolean;
  /** for what a model thought, or a switch for thinking, */
  thinking: boolean;
  /** for images or sound. */
  media: boolean;
}

/** What a model's header says, for people. */
export interface ModelDescription {
  /** Architecture; "" if the file does not say. */
  architecture: string;
  /** The model's name, or "". */
  name: string;
  /** What its maker calls its size, e.g. `"27B"`, or "". */
  sizeLabel: string;
  /** Bytes of all files. */
  fileBytes: number;
  /** Files. */
  nFiles: number;
  /** Bytes of all tensors. */
  weightBytes: number;
  /** Numbers in all tensors. */
  nParams: number;
  /** Bits of weights for each of them. */
  bitsPerWeight: number;
  /** The kind of quantisation by llama.cpp's name, e.g. `"Q4_K_M"`, or "". */
  fileType: string;
  /** The tensors by number format, the one with most bytes first. */
  types: TypeShare[];
  /** Layers, without next-token layers. */
  nLayer: number;
  /** Next-token (MTP) layers. */
  nextn: number;
  /** Every layer, next-token layers last. */
  layers: LayerDescription[];
  /** Tokens that windows hold; 0 if there are none. */
  nSwa: number;
  /** Experts of a layer, and those chosen for a token; 0 if there are none. */
  nExpert: number;
  /** Experts chosen for a token. */
  nExpertUsed: number;
  /** Tokens of context the model was trained on; 0 if the file does not say. */
  contextLength: number;
  /** Width of an embedding. */
  embeddingLength: number;
  /** Tokens of the vocabulary; 0 if the file has none. */
  nVocab: number;
  /** Kind of tokenizer, or "". */
  tokenizer: string;
  /** The chat template; null if there is none. */
  chatTemplate: ChatTemplateDescription | null;
  /** The plan that the file carries, or "". */
  layerPlan: string;
  /** Which plans the engine runs on it. */
  plans: PlanSupport;
  /** Why something could not be told, a line each. */
  notes: string[];
}

/**
 * Describes a model from its header: what it is made of, layer by layer, and which plans it can run.
 *
 * @param header The model's header; of a model in several files, the one with the tensors of all.
 * @param nFiles Files of the model. Default: what the header says.
 * @returns The description. What a header does not tell is left empty, with a note if that is unusual.
 *
 * @example
 * ```ts
 * import { describeModel, readHeader } from "@rys/edge/gguf";
 * import { assertEquals } from "@std/assert";
 *
 * const { nLayer, layers, plans } = describeModel(await readHeader("models/demo.gguf"));
 * assertEquals([nLayer, layers[0]!.kind, plans.plans], [40, "attention", "any"]);
 * ```
 */
export function describeModel(
  header: GgufHeader,
  nFiles: number = header.splitCount,
): ModelDescription {
  const { architecture, metadata, nLayer, nextn } = header;
  const notes: string[] = [];
  const text = (key: string): string => {
    const value = metadata.get(key)?.value;
    return typeof value === "string" ? value : "";
  };
  const count = (key: string): number => {
    const value = metadata.get(`${architecture}.${key}`)?.value;
    const list = (Array.isArray(value) ? value : [value ?? 0]).map(Number);
    const most = Math.max(0, ...list);
    return Number.isFinite(most) ? most : 0;
  };
  const tell = <T>(what: () => T, otherwise: T): T => {
    try {
      return what();
    } catch (error) {
      if (!(error instanceof GgufError)) throw error;
      notes.push(error.message);
      return otherwise;
    }
  };
  const nParams = header.tensors.reduce((sum, { shape }) => sum + values(shape), 0);
  const facts = nLayer === 0 ? undefined : tell(() => modelFacts(header), undefined);
  return {
    architecture,
    name: header.name ?? "",
    sizeLabel: text("general.size_label"),
    fileBytes: header.size,
    nFiles,
    weightBytes: header.weightBytes,
    nParams,
    bitsPerWeight: nParams === 0 ? 0 : 8 * header.weightBytes / nParams,
    fileType: header.fileType === undefined ? "" : fileTypeName(header.fileType),
    types: typeShares(header),
    nLayer,
    nextn,
    layers: facts === undefined ? [] : layersOf(header, facts),
    nSwa: facts?.nSwa ?? 0,
    nExpert: count("expert_count"),
    nExpertUsed: count("expert_used_count"),
    contextLength: header.contextLength,
    embeddingLength: header.embeddingLength,
    nVocab: metadata.get("tokenizer.ggml.tokens")?.length ?? count("vocab_size"),
    tokenizer: header.tokenizerModel ?? "",
    chatTemplate: chatTemplate(header),
    layerPlan: header.layerPlan ?? "",
    plans: nLayer === 0
      ? { plans: "none", why: "it has no layers: a vocabulary only, or no language model" }
      : tell(() => planSupport(header), { plans: "none", why: "its header is not sound" }),
    notes,
  };
}

const values = (shape: readonly number[]): number => shape.reduce((product, n) => product * n, 1);

function typeShares({ tensors }: GgufHeader): TypeShare[] {
  const shares = new Map<string, TypeShare>();
  for (const { type: { name: type }, shape, bytes } of tensors) {
    const share = shares.get(type) ?? { type, tensors: 0, values: 0, bytes: 0 };
    share.tensors++;
    share.values += values(shape);
    share.bytes += bytes;
    shares.set(type, share);
  }
  return [...shares.values()].sort((a, b) => b.bytes - a.bytes);
}

function layersOf(header: GgufHeader, facts: ReturnType<typeof modelFacts>): LayerDescription[] {
  const withExperts = new Set<number>();
  const withAttention = new Set<number>();
  for (const { name } of header.tensors) {
    const match = /^(?:blk|enc\.blk|dec\.blk)\.(\d+)\.(.*)$/.exec(name);
    if (!match) continue;
    const il = Number(match[1]);
    if (/_exps(?:\.|$)/.test(match[2]!)) withExperts.add(il);
    if (/^(?:cross_)?attn_(?:q|k|v|qkv|output)\w*\./.test(match[2]!)) withAttention.add(il);
  }
  const { nLayer, nextn } = header;
  return facts.layers.slice(0, nLayer + nextn).map((layer, il) => {
    // A layer may attend without keys of its own, and recurrent ones have tensors of the same names.
    const attends = layer.hasKv || (!layer.isRecr && withAttention.has(il));
    const kind: LayerKind = layer.isRecr
      ? attends ? "attention+recurrent" : "recurrent"
      : !attends
      ? "none"
      : layer.isSwa
      ? "window"
      : "attention";
    return {
      kind,
      hasExperts: withExperts.has(il),
      isNextn: il >= nLayer,
      hasKv: layer.hasKv,
      bytes: layer.weightBytes ?? 0,
    };
  });
}

function chatTemplate({ metadata }: GgufHeader): ChatTemplateDescription | null {
  const key = "tokenizer.chat_template";
  const text = metadata.get(key)?.value;
  if (typeof text !== "string" || text === "") return null;
  const has = (pattern: RegExp) => pattern.test(text);
  return {
    length: text.length,
    others: [...metadata.keys()].filter((name) => name.startsWith(`${key}.`))
      .map((name) => name.slice(key.length + 1)),
    tools: has(/\btools\b/),
    toolCalls: has(/\btool_calls\b/),
    system: has(/\bsystem\b/i),
    thinking: has(/\benable_thinking\b|\breasoning_content\b|\bthinking\b|<think>/),
    media: has(/\bimage(?:_url)?\b|\bvideo\b|\baudio\b/),
  };
}
