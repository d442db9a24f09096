import { assert, assertEquals } from "@std/assert";
import { EngineError } from "@rys/edge";
import { random } from "../server/_fuzz.ts";
import { test } from "./_engine.ts";
import { randomGrammar, randomSchema } from "./_grammars.ts";

// The same cases each time. RYS_FUZZ_SEED and RYS_FUZZ_COUNT try others, and more.
const seed = Number(Deno.env.get("RYS_FUZZ_SEED") ?? 1);
const count = Number(Deno.env.get("RYS_FUZZ_COUNT") ?? 200);

/** What the engine may take from the host beyond what an ordinary answer takes, in bytes. */
const MOST = 512 << 20;

for (const [what, make] of [["grammars", randomGrammar], ["schemas", randomSchema]] as const) {
  test(`random ${what} are answers or errors of the request, at a bounded cost`, async (model) => {
    await using context = await model.createContext({ nCtx: 256, nParallel: 1 });
    await context.generate("Once", { maxTokens: 4 }).completion();
    const before = await model.heapBytes();
    const next = random(seed);
    for (let i = 0; i < count; i++) {
      const made = make(next);
      const shown = `seed ${seed}, case ${i}: ${JSON.stringify(made).slice(0, 2000)}`;
      const options = typeof made === "string" ? { grammar: made } : { jsonSchema: made };
      try {
        await context.generate("Once", { ...options, maxTokens: 4, seed: i }).completion();
      } catch (error) {
        assert(error instanceof EngineError, `${error} of ${shown}`);
        assertEquals([error.fatal, error.status], [false, 400], `${error.message} of ${shown}`);
      }
      const taken = await model.heapBytes() - before;
      assert(taken < MOST, `${taken} bytes after ${shown}`);
    }
  });
}
