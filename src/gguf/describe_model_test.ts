import { assertEquals, assertStringIncludes } from "@std/assert";
import { describeModel } from "./describe_model.ts";
import { readHeader } from "./read_header.ts";
import { llamaFile, plainKey, type TestTensor, writeGguf } from "./_testing.ts";

async function described(
  architecture: string,
  keys: Record<string, unknown>,
  tensors: TestTensor[] = [],
  general: Record<string, unknown> = {},
) {
  const bytes = writeGguf({
    keys: [
      plainKey("general.architecture", architecture),
      ...Object.entries(general).map(([key, value]) => plainKey(key, value)),
      ...Object.entries(keys).map(([key, value]) => plainKey(`${architecture}.${key}`, value)),
    ],
    tensors,
  });
  return describeModel(await readHeader(bytes, { name: "m.gguf" }));
}

const kinds = ({ layers }: { layers: { kind: string }[] }) =>
  layers.map(({ kind }) => kind === "attention+recurrent" ? "H" : kind[0]).join("");

const attention = (n: number): TestTensor[] =>
  Array.from({ length: n }, (_, il) => ({ name: `blk.${il}.attn_q.weight`, shape: [32, 32] }));

Deno.test("describeModel() tells each layer's kind", async () => {
  const heads = { embedding_length: 32, "attention.head_count": 2, context_length: 64 };
  const qwen = await described("qwen35", {
    ...heads,
    block_count: 9,
    nextn_predict_layers: 1,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 64,
    "ssm.state_size": 16,
    "ssm.group_count": 2,
  });
  assertEquals([kinds(qwen), qwen.nLayer, qwen.nextn], ["rrrarrran", 8, 1]);
  assertEquals(qwen.layers.map(({ isNextn }) => isNextn).lastIndexOf(false), 7);

  const gemma = await described("gemma3", {
    ...heads,
    block_count: 12,
    "attention.sliding_window": 16,
  }, attention(12));
  assertEquals([kinds(gemma), gemma.nSwa], ["wwwwwawwwwwa", 16]);

  const shared = await described("gemma4", {
    ...heads,
    block_count: 4,
    "attention.sliding_window": 16,
    "attention.sliding_window_pattern": [1, 0, 1, 0],
    "attention.shared_kv_layers": 2,
  }, attention(4));
  assertEquals(kinds(shared), "wawa");
  assertEquals(shared.layers.map(({ hasKv }) => hasKv), [true, true, false, false]);

  const falcon = await described("falcon-h1", { ...heads, block_count: 2 });
  assertEquals(kinds(falcon), "HH");
  assertEquals(kinds(await described("mamba", { embedding_length: 32, block_count: 2 })), "rr");
  assertEquals(kinds(await described("bert", { ...heads, block_count: 2 }, attention(2))), "aa");
});

Deno.test("describeModel() counts experts, parameters, and bits", async () => {
  const model = await described(
    "qwen3moe",
    {
      block_count: 2,
      embedding_length: 32,
      "attention.head_count": 1,
      expert_count: 8,
      expert_used_count: 2,
    },
    [
      { name: "token_embd.weight", shape: [32, 8] },
      { name: "blk.1.ffn_up_exps.weight", shape: [32, 4, 8], type: 8, bytes: 32 * 34 },
    ],
    { "general.file_type": 7, "general.size_label": "8x4", "general.name": "Some model" },
  );
  assertEquals(model.layers.map(({ hasExperts }) => hasExperts), [false, true]);
  assertEquals([model.nExpert, model.nExpertUsed], [8, 2]);
  assertEquals([model.nParams, model.weightBytes], [256 + 1024, 1024 + 1088]);
  assertEquals(model.bitsPerWeight, 8 * 2112 / 1280);
  assertEquals(model.types, [
    { type: "q8_0", tensors: 1, values: 1024, bytes: 1088 },
    { type: "f32", tensors: 1, values: 256, bytes: 1024 },
  ]);
  assertEquals([model.fileType, model.sizeLabel, model.name], ["Q8_0", "8x4", "Some model"]);
});

Deno.test("describeModel() tells what a chat template's text refers to", async () => {
  const template = async (text: string) =>
    (await described("llama", {}, [], { "tokenizer.chat_template": text })).chatTemplate;
  assertEquals(await template(""), null);
  assertEquals(await template("{{ messages }}"), {
    length: 14,
    others: [],
    tools: false,
    toolCalls: false,
    system: false,
    thinking: false,
    media: false,
  });
  const all = await template(
    "{% if tools %}{{ tool_calls }}{% endif %}system enable_thinking {{ image }}",
  );
  assertEquals([all!.tools, all!.toolCalls, all!.system, all!.thinking, all!.media], [
    true,
    true,
    true,
    true,
    true,
  ]);
});

Deno.test("describeModel() describes what it can of a header that says too little", async () => {
  const vocabulary = await described("llama", {});
  assertEquals([vocabulary.nLayer, vocabulary.layers, vocabulary.notes], [0, [], []]);
  assertEquals(vocabulary.plans.plans, "none");
  const incomplete = await described("gpt-oss", { block_count: 2 });
  assertEquals([incomplete.nLayer, incomplete.layers], [2, []]);
  assertStringIncludes(incomplete.notes[0]!, 'key "gpt-oss.attention.sliding_window"');
});

Deno.test("describeModel() describes a whole file", async () => {
  const bytes = writeGguf(llamaFile(4));
  const model = describeModel(await readHeader(bytes));
  assertEquals([model.architecture, model.fileBytes, model.nFiles], ["llama", bytes.length, 1]);
  assertEquals(model.nVocab > 0, true);
  assertEquals(model.types.reduce((sum, type) => sum + type.bytes, 0), model.weightBytes);
});
