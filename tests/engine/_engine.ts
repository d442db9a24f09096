// Shared by the tests of the engine.

import { fileURLToPath } from "node:url";
import { type Context, type GenerateOptions, loadModel, type Model, type Piece } from "@rys/edge";

/** The path of a file of the repository. */
export const inRepo = (path: string): string =>
  fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The demo model: 40 layers, qwen3, a token for each byte at {@linkcode byteToken}. */
export const DEMO = inRepo("models/demo.gguf");

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

/** Runs a program of its own, with the package's import map; it fails if it has not ended after five minutes. */
export async function child(code: string): Promise<{ code: number; stdout: string }> {
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    await Deno.writeTextFile(file, code);
    const output = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--no-check",
        "--config",
        inRepo("deno.json"),
        file,
      ],
      signal: AbortSignal.timeout(300_000),
    }).output();
    return { code: output.code, stdout: new TextDecoder().decode(output.stdout) };
  } finally {
    await Deno.remove(file);
  }
}
