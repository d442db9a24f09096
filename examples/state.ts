/**
 * Saves what a context has read and goes on from there in another process, or later.
 *
 *     deno run -A examples/state.ts [MODEL.gguf] [STATE FILE]
 */

import { loadModel } from "@rys/edge";

const [path = "models/demo.gguf", file = await Deno.makeTempFile()] = Deno.args;
const options = { repeatLayers: "20,24", nCtx: 1024 };
const story = "Once upon a time there was a little dog. The dog liked to play.";

await using model = await loadModel(path);
{
  await using context = await model.createContext(options);
  await context.generate(story, { maxTokens: 0 }).text(); // reads the prompt, writes nothing
  await Deno.writeFile(file, await context.saveState());
}

// A state carries the hash of its plan: a context with another plan refuses it.
await using context = await model.createContext(options);
await context.loadState(await Deno.readFile(file));
const { text, timings } = await context.generate(story, { maxTokens: 16, temperature: 0 })
  .completion();
console.log(text);
console.error(`${timings.cachedTokens} tokens from ${file}, ${timings.promptTokens} computed`);
