import { assert, assertEquals } from "@std/assert";
import { checkVariants, variants } from "./variants.ts";

// A plan context against a model whose layers were duplicated physically, bit for bit, inside the WASM: every
// architecture that upstream's generator can make, with the first two plans it can run, one aligned block and one not.
// These get every check: slots, interleaved contexts, states, the graph.
const WHOLE = ["llama", "qwen3", "gemma3", "qwen35", "mamba", "lfm2", "jamba", "falcon-h1"];
const names = await variants();
const results = checkVariants(names, {
  args: (name) => WHOLE.includes(name) ? ["--plans", "2"] : ["--quick"],
});

Deno.test("the oracle knows the architectures that matter", () => {
  for (const name of WHOLE) assert(names.includes(name), name);
  assert(names.length >= 120, `${names.length} variants`);
});

for (const [name, result] of results) {
  Deno.test({
    name: `plan == physical twin: ${name}`,
    // The variants run beside each other, two at once, from before the first test to after the last.
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const { passed, failures } = await result;
      assertEquals(failures, []);
      assert(passed > 0);
    },
  });
}
