import { assertEquals, assertThrows } from "@std/assert";
import { type CacheType, type CostOptions, estimateCost } from "../plan/cost.ts";
import { expandPlan } from "../plan/expand_plan.ts";
import { GgufError } from "./gguf_error.ts";
import { modelFacts } from "./model_facts.ts";
import { readHeader } from "./read_header.ts";
import { llamaFile, plainKey, type TestTensor, writeGguf } from "./_testing.ts";
import memory from "./testdata/memory.json" with { type: "json" };

async function factsOf(
  architecture: string,
  keys: Record<string, unknown>,
  tensors: TestTensor[] = [],
) {
  const file = {
    keys: [
      plainKey("general.architecture", architecture),
      ...Object.entries(keys).map(([key, value]) => plainKey(`${architecture}.${key}`, value)),
    ],
    tensors,
  };
  return modelFacts(await readHeader(writeGguf(file), { name: `${architecture}.gguf` }));
}

// What llama.cpp v0.5.0 allocated for small random models, by its own count of tensor bytes: context, K, V, states.
for (const { architecture, keys, contexts } of memory) {
  Deno.test(`estimateCost() equals llama.cpp's allocation for ${architecture}`, async () => {
    const facts = await factsOf(architecture, keys);
    assertEquals(facts.inexact, []);
    for (const { expect, typeK, typeV, nSeqMax, flashAttn, ...rest } of contexts) {
      const options: CostOptions = {
        ...rest,
        nParallel: nSeqMax,
        flashAttention: flashAttn === false ? "off" : "on",
        cacheTypeK: typeK as CacheType,
        cacheTypeV: typeV as CacheType,
      };
      const { nCtx, base, plan } = estimateCost(facts, undefined, options);
      assertEquals(
        [nCtx, base.kBytes, base.vBytes, base.recurrentBytes],
        expect,
        JSON.stringify(options),
      );
      assertEquals(plan, base);
    }
  });
}

/** Qwen3.5-27B: 64 layers, every fourth with attention. */
const QWEN35 = {
  "block_count": 65,
  "nextn_predict_layers": 1,
  "context_length": 262144,
  "embedding_length": 5120,
  "attention.head_count": 24,
  "attention.head_count_kv": 4,
  "attention.key_length": 256,
  "attention.value_length": 256,
  "ssm.conv_kernel": 4,
  "ssm.inner_size": 6144,
  "ssm.state_size": 128,
  "ssm.group_count": 16,
};

const ADDED: [spec: string, kvLayers: number, states: number][] = [
  ["33,34", 0, 1],
  ["31,34", 1, 2],
  ["30,35", 1, 4],
  ["29,34", 1, 4],
  ["26,34", 2, 6],
  ["24,35", 2, 9],
];

for (const [spec, kvLayers, states] of ADDED) {
  Deno.test(`estimateCost() adds ${kvLayers} KV layers and ${states} states for ${spec} on Qwen3.5-27B`, async () => {
    const facts = await factsOf("qwen35", QWEN35);
    const { base, plan } = estimateCost(facts, expandPlan(spec, 64, { nextn: 1 }), { nCtx: 4096 });
    assertEquals([base.nKvLayers, base.nRecurrentLayers], [16, 48]);
    assertEquals([plan.nKvLayers - 16, plan.nRecurrentLayers - 48], [kvLayers, states]);
    assertEquals(plan.kvBytes * 16, base.kvBytes * (16 + kvLayers));
    assertEquals(plan.recurrentBytes * 48, base.recurrentBytes * (48 + states));
    assertEquals(base.kvBytes, 16 * 4096 * 2 * 1024 * 2);
    assertEquals(base.recurrentBytes, 48 * (3 * (6144 + 2 * 16 * 128) + 128 * 6144) * 4);
  });
}

Deno.test("estimateCost() counts a repeated window layer at the window's size", async () => {
  const facts = await factsOf("gemma3", {
    "block_count": 12,
    "context_length": 32768,
    "embedding_length": 1152,
    "attention.head_count": 4,
    "attention.head_count_kv": 1,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "attention.sliding_window": 512,
  });
  assertEquals(facts.layers.map((layer) => layer.isSwa ? 1 : 0).join(""), "111110111110");
  const cost = (spec: string) => estimateCost(facts, expandPlan(spec, 12), { nCtx: 8192 });
  const { nCtxSeq, nCtxSwa, base } = cost("none");
  assertEquals([nCtxSeq, nCtxSwa], [8192, 1024]);
  assertEquals(cost("4,5").plan.kvBytes - base.kvBytes, 2 * 1024 * 256 * 2);
  assertEquals(cost("5,6").plan.kvBytes - base.kvBytes, 2 * 8192 * 256 * 2);
});

Deno.test("modelFacts() weighs each layer, and of experts those that are chosen", async () => {
  const facts = await factsOf(
    "qwen3moe",
    {
      "block_count": 2,
      "embedding_length": 32,
      "attention.head_count": 1,
      "expert_count": 8,
      "expert_used_count": 2,
    },
    [
      { name: "token_embd.weight", shape: [32, 8] },
      { name: "blk.0.attn_q.weight", shape: [32, 2] },
      { name: "blk.1.attn_q.weight", shape: [32, 2] },
      { name: "blk.1.ffn_up_exps.weight", shape: [32, 4, 8] },
      { name: "blk.7.ffn_up.weight", shape: [32] },
    ],
  );
  assertEquals(facts.layers.map((l) => [l.weightBytes, l.activeBytes]), [[256, 256], [
    256 + 4096,
    256 + 1024,
  ]]);
  assertEquals(
    estimateCost(facts, expandPlan("0,1", 2), { nCtx: 256 }).computeRatio,
    (256 + 256 + 1280) / (256 + 1280),
  );
});

Deno.test("modelFacts() refuses a file without layers", async () => {
  const header = await readHeader(
    writeGguf({ keys: [plainKey("general.architecture", "llama")] }),
    { name: "v.gguf" },
  );
  assertThrows(
    () => modelFacts(header),
    GgufError,
    'v.gguf: it has no layers: no language model, or a part of one (key "llama.block_count"; expected at least 1)',
  );
});

Deno.test("modelFacts() refuses a file without a key that decides", async () => {
  const header = await readHeader(
    writeGguf({
      keys: [plainKey("general.architecture", "gpt-oss"), plainKey("gpt-oss.block_count", 2)],
    }),
  );
  assertThrows(() => modelFacts(header), GgufError, 'key "gpt-oss.attention.sliding_window"');
});

Deno.test("modelFacts() says which memory it cannot compute", async () => {
  const facts = await factsOf("qwen4exp", {
    "block_count": 2,
    "embedding_length": 32,
    "attention.head_count": 1,
  });
  assertEquals(facts.inexact, ["qwen4exp: the indexer's cache is not counted"]);
});

Deno.test("modelFacts() counts the cache of each layer's indexer, at the size of the whole context", async () => {
  const facts = await factsOf("glm-dsa", {
    "block_count": 4,
    "embedding_length": 64,
    "attention.head_count": 2,
    "attention.head_count_kv": 1,
    "attention.key_length": 96,
    "attention.value_length": 64,
    "attention.key_length_mla": 32,
    "attention.value_length_mla": 32,
    "attention.indexer.top_k": 8,
    "attention.indexer.key_length": 32,
    "attention.indexer.types": [1, 0, 1, 0],
  });
  assertEquals(facts.inexact, []);
  assertEquals(facts.layers.map(({ nEmbdIndexerK }) => nEmbdIndexerK), [
    32,
    undefined,
    32,
    undefined,
  ]);
  const cost = (spec: string) => estimateCost(facts, expandPlan(spec, 4), { nCtx: 512 }).plan;
  assertEquals(cost("none").kvBytes, 512 * 2 * (4 * 96 + 2 * 32));
  assertEquals(cost("2,3").kvBytes - cost("none").kvBytes, 512 * 2 * (96 + 32));
  assertEquals(cost("1,2").kvBytes - cost("none").kvBytes, 512 * 2 * 96);
});

Deno.test("modelFacts() reads a whole file's facts", async () => {
  const facts = modelFacts(await readHeader(writeGguf(llamaFile(4))));
  assertEquals({ ...facts, layers: facts.layers.slice(0, 1) }, {
    architecture: "llama",
    nLayer: 4,
    nextn: 0,
    nCtxTrain: 512,
    layers: [
      {
        nEmbdKGqa: 16,
        nEmbdVGqa: 16,
        nEmbdHeadK: 8,
        nEmbdHeadV: 8,
        hasKv: true,
        isRecr: false,
        isSwa: false,
        weightBytes: 6272,
        activeBytes: 6272,
      },
    ],
    hasSwaCache: false,
    nSwa: 0,
    nEmbdR: 0,
    nEmbdS: 0,
    isMla: false,
    isCausal: true,
    hasRsRollback: false,
    inexact: [],
  });
});
