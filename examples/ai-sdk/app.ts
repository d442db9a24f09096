// deno-lint-ignore-file no-import-prefix
// An app on the AI SDK (npm `ai`, `@ai-sdk/openai-compatible`) that picks a layer plan for each call.
//
//   RYS_URL=http://127.0.0.1:8080 RYS_API_KEY=secret deno run -A examples/ai-sdk/app.ts

import { createOpenAICompatible } from "npm:@ai-sdk/openai-compatible@3.0.92";
import { embed, generateText, jsonSchema, Output, streamText } from "npm:ai@7.0.173";
import process from "node:process";

/** The plan that ran, as the server tells it in every answer. */
interface Ran {
  plan: string;
  n_layer_eff: number;
}

const rys = createOpenAICompatible({
  name: "rys",
  baseURL: `${process.env.RYS_URL ?? "http://127.0.0.1:8080"}/v1`,
  apiKey: process.env.RYS_API_KEY ?? "",
  supportsStructuredOutputs: true,
  includeUsage: true,
  // Brings the answer's `rys` object into `providerMetadata`.
  metadataExtractor: {
    extractMetadata: ({ parsedBody }) => Promise.resolve(planOf(parsedBody)),
    createStreamExtractor() {
      let last: ReturnType<typeof planOf>;
      return {
        processChunk: (chunk) => void (last = planOf(chunk) ?? last),
        buildMetadata: () => last,
      };
    },
  },
});

function planOf(answer: unknown): { rys: { plan: string; n_layer_eff: number } } | undefined {
  const ran = (answer as { rys?: Ran }).rys;
  return ran && { rys: { plan: ran.plan, n_layer_eff: ran.n_layer_eff } };
}

const question = process.argv[2] ?? "What is the capital of France?";

// One question, three plans on one loaded model: none, one in the model's name, one by the name the server gave it.
const models = ["demo", "demo@26,34", "deep"];
const answers = await Promise.all(
  models.map((model) =>
    generateText({ model: rys(model), prompt: question, temperature: 0, maxOutputTokens: 40 })
  ),
);
for (const [i, { text, providerMetadata }] of answers.entries()) {
  console.log(`${models[i]} (${providerMetadata?.rys?.n_layer_eff} layers): ${text}`);
}

// A stream, with the plan as a field of its own.
const stream = streamText({
  model: rys("demo"),
  messages: [{ role: "user", content: question }],
  temperature: 0,
  maxOutputTokens: 40,
  providerOptions: { rys: { repeat_layers: "33,34" } },
});
let streamed = "";
for await (const piece of stream.textStream) streamed += piece;
const { rys: ran } = await stream.providerMetadata ?? {};
const { outputTokens } = await stream.usage;
console.log(`stream (${ran?.n_layer_eff} layers, ${outputTokens} tokens): ${streamed}`);

// An object of a given shape: the grammar that the server makes of the schema allows nothing else.
const { output } = await generateText({
  model: rys("deep"),
  prompt: question,
  temperature: 0,
  maxOutputTokens: 60,
  output: Output.object({
    schema: jsonSchema<{ city: string; sure: boolean }>({
      type: "object",
      properties: { city: { enum: ["Oslo", "Paris", "Rome"] }, sure: { type: "boolean" } },
      required: ["city", "sure"],
      additionalProperties: false,
    }),
  }),
});
console.log(`object: ${JSON.stringify(output)}`);

const { embedding } = await embed({ model: rys.embeddingModel("deep"), value: question });
console.log(`embedding: ${embedding.length} numbers`);
