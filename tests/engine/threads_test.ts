import { assert, assertEquals, assertRejects } from "@std/assert";
import { loadModel } from "@rys/edge";
import { inRepo } from "./_engine.ts";

/** More than the processor may have, so that threads also wait for one that does not run. */
const THREADS = [2, 3, 5];

/** Nodes of one token are small and done by one thread; those of a prompt are shared out, with small ones between. */
const prompt = Array.from({ length: 96 }, (_, i) => 260 + (i * 7919) % 700);

for (const name of ["demo", "demo-q8_0"]) {
  Deno.test(`${name}.gguf gives the same on any number of threads`, async () => {
    await using model = await loadModel(inRepo(`models/${name}.gguf`), { gpu: "off" });
    for (const tokens of [prompt.slice(0, 1), prompt]) {
      const { data } = await model.logits(tokens, { threads: 1 });
      assert(data.every(Number.isFinite));
      for (const threads of THREADS) {
        const other = await model.logits(tokens, { threads });
        assertEquals(other.data, data, `${tokens.length} tokens, ${threads} threads`);
      }
    }
    const said: number[][] = [];
    for (const threads of [1, ...THREADS]) {
      await using context = await model.createContext({ nCtx: 256, threads });
      const options = { maxTokens: 48, temperature: 0, ignoreEos: true };
      said.push((await context.generate(prompt, options).completion()).tokens);
    }
    for (const tokens of said) assertEquals(tokens, said[0]);
  });
}

Deno.test("a cancel ends a prompt on several threads, and the next one is as ever", async () => {
  await using model = await loadModel(inRepo("models/demo.gguf"), { gpu: "off" });
  for (const threads of THREADS) {
    await using context = await model.createContext({ nCtx: 2048, threads });
    const options = { maxTokens: 4, temperature: 0, ignoreEos: true };
    const expected = (await context.generate(prompt, options).completion()).tokens;
    for (let i = 0; i < 4; i++) {
      const stop = new AbortController();
      const long = Array.from({ length: 1900 }, (_, j) => 260 + (j * 31 + i) % 700);
      const answer = context.generate(long, { ...options, signal: stop.signal }).completion();
      setTimeout(() => stop.abort(new Error("enough")), 5 * i);
      await assertRejects(() => answer, Error, "enough");
      assertEquals((await context.generate(prompt, options).completion()).tokens, expected);
    }
  }
});
