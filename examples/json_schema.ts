/**
 * An answer that is valid under a JSON schema, whatever the model would have liked to say.
 *
 *     deno run -A examples/json_schema.ts [MODEL.gguf]
 */

import { loadModel } from "@rys/edge";

const [path = "models/demo.gguf"] = Deno.args;

await using model = await loadModel(path);
await using context = await model.createContext({ nCtx: 1024 });

const { text } = await context.generate("A cat as JSON:", {
  jsonSchema: {
    type: "object",
    properties: {
      name: { type: "string", maxLength: 12 },
      legs: { type: "integer", minimum: 0, maximum: 8 },
      sound: { enum: ["meow", "woof", "moo"] },
    },
    required: ["name", "legs", "sound"],
  },
  temperature: 0,
}).completion();
const cat: { name: string; legs: number; sound: string } = JSON.parse(text);
console.log(cat);
