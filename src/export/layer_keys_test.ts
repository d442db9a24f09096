import { assertEquals, assertStringIncludes } from "@std/assert";
import { plainKey, writeGguf } from "../gguf/_testing.ts";
import { readHeader } from "../gguf/read_header.ts";
import { expandPlan } from "../plan/mod.ts";
import { layerKeys } from "./layer_keys.ts";

/** Keys that this architecture must have, of 8 layers. */
const GEMMA4 = {
  "attention.sliding_window": 8,
  "attention.sliding_window_pattern": [1, 1, 1, 0, 1, 0, 1, 0],
};

/** What becomes of a model's keys under a plan; a refusal is text. */
async function keysOf(
  architecture: string,
  nLayer: number,
  keys: Record<string, unknown>,
  spec: string,
  nextn = 0,
): Promise<string | Record<string, unknown>> {
  const own = Object.entries({
    "block_count": nLayer + nextn,
    ...nextn > 0 ? { "nextn_predict_layers": nextn } : {},
    "embedding_length": 64,
    "attention.head_count": 4,
    ...keys,
  }).map(([key, value]) => plainKey(`${architecture}.${key}`, value));
  const header = await readHeader(
    writeGguf({ keys: [plainKey("general.architecture", architecture), ...own] }),
  );
  const { changes, refusal } = layerKeys(header, expandPlan(spec, nLayer, { nextn }).layers);
  if (changes === undefined) return refusal;
  return Object.fromEntries(
    [...changes].map(([key, change]) => [
      key.slice(architecture.length + 1),
      "value" in change ? change.value.value : change.places,
    ]),
  );
}

Deno.test("lists with a value for each layer follow the plan, next-token layers last", async () => {
  assertEquals(
    await keysOf(
      "qwen35",
      4,
      {
        "attention.recurrent_layers": [1, 1, 1, 0, 0],
        "feed_forward_length": [9, 8, 7, 6, 5],
      },
      "1,3",
      1,
    ),
    {
      "block_count": 7,
      "feed_forward_length": [0, 1, 2, 1, 2, 3, 4],
      "attention.recurrent_layers": [0, 1, 2, 1, 2, 3, 4],
    },
  );
  assertEquals(await keysOf("llama", 4, {}, "none"), {});
});

Deno.test("a pattern from a period becomes a list where the block is no multiple of it", async () => {
  assertEquals(await keysOf("gemma3", 12, { "attention.sliding_window": 512 }, "3,9"), {
    "block_count": 18,
  });
  assertEquals(await keysOf("gemma3", 6, { "attention.sliding_window": 512 }, "4,6"), {
    "block_count": 8,
    "attention.sliding_window_pattern": [1, 1, 1, 1, 1, 0, 1, 0],
  });
  assertEquals(await keysOf("qwen35", 4, { "full_attention_interval": 2 }, "2,3", 1), {
    "block_count": 6,
    "attention.recurrent_layers": [1, 0, 1, 1, 0, 0],
  });
  // Dense layers first, and a period of the file's own.
  assertEquals(
    await keysOf("cohere2moe", 4, { "attention.sliding_window_pattern": 2 }, "1,2"),
    { "block_count": 5, "attention.sliding_window_pattern": [0, 1, 1, 0, 1] },
  );
});

Deno.test("counts of leading layers, decoders and shared caches follow the plan", async () => {
  assertEquals(await keysOf("deepseek", 6, { "leading_dense_block_count": 2 }, "0,2"), {
    "block_count": 8,
    "leading_dense_block_count": 4,
  });
  assertEquals(await keysOf("t5", 4, { "decoder_block_count": 4 }, "1,2"), {
    "block_count": 5,
    "decoder_block_count": 5,
  });
  assertEquals(
    await keysOf("gemma4", 8, {
      ...GEMMA4,
      "attention.shared_kv_layers": 2,
    }, "6,8"),
    {
      "block_count": 10,
      "attention.shared_kv_layers": 4,
      "attention.sliding_window_pattern": [0, 1, 2, 3, 4, 5, 6, 7, 6, 7],
    },
  );
  assertEquals(await keysOf("qwen4exp", 8, { "ple.layers": [5] }, "1,5"), {
    "block_count": 12,
    "ple.layers": [9],
  });
});

Deno.test("what llama.cpp would take for another model keeps its values, or is refused", async () => {
  const scale = Math.fround(Math.fround(1.4) / Math.fround(Math.sqrt(40)));
  assertEquals(await keysOf("minicpm", 40, {}, "1,2"), {
    "block_count": 41,
    "residual_scale": scale,
  });
  const lite = { "block_count": 28, "attention.q_lora_rank": 0, "expert_gating_func": 1 };
  assertEquals(await keysOf("deepseek2", 27, {}, "9,10"), lite);
  assertEquals(
    await keysOf("deepseek2", 47, { "vocab_size": 154880, "attention.q_lora_rank": 8 }, "9,10"),
    { "block_count": 48, "expert_gating_func": 2 },
  );
  for (
    const [architecture, nLayer, keys, spec, part] of [
      ["baichuan", 32, {}, "1,2", "of 33 layers for another one"],
      ["baichuan", 31, {}, "1,2", "of 32 layers for another one"],
      ["exaone4", 64, {}, "8,12", "sliding windows only with 64"],
      ["gemma2", 46, { "attention.key_length": 128 }, "4,6", "another with 46 layers"],
      ["gemma3", 60, { "attention.key_length": 128 }, "4,6", "another with 62 layers"],
      ["deepseek2", 25, { "attention.q_lora_rank": 8 }, "9,10", "a lite one"],
      ["minicpm3", 8, {}, "1,2", "from the number of layers"],
      ["minimax-01", 8, {}, "1,2", "each layer's decay"],
      [
        "gemma3n",
        24,
        { "attention.sliding_window": 8 },
        "12,16",
        "layer 16 would get the number 20",
      ],
      ["smollm3", 8, {}, "1,3", "layer 1 would get the number 3"],
      ["llama4", 8, { "interleave_moe_layer_step": 2 }, "1,2", "which layers have experts"],
      ["qwen4exp", 8, { "ple.layers": [5] }, "5,6", "exactly one layer"],
      ["kimi-k3", 8, {}, "1,2", "cannot run this plan"],
    ] as const
  ) {
    const found = await keysOf(architecture, nLayer, keys, spec);
    assertStringIncludes(String(found), part, `${architecture} ${spec}`);
    assertStringIncludes(String(found), `'${architecture}'`);
  }
  // A block of whole periods keeps every number's meaning.
  assertEquals(await keysOf("smollm3", 12, {}, "4,8"), { "block_count": 16 });
  assertEquals(await keysOf("gemma2", 46, { "attention.key_length": 16 }, "4,6"), {
    "block_count": 48,
  });
});
