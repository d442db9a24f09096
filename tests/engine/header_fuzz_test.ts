import { assert, assertEquals } from "@std/assert";
import { fixture } from "../oracle/fixture.ts";
import { fuzzHeaders } from "./_header_fuzz.ts";
import { inRepo } from "./_engine.ts";

const hasOracle = await Deno.stat(inRepo("wasm/oracle/build.json")).then(() => true, () => false);

Deno.test({
  name: "a damaged value in a header ends its load, and never the instance",
  sanitizeOps: false,
  sanitizeResources: false,
  fn: async () => {
    const files = [inRepo("models/demo.gguf"), inRepo("models/demo-q8_0.gguf")];
    if (hasOracle) {
      for (
        const name of [
          ...["gemma3", "deepseek2-moe", "granitehybrid", "mamba"],
          ...["qwen35+nextn", "gemma4+shared", "falcon-h1", "lfm2"],
        ]
      ) {
        files.push(await fixture(name));
      }
    }
    const seed = Number(Deno.env.get("RYS_FUZZ_SEED") ?? 7);
    const { refused, failed, ran, deaths } = await fuzzHeaders(files, {
      seed,
      rounds: Number(Deno.env.get("RYS_FUZZ_ROUNDS") ?? 120),
    });
    assertEquals(deaths, [], `RYS_FUZZ_SEED=${seed}`);
    // Each end is come to, or the damage says nothing.
    assert(Math.min(refused, failed, ran) > 0, JSON.stringify({ refused, failed, ran }));
  },
});
