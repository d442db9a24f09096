/**
 * Runs GGUF language models on llama.cpp, compiled to WASM, with a block of their middle layers run again ("RYS",
 * repeat your self): no new weights, no second file, no second copy of a weight. A plan belongs to a context, so
 * contexts with different plans work side by side on one loaded model.
 *
 * @example A model with layers 26 to 33 run twice
 * ```ts
 * import { loadModel } from "@rys/edge";
 * import { assertEquals } from "@std/assert";
 *
 * await using model = await loadModel("models/demo.gguf");
 * await using context = await model.createContext({ repeatLayers: "26,34", nCtx: 512 });
 * assertEquals(context.info.plan.nLayerEff, model.info.nLayer + 8);
 *
 * const { nGenerated } = await context.generate("Once upon a time", { maxTokens: 8 }).completion();
 * assertEquals(nGenerated <= 8, true);
 * ```
 *
 * As a program: `deno run -A mod.ts --repeat-layers 33,34`, and `deno run -A mod.ts help`.
 *
 * @module
 */

export * from "./src/engine/mod.ts";
export * from "./src/plan/mod.ts";
export * from "./src/gguf/mod.ts";
export * from "./src/hub/mod.ts";
export * from "./src/export/mod.ts";

if (import.meta.main) {
  const { main } = await import("./src/cli/main.ts");
  Deno.exit(await main(Deno.args));
}
