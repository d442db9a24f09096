// Packages that only these tests use. They do not stand in deno.json: what stands there is fetched by everybody who runs
// the program for the first time.

export { default as Anthropic } from "npm:@anthropic-ai/sdk@1.14.0";
export { createOpenAI } from "npm:@ai-sdk/openai@4.0.118";
export { createOpenAICompatible } from "npm:@ai-sdk/openai-compatible@3.0.92";
export { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "npm:ai@7.0.173";
export { default as OpenAI } from "npm:openai@7.59.0";
export { parse as parseYaml, parseAllDocuments } from "npm:yaml@2.9.1";
