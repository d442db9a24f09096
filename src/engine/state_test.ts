import { assertEquals, assertRejects } from "@std/assert";
import { EngineError } from "./client.ts";
import { packState, unpackState } from "./state.ts";

const IDENTITY = {
  model: "qwen3/demo",
  plan: "20,24",
  planHash: "0123456789abcdef",
  cacheTypeK: "f16",
  cacheTypeV: "f16",
};

Deno.test("unpackState() gives back what packState() packed", async () => {
  for (const n of [0, 1, 1000]) {
    const bytes = crypto.getRandomValues(new Uint8Array(n));
    assertEquals(await unpackState(await packState(bytes, IDENTITY), IDENTITY), bytes);
  }
});

Deno.test("unpackState() refuses every cut and every changed byte", async () => {
  const state = await packState(new Uint8Array([1, 2, 3, 4]), IDENTITY);
  for (let i = 0; i < state.length; i++) {
    await assertRejects(() => unpackState(state.slice(0, i), IDENTITY), EngineError);
  }
  for (const i of [0, 7, 8, state.length - 1]) {
    const wrong = state.slice();
    wrong[i]! ^= 1;
    await assertRejects(() => unpackState(wrong, IDENTITY), EngineError, "Cannot load the state");
  }
});

Deno.test("unpackState() says what a state belongs to", async () => {
  const state = await packState(new Uint8Array(8), IDENTITY);
  const cases: [Partial<typeof IDENTITY>, string][] = [
    [{ model: "llama/other" }, "model qwen3/demo"],
    [{ plan: "none", planHash: "0" }, 'plan "20,24", this context runs "none"'],
    [{ cacheTypeV: "q8_0" }, "f16/f16, this context's f16/q8_0"],
  ];
  for (const [other, part] of cases) {
    await assertRejects(() => unpackState(state, { ...IDENTITY, ...other }), EngineError, part);
  }
});
