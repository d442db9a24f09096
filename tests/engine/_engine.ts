// Shared by the tests of the engine.

import { type Context, type GenerateOptions, loadModel, type Model, type Piece } from "@rys/edge";

/** The demo model: 40 layers, qwen3, a token for each byte at {@linkcode byteToken}. */
export const DEMO = new URL("../../models/demo.gguf", import.meta.url).pathname;

/** A prompt that the demo model goes on from. */
export const STORY = "Once upon a time";

/** Token of a single byte in the demo model. */
export const byteToken = (byte: number): number => 3 + byte;

/** Tokens that the demo model is made to choose in this order are too much; this makes it choose one for ever. */
export const always = (token: number): Record<string, unknown> => ({
  logit_bias: [[token, 1000]],
});

let shared: Promise<Model> | undefined;

/** A test on a model that all tests of a file share. The engine starts threads as it needs them: no sanitizers. */
export function test(name: string, fn: (model: Model) => Promise<void>): void {
  Deno.test({
    name,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => await fn(await (shared ??= loadModel(DEMO))),
  });
}

Deno.test.afterAll(async () => {
  await (await shared)?.dispose();
  shared = undefined;
});

/** All pieces of a generation. */
export async function pieces(
  context: Context,
  prompt: Parameters<Context["generate"]>[0],
  options: GenerateOptions = {},
): Promise<Piece[]> {
  return await Array.fromAsync(context.generate(prompt, options));
}

/** Greedy text. */
export async function greedy(
  context: Context,
  prompt: Parameters<Context["generate"]>[0],
  maxTokens: number,
  options: GenerateOptions = {},
): Promise<string> {
  return await context.generate(prompt, { maxTokens, temperature: 0, ignoreEos: true, ...options })
    .text();
}

/** A few options that make a small, quick context. */
export const SMALL = { nCtx: 512, nParallel: 1, threads: 1 } as const;
