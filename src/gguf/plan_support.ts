// Which plans an architecture can run: what `arch_refusal` in cpp/rys-view.cpp decides, from the header alone. A test holds
// the two together: every architecture stands in the same group, and for every fixture the engine's verdict is this one.

import { indexerLayers } from "./_indexer.ts";
import { modelFacts } from "./model_facts.ts";
import { MetadataReader } from "./read_header.ts";
import type { GgufHeader } from "./types.ts";

/** Whether a model can run plans. */
export interface PlanSupport {
  /** It runs every plan, some plans, or none. */
  plans: "any" | "some" | "none";
  /** What the others break, or why there is none; "" for any. One line. */
  why: string;
}

/** Rules by the functions of cpp/rys-view.cpp; architectures that no rule names run any plan. */
type Rule =
  | "dense_lead"
  | "shared_kv"
  | "shared_indexer"
  | "hash_lead"
  | "deepstack_lead"
  | "deepstack_once"
  | "loops"
  | "decoder"
  | "rescale_zone"
  | "first_once"
  | "never";

/** Architectures by rule. */
export const PLAN_RULES: Readonly<Record<Rule, readonly string[]>> = {
  dense_lead: [
    "afmoe",
    "bailingmoe2",
    "bailingmoe3",
    "cohere2moe",
    "deepseek",
    "deepseek2",
    "deepseek2-ocr",
    "mistral4",
    "deepseek32",
    "dots1",
    "dots3note",
    "ernie4_5-moe",
    "glm4moe",
    "kimi-linear",
    "laguna",
    "lfm2",
    "lfm2moe",
    "minimax-m3",
  ],
  shared_kv: ["gemma3n", "gemma4"],
  shared_indexer: ["glm-dsa", "hy_v4"],
  hash_lead: ["deepseek4"],
  deepstack_lead: ["qwen3vl", "qwen3vlmoe", "qwen3tts"],
  deepstack_once: ["granite", "granitemoe", "granite_swa", "minicpm"],
  loops: ["nanbeige"],
  decoder: ["t5"],
  rescale_zone: ["rwkv6"],
  first_once: ["rwkv7", "arwkv7"],
  never: [
    "kimi-k3",
    "hrm_text",
    "eagle3",
    "dflash",
    "gemma4-assistant",
    "clip",
    "gptj",
    "chameleon",
    "wavtokenizer-dec",
  ],
};

/** Architectures that run any plan. */
export const ANY_PLAN: readonly string[] = (
  "llama llama4 deci falcon baichuan grok gpt2 gptneox mpt starcoder refact bert modern-bert nomic-bert nomic-bert-moe " +
  "neo-bert jina-bert-v2 jina-bert-v3 eurobert bloom stablelm qwen qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3next qwen35 " +
  "qwen35moe qwen4exp phi2 phi3 phimoe plamo plamo2 plamo3 codeshell orion internlm2 minicpm3 gemma gemma2 gemma3 " +
  "gemma-embedding starcoder2 mamba mamba2 maple jamba falcon-h1 xverse command-r cohere2 dbrx olmo olmo2 olmoe muse-glimmer " +
  "openelm arctic chatglm glm4 bitnet t5encoder jais jais2 nemotron nemotron_h nemotron_h_moe exaone exaone4 exaone-moe " +
  "rwkv6qwen2 granitehybrid graniteswitch plm bailingmoe arcee ernie4_5 hunyuan-moe hunyuan-dense hunyuan_vl hy_v3 smollm3 " +
  "gpt-oss dream smallthinker llada llada-moe seed_oss grovemoe apertus minimax-m2 cogvlm rnd1 pangu-embedded mistral3 " +
  "paddleocr mimo2 step35 spark2_5 llama-embed maincoder talkie mellum pockettts minimax-01"
).split(" ");

const RULE_OF: ReadonlyMap<string, Rule> = new Map(
  (Object.entries(PLAN_RULES) as [Rule, string[]][])
    .flatMap(([rule, names]) => names.map((name) => [name, rule] as const)),
);
const ANY: ReadonlySet<string> = new Set(ANY_PLAN);

const NEVER: Readonly<Record<string, string>> = {
  "kimi-k3": "its layers mix the outputs of all earlier blocks of layers",
  "hrm_text": "the order of its layers is fixed by its cycles",
  "eagle3": "it is a draft model",
  "dflash": "it is a draft model",
  "gemma4-assistant": "it is a draft model",
};
const NO_GRAPH = "upstream has no text graph of plain layers for it";

/** What a rule looks at. */
interface Subject {
  header: GgufHeader;
  nLayer: number;
  /** A count under the architecture's own key. */
  count(key: string, otherwise?: number): number;
  /** A list of numbers under the architecture's own key. */
  list(key: string): number[] | undefined;
}

function subjectOf(header: GgufHeader): Subject {
  const read = new MetadataReader(header.file, header.metadata);
  const own = (key: string) => `${header.architecture}.${key}`;
  return {
    header,
    nLayer: header.nLayer,
    count: (key, otherwise = 0) => read.count(own(key)) ?? otherwise,
    list: (key) => read.integers(own(key)),
  };
}

/** The condition that a rule puts on this model's plans; undefined if it puts none. */
interface Condition {
  why: string;
  /** Why a plan is refused: place and reason, or undefined. */
  refuses(layers: readonly number[]): { place: number; reason: string } | undefined;
}

type Refusal = ReturnType<Condition["refuses"]>;

/** Layers below `limit` run before all others. */
function lead(layers: readonly number[], limit: number, reason: string): Refusal {
  const first = layers.findIndex((il) => il >= limit);
  if (first < 0) return undefined;
  const place = layers.findIndex((il, p) => p > first && il < limit);
  return place < 0 ? undefined : { place, reason };
}

/** Layers for which `special` holds run once. */
function once(
  layers: readonly number[],
  special: (il: number) => boolean,
  reason: string,
): Refusal {
  const seen = new Set<number>();
  for (const [place, il] of layers.entries()) {
    if (special(il) && seen.has(il)) return { place, reason };
    seen.add(il);
  }
  return undefined;
}

/** `n` leading layers with what they do, in the singular or plural. */
function firstLayers(n: number, one: string, many: string): string {
  return n === 1 ? `its first layer ${one}` : `its first ${n} layers ${many}`;
}

function denseLead({ header, nLayer, count }: Subject): Condition | undefined {
  const leading = header.architecture === "lfm2" ? nLayer : count("leading_dense_block_count");
  if (leading === 0 || leading >= nLayer) return undefined;
  return {
    why: `${firstLayers(leading, "is dense", "are dense")} and must run before those with experts`,
    refuses: (layers) =>
      lead(
        layers,
        leading,
        `one of the first ${leading} layers, which are dense, would run after a layer with experts`,
      ),
  };
}

function sharedKv({ header, nLayer, count }: Subject): Condition | undefined {
  const limit = header.architecture === "gemma3n"
    ? 20
    : nLayer + header.nextn - count("attention.shared_kv_layers");
  if (limit >= nLayer) return undefined;
  const { layers: facts } = modelFacts(header);
  return {
    why: `layers ${limit}..${
      nLayer - 1
    } use keys and values of earlier layers, which must run before them`,
    refuses(layers) {
      const early = lead(
        layers,
        limit,
        "it computes keys and values that layers before it would share",
      );
      if (early) return early;
      for (const [place, il] of layers.entries()) {
        const source = limit - (facts[il]?.isSwa ? 2 : 1);
        if (il >= limit && !layers.includes(source)) {
          const reason = `it shares the keys and values of layer ${source}, which is skipped`;
          return { place, reason };
        }
      }
      return undefined;
    },
  };
}

function sharedIndexer(subject: Subject): Condition | undefined {
  const { header, nLayer, count } = subject;
  const dense = denseLead(subject);
  if (count("attention.indexer.top_k") === 0) return dense;
  const read = new MetadataReader(header.file, header.metadata);
  const selects = indexerLayers(header, read) ?? (() => true);
  if (Array.from({ length: nLayer }, (_, il) => il).every(selects)) return dense;
  const last = (place: number, source: (place: number) => number): number => {
    while (place >= 0 && !selects(source(place))) place--;
    return place < 0 ? -1 : source(place);
  };
  const own =
    "some of its layers select keys with the indexer of an earlier layer, which must be the same";
  return {
    why: dense === undefined ? own : `${dense.why}; ${own}`,
    refuses(layers) {
      const early = dense?.refuses(layers);
      if (early) return early;
      for (const [place, il] of layers.entries()) {
        const now = last(place, (p) => layers[p]!);
        const then = last(il, (p) => p);
        if (!selects(il) && now !== then) {
          const reason =
            `it selects keys with the indexer of layer ${then}, but would get that of layer ${now}`;
          return { place, reason };
        }
      }
      return undefined;
    },
  };
}

function hashLead({ count, nLayer }: Subject): Condition | undefined {
  const leading = count("hash_layer_count");
  if (leading === 0 || leading >= nLayer) return undefined;
  return {
    why: `${
      firstLayers(leading, "chooses", "choose")
    } experts by token and must run before the others`,
    refuses: (layers) =>
      lead(
        layers,
        leading,
        `one of the first ${leading} layers, which choose experts by token, would run after a layer that does not`,
      ),
  };
}

function deepstackLead({ count }: Subject): Condition | undefined {
  const n = count("n_deepstack_layers");
  if (n === 0) return undefined;
  const reason =
    `image features enter after the first ${n} layers, which must run once and in order`;
  return {
    why: reason,
    refuses(layers) {
      const place = layers.findIndex((il, p) => il !== p && Math.min(il, p) < n);
      return place < 0 ? undefined : { place, reason };
    },
  };
}

function deepstackOnce({ header, list }: Subject): Condition | undefined {
  const mapping = header.architecture === "minicpm" ? undefined : list("deepstack_mapping");
  const special = (il: number) => (mapping?.[il] ?? -1) >= 0;
  const fed = (mapping ?? []).flatMap((index, il) => index >= 0 ? [il] : []);
  if (fed.length === 0) return undefined;
  return {
    why: `image features enter before layers ${fed.join(", ")}, which may run once`,
    refuses: (layers) =>
      once(layers, special, "image features enter before it, and would enter twice"),
  };
}

function loops({ count }: Subject): Condition | string | undefined {
  const n = count("num_loops", 1);
  return n > 1 ? `its file already loops its layers (${n} times)` : undefined;
}

function decoder({ count, nLayer }: Subject): string | undefined {
  const n = count("decoder_block_count", nLayer);
  return n === nLayer
    ? undefined
    : `its encoder has ${nLayer} layers and its decoder ${n}, and a plan is run by both`;
}

function rescaleZone({ count, nLayer }: Subject): Condition | undefined {
  const zone = count("rescale_every_n_layers");
  if (zone === 0) return undefined;
  const scale = (il: number) => Math.floor(il / zone);
  return {
    why:
      `its weights are stored for activations that are rescaled every ${zone} layers, so blocks must lie between two such places`,
    refuses(layers) {
      const place = layers.findIndex((il, p) => scale(il + 1) !== scale(layers[p + 1] ?? nLayer));
      const reason =
        `the layer after it is stored for activations of another scale (rescaled every ${zone} layers)`;
      return place < 0 ? undefined : { place, reason };
    },
  };
}

function firstOnce(): Condition {
  const reason = "its values are what all later layers mix in";
  return {
    why: `layer 0 may run once: ${reason}`,
    refuses: (layers) => once(layers, (il) => il === 0, reason),
  };
}

/** The condition on a model's plans; text if it runs none, undefined if it runs any. */
function conditionOf(header: GgufHeader): Condition | string | undefined {
  const { architecture } = header;
  const rule = RULE_OF.get(architecture);
  if (rule === undefined) return ANY.has(architecture) ? undefined : "unknown architecture";
  const subject = subjectOf(header);
  switch (rule) {
    case "dense_lead":
      return denseLead(subject);
    case "shared_kv":
      return sharedKv(subject);
    case "shared_indexer":
      return sharedIndexer(subject);
    case "hash_lead":
      return hashLead(subject);
    case "deepstack_lead":
      return deepstackLead(subject);
    case "deepstack_once":
      return deepstackOnce(subject);
    case "loops":
      return loops(subject);
    case "decoder":
      return decoder(subject);
    case "rescale_zone":
      return rescaleZone(subject);
    case "first_once":
      return firstOnce();
    case "never":
      return NEVER[architecture] ?? NO_GRAPH;
  }
}

/**
 * Whether a model's architecture can run plans, and on what condition, as the engine decides it.
 *
 * @param header The model's header.
 * @throws {GgufError} If a value that decides is not what it must be.
 *
 * @example
 * ```ts
 * import { planSupport, readHeader } from "@rys/edge/gguf";
 * import { assertEquals } from "@std/assert";
 *
 * const header = await readHeader("models/demo.gguf");
 * assertEquals(planSupport(header), { plans: "any", why: "" });
 * ```
 */
export function planSupport(header: GgufHeader): PlanSupport {
  const condition = conditionOf(header);
  if (condition === undefined) return { plans: "any", why: "" };
  if (typeof condition === "string") return { plans: "none", why: condition };
  return { plans: "some", why: condition.why };
}

/**
 * Why the engine would refuse a plan on a model, told from the header.
 *
 * @param header The model's header.
 * @param layers The plan's layers in the order they run.
 * @returns The engine's own words; undefined if it runs the plan.
 * @throws {GgufError} If a value that decides is not what it must be.
 *
 * @example
 * ```ts
 * import { planRefusal, readHeader } from "@rys/edge/gguf";
 * import { assertEquals } from "@std/assert";
 *
 * const header = await readHeader("models/demo.gguf");
 * assertEquals(planRefusal(header, [0, 1, 1, 2]), undefined);
 * ```
 */
export function planRefusal(header: GgufHeader, layers: readonly number[]): string | undefined {
  if (layers.length === header.nLayer && layers.every((il, place) => il === place)) {
    return undefined;
  }
  const condition = conditionOf(header);
  if (condition === undefined) return undefined;
  const refused = typeof condition === "string" ? { reason: condition } : condition.refuses(layers);
  if (refused === undefined) return undefined;
  const at = "place" in refused ? `layer ${layers[refused.place]} at place ${refused.place}: ` : "";
  return `'${header.architecture}' cannot run this plan: ${at}${refused.reason}`;
}
