import { assertEquals } from "@std/assert";
import { loadModel, type Model } from "@rys/edge";
import { greedy, inRepo, STORY } from "./_engine.ts";

// Threads start while others make the memory larger, which is likeliest in a young instance: several, one after another.
const ROUNDS = 4;
const WORKERS = 4;
const TURNS = 15;

async function churn(use: (model: Model) => Promise<void>): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    await using model = await loadModel(inRepo("models/demo-q8_0.gguf"), { gpu: "off" });
    await Promise.all(Array.from({ length: WORKERS }, async () => {
      for (let turn = 0; turn < TURNS; turn++) await use(model);
    }));
  }
}

Deno.test("contexts are made and disposed of by several at once", async () => {
  await churn(async (model) => {
    await using _ = await model.createContext({ nCtx: 512 });
  });
});

Deno.test("contexts are made, used and disposed of by several at once", async () => {
  let want: string | undefined;
  await churn(async (model) => {
    await using context = await model.createContext({ nCtx: 512 });
    const text = await greedy(context, STORY, 4);
    assertEquals(text, want ??= text);
  });
});
