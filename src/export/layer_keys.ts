// What changes in a model's keys when its layers are written out in a plan's order, so that stock llama.cpp reads the
// same hyper-parameters for every place as the engine's view has; and which plans no file can say. What llama.cpp reads
// and derives is in its src/models/*.cpp (load_arch_hparams) and llama-model.cpp.

import { MetadataReader } from "../gguf/read_header.ts";
import { planRefusal } from "../gguf/plan_support.ts";
import type { GgufHeader } from "../gguf/types.ts";
import type { NewValue } from "../gguf/write_header.ts";

/** How a key is written. */
export type KeyChange =
  | { value: NewValue }
  /** The key's own list, with these of its elements. */
  | { places: readonly number[] };

/** What {@linkcode layerKeys} finds. */
export type LayerKeys =
  | { changes: ReadonlyMap<string, KeyChange>; refusal?: undefined }
  | { refusal: string; changes?: undefined };

/** Keys that may be a list with one value for each layer, after the architecture's name. */
const PER_LAYER = [
  "feed_forward_length",
  "expert_feed_forward_length",
  "expert_used_count",
  "attention.head_count",
  "attention.head_count_kv",
  "attention.sliding_window_pattern",
  "attention.recurrent_layers",
  "attention.rope_pattern",
  "attention.indexer.types",
  "attention.compress_ratios",
  "swiglu_clamp_exp",
  "swiglu_clamp_shexp",
  "deepstack_mapping",
];
/** The same, of keys without an architecture's name. */
const PER_LAYER_GLOBAL = ["xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps"];

/** Keys that count leading layers. */
const LEADING = ["leading_dense_block_count", "hash_layer_count"];

/** Every how many layers one attends to everything, and whether that one comes first; a list in the file wins. */
const WINDOW_PERIODS: ReadonlyMap<string, [period: number, denseFirst?: boolean]> = new Map<
  string,
  [number, boolean?]
>([
  ["afmoe", [4]],
  ["cohere2", [4]],
  ["cohere2moe", [4, true]],
  ["exaone-moe", [4]],
  ["exaone4", [4]],
  ["gemma-embedding", [6]],
  ["gemma2", [2]],
  ["gemma3", [6]],
  ["gemma3n", [5]],
  ["gpt-oss", [2]],
  ["laguna", [4, true]],
  ["llama4", [4]],
  ["mellum", [4]],
  ["modern-bert", [3, true]],
  ["muse-glimmer", [4]],
  ["olmo2", [4]],
  ["plamo3", [8]],
  ["smallthinker", [4, true]],
]);

/** Every how many layers one attends and is not recurrent; a list in the file wins. */
const RECURRENT_PERIODS: ReadonlyMap<string, number> = new Map([
  ["qwen3next", 4],
  ["qwen35", 4],
  ["qwen35moe", 4],
  ["qwen4exp", 4],
]);

/** Every how many layers llama.cpp leaves out the rotation where it derives that from the number of the layer. */
const NO_ROPE_STEP = 4;

/** The model and the plan that a rule looks at. */
class Subject {
  readonly changes = new Map<string, KeyChange>();
  readonly #read: MetadataReader;

  constructor(readonly header: GgufHeader, readonly plan: readonly number[]) {
    this.#read = new MetadataReader(header.file, header.metadata);
  }

  /** Layers in the new file's order, next-token layers last. */
  get sources(): number[] {
    const { nLayer, nextn } = this.header;
    return [...this.plan, ...Array.from({ length: nextn }, (_, i) => nLayer + i)];
  }

  own(key: string): string {
    return `${this.header.architecture}.${key}`;
  }

  has(key: string): boolean {
    return this.header.metadata.has(this.own(key));
  }

  isList(key: string): boolean {
    return this.header.metadata.get(this.own(key))?.type === "array";
  }

  count(key: string): number | undefined {
    return this.isList(key) ? undefined : this.#read.count(this.own(key));
  }

  list(key: string): number[] | undefined {
    return this.#read.integers(this.own(key));
  }

  set(key: string, value: NewValue): void {
    this.changes.set(this.own(key), { value });
  }

  setCount(key: string, value: number): void {
    this.set(key, { type: "uint32", value });
  }

  /** Writes a list with one value for each layer where what llama.cpp derives would be something else. */
  setDerived(key: string, of: (il: number) => boolean, elementType: "bool" | "uint32"): void {
    const { nLayer } = this.header;
    if (this.plan.every((il, place) => of(il) === of(place))) return;
    const value = this.sources.map((il) => il < nLayer && of(il) ? 1 : 0);
    this.set(key, { type: "array", elementType, value });
  }

  /** Words for the first place where what llama.cpp derives from the number is not what the source layer has. */
  differs(of: (il: number, nLayer: number) => boolean, what: string): string | undefined {
    const { nLayer } = this.header;
    const place = this.plan.findIndex((il, e) => of(il, nLayer) !== of(e, this.plan.length));
    if (place < 0) return undefined;
    return `llama.cpp derives ${what} from a layer's number, and layer ${
      this.plan[place]
    } would get the number ${place}`;
  }
}

/** Lists with one value for each layer; a longer list keeps what follows the layers. */
function perLayerLists(subject: Subject): string | undefined {
  const { header, plan } = subject;
  const keys = [...PER_LAYER.map((key) => subject.own(key)), ...PER_LAYER_GLOBAL];
  for (const key of keys) {
    const entry = header.metadata.get(key);
    if (entry?.type !== "array") continue;
    const length = entry.length ?? 0;
    if (length < header.nLayer) {
      return `its list ${key} has ${length} values for ${header.nLayer} layers`;
    }
    const rest = Array.from({ length: length - header.nLayer }, (_, i) => header.nLayer + i);
    subject.changes.set(key, { places: [...plan, ...rest] });
  }
  return undefined;
}

function counts(subject: Subject): void {
  const { header, plan } = subject;
  subject.setCount("block_count", plan.length + header.nextn);
  for (const key of LEADING) {
    const leading = subject.count(key);
    if (leading !== undefined && leading < header.nLayer) {
      subject.setCount(key, plan.filter((il) => il < leading).length);
    } else if (leading !== undefined) {
      subject.setCount(key, leading - header.nLayer + plan.length);
    }
  }
  if (subject.count("decoder_block_count") !== undefined) {
    subject.setCount("decoder_block_count", plan.length);
  }
  const shared = subject.count("attention.shared_kv_layers");
  if (shared !== undefined) {
    const first = header.nLayer + header.nextn - shared;
    subject.setCount(
      "attention.shared_kv_layers",
      subject.sources.filter((il) => il >= first).length,
    );
  }
}

/** Patterns that llama.cpp derives from a period, but reads from a list if there is one. */
function periods(subject: Subject): void {
  const { header } = subject;
  const window = WINDOW_PERIODS.get(header.architecture);
  if (window && !subject.isList("attention.sliding_window_pattern")) {
    const period = subject.count("attention.sliding_window_pattern") ?? window[0];
    const isWindow = (il: number) =>
      period === 0 || (window[1] ? il % period !== 0 : il % period < period - 1);
    subject.setDerived("attention.sliding_window_pattern", isWindow, "bool");
  }
  const interval = RECURRENT_PERIODS.get(header.architecture);
  if (interval && !subject.has("attention.recurrent_layers")) {
    const period = subject.count("full_attention_interval") ?? interval;
    const isRecurrent = (il: number) => (il + 1) % period !== 0;
    subject.setDerived("attention.recurrent_layers", isRecurrent, "bool");
  }
  const selects = header.architecture === "glm-dsa" && header.contextLength >= 1_048_576 &&
    !subject.has("attention.indexer.types");
  if (selects) {
    // GLM-5.2's layers that select keys themselves. This list has no values for next-token layers.
    const own = (il: number) => il < 2 || (il < 78 && (il - 2) % 4 === 0);
    const value = subject.plan.map((il) => own(il) ? 1 : 0);
    subject.set("attention.indexer.types", { type: "array", elementType: "uint32", value });
  }
}

/** The one layer with n-gram embeddings, by its number. */
function ngramLayer(subject: Subject): string | undefined {
  const [layer] = subject.list("ple.layers") ?? [];
  if (layer === undefined) return undefined;
  const places = subject.sources.flatMap((il, place) => il === layer ? [place] : []);
  if (places.length !== 1) {
    return `layer ${layer} has n-gram embeddings, and llama.cpp wants exactly one layer with them, not ${places.length}`;
  }
  subject.set("ple.layers", { type: "array", elementType: "uint32", value: places });
  return undefined;
}

/** A model that llama.cpp knows by its number of layers. */
function knownByLayers(subject: Subject): string | undefined {
  const { header, plan } = subject;
  const of = (n: number): string => `llama.cpp takes a model of ${n} layers for another one`;
  const changes = (is: (n: number) => unknown) => is(header.nLayer) !== is(plan.length);
  switch (header.architecture) {
    case "baichuan":
      return changes((n) => n === 32 ? "7B" : n === 40 ? "13B" : "other")
        ? `${of(plan.length)}: it rotates positions only with 32 layers and uses ALiBi only with 40`
        : undefined;
    case "gemma2":
    case "gemma3": {
      const large = header.architecture === "gemma2" ? 46 : 62;
      const even = Math.floor(header.embeddingLength / (header.nHead[0] || 1));
      const isSame = even === (subject.count("attention.key_length") ?? even);
      return changes((n) => n === large) && !isSame
        ? `${of(plan.length)}: the scale of attention is another with ${large} layers`
        : undefined;
    }
    case "exaone4":
      return changes((n) => n === 64)
        ? `${of(plan.length)}: it has sliding windows only with 64 layers`
        : undefined;
    case "deepseek2":
      return deepseek2(subject);
    case "minicpm":
      if (!subject.has("residual_scale")) {
        const value = Math.fround(Math.fround(1.4) / Math.fround(Math.sqrt(header.nLayer)));
        subject.set("residual_scale", { type: "float32", value });
      }
      return undefined;
  }
  return undefined;
}

function deepseek2(subject: Subject): string | undefined {
  const { header, plan } = subject;
  const vocabulary = subject.count("vocab_size") ??
    header.metadata.get("tokenizer.ggml.tokens")?.length ?? 0;
  const isLite = (n: number) => n === 26 || n === 27 || (n === 48 && vocabulary === 128_256);
  if (isLite(header.nLayer) && !isLite(plan.length)) {
    subject.setCount("attention.q_lora_rank", 0);
  } else if (isLite(plan.length) && (subject.count("attention.q_lora_rank") ?? 0) > 0) {
    return `llama.cpp takes a model of ${plan.length} layers for a lite one, whose queries have no low-rank projection`;
  }
  if ((subject.count("expert_gating_func") ?? 0) === 0) {
    const isSigmoid = (header.nLayer === 47 || header.nLayer === 48) && vocabulary === 154_880;
    subject.setCount("expert_gating_func", isSigmoid ? 2 : 1);
  }
  return undefined;
}

/** What llama.cpp derives from a layer's number and reads from no key. */
function byNumber(subject: Subject): string | undefined {
  const { header } = subject;
  const rotates = "which layers rotate positions";
  const withExperts = "which layers have experts";
  const every = (step: number) => (il: number) => (il + 1) % step === 0;
  switch (header.architecture) {
    case "minimax-01":
      return "llama.cpp derives each layer's decay from its number and the number of layers";
    case "minicpm3":
      return "llama.cpp derives the scale of its residual stream from the number of layers";
    case "gemma3n":
      return subject.differs((il) => il < 10, "which layers are sparse") ??
        subject.differs((il) => il < 20, "which layers share keys and values");
    case "afmoe":
    case "smollm3":
      return subject.differs(every(NO_ROPE_STEP), rotates);
    case "llama4": {
      const step = subject.count("interleave_moe_layer_step") ?? 0;
      const isFull = subject.count("attention.sliding_window") === 0;
      return (step > 0 ? subject.differs(every(step), withExperts) : undefined) ??
        subject.differs(
          (il, n) => (il + 1) % (isFull ? n : NO_ROPE_STEP) === 0,
          rotates,
        );
    }
    case "smallthinker":
      // In a model of that very number of layers every one rotates.
      return (subject.count("attention.sliding_window") ?? 0) > 0
        ? subject.differs((il, n) => n !== NO_ROPE_STEP && il % NO_ROPE_STEP === 0, rotates)
        : undefined;
    case "ernie4_5-moe": {
      const step = subject.count("interleave_moe_layer_step") ?? 1;
      return step > 1 ? subject.differs(every(step), withExperts) : undefined;
    }
    case "nomic-bert-moe": {
      const step = subject.count("moe_every_n_layers") ?? 0;
      return step > 0 ? subject.differs((il) => il % step === 1, withExperts) : undefined;
    }
    case "rwkv6": {
      const step = subject.count("rescale_every_n_layers") ?? 0;
      return step > 0 ? subject.differs(every(step), "where activations are rescaled") : undefined;
    }
  }
  return undefined;
}

/**
 * How a model's keys are written when its layers are written out in a plan's order.
 *
 * @param header The model's header.
 * @param plan Source layers in the order they run, without next-token layers.
 * @returns The keys that change or are added, or why no file can say this plan.
 * @throws {GgufError} If a value that decides is not what it must be.
 */
export function layerKeys(header: GgufHeader, plan: readonly number[]): LayerKeys {
  if (plan.length === header.nLayer && plan.every((il, place) => il === place)) {
    return { changes: new Map() };
  }
  const cannotRun = planRefusal(header, plan);
  if (cannotRun !== undefined) return { refusal: cannotRun };
  const subject = new Subject(header, plan);
  counts(subject);
  periods(subject);
  const why = byNumber(subject) ?? knownByLayers(subject) ?? ngramLayer(subject) ??
    perLayerLists(subject);
  if (why !== undefined) {
    return { refusal: `'${header.architecture}' cannot be written out with this plan: ${why}` };
  }
  return { changes: subject.changes };
}
