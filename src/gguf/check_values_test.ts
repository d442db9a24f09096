import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { llamaFile, plainKey, type TestFile, type TestKey, writeGguf } from "./_testing.ts";
import { GgufError, readHeader } from "./mod.ts";

const float = (key: string, value: number): TestKey => ({ key, type: "float32", value });
const scores = (n: number): TestKey => ({
  key: "tokenizer.ggml.scores",
  type: "array",
  elementType: "float32",
  value: Array(n).fill(0),
});

/** The small llama with other or more keys. */
function withKeys(...keys: TestKey[]): TestFile {
  const file = llamaFile();
  const names = new Set(keys.map(({ key }) => key));
  return { ...file, keys: [...file.keys!.filter(({ key }) => !names.has(key)), ...keys] };
}

const rope = "llama.rope.dimension_count";
const eps = "llama.attention.layer_norm_rms_epsilon";

const FAULTS: [what: string, file: TestFile, field: string, expected: string][] = [
  [
    "an unknown RoPE scaling",
    withKeys(plainKey("llama.rope.scaling.type", "linear\0")),
    'key "llama.rope.scaling.type"',
    "none, linear, yarn, longrope",
  ],
  ["an epsilon of -1", withKeys(float(eps, -1)), `key "${eps}"`, "a small number from 0"],
  ["an epsilon that is not a number", withKeys(float(eps, NaN)), `key "${eps}"`, "from 0"],
  ["an endless epsilon", withKeys(float(eps, Infinity)), `key "${eps}"`, "from 0"],
  [
    "a context of no tokens",
    withKeys(plainKey("llama.context_length", 0)),
    'key "llama.context_length"',
    "1 to 2147483647",
  ],
  [
    "an embedding of no width",
    withKeys(plainKey("llama.embedding_length", 0)),
    'key "llama.embedding_length"',
    "1 to 2147483647",
  ],
  ["RoPE over more than a head", withKeys(plainKey(rope, 10)), `key "${rope}"`, "up to 8"],
  ["RoPE over half a pair", withKeys(plainKey(rope, 7)), `key "${rope}"`, "an even number"],
  [
    "RoPE over more than a head of its own size",
    withKeys(plainKey("llama.attention.key_length", 16), plainKey(rope, 18)),
    `key "${rope}"`,
    "up to 16",
  ],
  [
    "more experts than llama.cpp knows",
    withKeys(plainKey("llama.expert_count", 1025), plainKey("llama.expert_used_count", 2)),
    'key "llama.expert_count"',
    "0 to 1024",
  ],
  [
    "more experts in use than there are",
    withKeys(plainKey("llama.expert_count", 8), plainKey("llama.expert_used_count", 9)),
    'key "llama.expert_used_count"',
    "1 to 8",
  ],
  [
    "experts of which no key says how many are in use",
    withKeys(plainKey("llama.expert_count", 8)),
    'key "llama.expert_count"',
    'the key "llama.expert_used_count"',
  ],
  [
    "experts of which none is in use",
    withKeys(plainKey("llama.expert_count", 8), plainKey("llama.expert_used_count", 0)),
    'key "llama.expert_used_count"',
    "1 to 8",
  ],
  [
    "tokens that are numbers",
    withKeys(plainKey("tokenizer.ggml.tokens", [1, 2])),
    'key "tokenizer.ggml.tokens"',
    "an array of text",
  ],
  ["fewer scores than tokens", withKeys(scores(3)), 'key "tokenizer.ggml.scores"', "4"],
  [
    "scores of another type",
    withKeys(plainKey("tokenizer.ggml.scores", [1, 2, 3, 4])),
    'key "tokenizer.ggml.scores"',
    "an array of float32",
  ],
  [
    "a weight of whole numbers",
    {
      ...llamaFile(),
      tensors: [{ name: "blk.0.attn_q.scale", shape: [1], type: 26, bytes: 4 }],
    },
    'tensor "blk.0.attn_q.scale"',
    "a type that weights have",
  ],
];

for (const [what, file, field, expected] of FAULTS) {
  Deno.test(`readHeader() refuses ${what}`, async () => {
    const bytes = writeGguf(file);
    const error = await assertRejects(() => readHeader(bytes, { name: "m.gguf" }), GgufError);
    assertEquals([error.file, error.field], ["m.gguf", field]);
    assertStringIncludes(error.expected!, expected);
    if (field.startsWith("key")) assertEquals(typeof error.offset, "number");
  });
}

Deno.test("readHeader() takes values at the edge of what is right", async () => {
  for (
    const file of [
      withKeys(float(eps, 0), plainKey(rope, 8), plainKey("llama.rope.scaling.type", "yarn")),
      withKeys(plainKey("llama.context_length", 1), scores(4)),
      withKeys(plainKey("llama.expert_count", 8), plainKey("llama.expert_used_count", 8)),
      withKeys(
        plainKey("llama.expert_count", 8),
        plainKey("llama.expert_used_count", [0, 1, 2, 2]),
      ),
      {
        ...llamaFile(),
        tensors: [{ name: "blk.0.ffn_gate_tid2eid.weight", shape: [8], type: 26, bytes: 32 }],
      },
    ]
  ) await readHeader(writeGguf(file));
});
