/**
 * A model in a Worker of one's own, so that the main thread stays free for other work. This file is both halves.
 *
 *     deno run -A examples/worker.ts [MODEL.gguf]
 */

/// <reference lib="deno.worker" />

import { loadModel } from "@rys/edge";

interface Question {
  model: string;
  prompt: string;
  repeatLayers: string;
}

const WORKER = "model"; // import.meta.main is true in a Worker of this file as well

if (self.name !== WORKER) {
  const worker = new Worker(import.meta.url, { type: "module", name: WORKER });
  const question: Question = {
    model: Deno.args[0] ?? "models/demo.gguf",
    prompt: "Once upon a time",
    repeatLayers: "20,24",
  };
  worker.postMessage(question);
  await new Promise<void>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<{ text: string } | { done: true }>) => {
      if ("done" in data) resolve();
      else Deno.stdout.writeSync(new TextEncoder().encode(data.text));
    };
    worker.onerror = (event) => reject(new Error(event.message));
  });
  console.log();
  worker.terminate();
} else {
  self.onmessage = async ({ data }: MessageEvent<Question>) => {
    {
      await using model = await loadModel(data.model);
      await using context = await model.createContext({
        repeatLayers: data.repeatLayers,
        nCtx: 1024,
      });
      const pieces = context.generate(data.prompt, { maxTokens: 24, temperature: 0 });
      for await (const { text } of pieces) self.postMessage({ text });
    }
    self.postMessage({ done: true }); // after both are disposed of
  };
}
