import { assert, assertEquals } from "@std/assert";
import { checkVariants } from "./variants.ts";

// What an architecture does with its weights besides multiplying them would show as an abort or as other logits. Some
// that differ in what they do; `deno task test:oracle` has them all.
const results = checkVariants(
  ["llama", "qwen3", "gemma3", "gemma4+ple", "mamba", "jamba", "falcon-h1", "lfm2", "rwkv7"].concat(
    ["deepseek2-moe", "qwen2moe-moe", "llama4-moe", "grok-moe", "t5", "bert"],
  ),
  { args: () => ["--repacked"] },
);

for (const [name, result] of results) {
  Deno.test({
    name: `repacked weights are as good as llama.cpp's own path: ${name}`,
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const { passed, failures } = await result;
      assertEquals(failures, []);
      assert(passed > 0);
    },
  });
}
