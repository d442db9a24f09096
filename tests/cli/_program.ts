// Runs the real program as a child process.

import type { PlanJson } from "../../src/plan/mod.ts";

/** The repository. */
export const ROOT = new URL("../../", import.meta.url);
/** The program. */
export const MOD = decodeURIComponent(new URL("mod.ts", ROOT).pathname);
/** The demo model, of 40 layers. */
export const MODEL = decodeURIComponent(new URL("models/demo.gguf", ROOT).pathname);

/** What a run of the program gave. */
export interface Result {
  code: number;
  out: string;
  err: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** Fields of the objects that commands print with `--json`; each command prints some of them. */
export interface Printed extends PlanJson {
  text: string;
  tokens: number[];
  n_prompt: number;
  n_generated: number;
  finish_reason: string;
  stopping_word: string;
  seed: number;
  plan: PlanJson;
  plan_hash: string;
  n_ctx: number;
  kv_bytes: number;
  kv_bytes_base: number;
  recurrent_bytes: number;
  model_bytes: number;
  timings: Record<string, number>;
  cost: {
    kv_bytes: number;
    kv_bytes_base: number;
    recurrent_bytes: number;
    compute_ratio: number;
  };
  n_vocab: number;
  n_tokens: number;
  file: string | null;
  bytes: number;
  top: { id: number; logit: number; logprob: number; token?: string }[];
  results: { test: string; plan: PlanJson; samples_ts: number[]; avg_ts: number; ratio: number }[];
  gpu: {
    device: string | null;
    why?: string;
    layers: number;
    layers_all: number;
    bytes: number;
    cpu_bytes: number;
  };
  backend: string;
  ok: boolean;
  missing: unknown[];
  deno: string;
  wasm: { bytes: number; valid: boolean; build: { id: string } };
}

/** Options of {@linkcode program}. */
export interface ProgramOptions {
  env?: Record<string, string>;
  stdin?: string;
  /** Permissions in place of all. */
  allow?: string[];
  mod?: string;
}

/** Starts the program with pipes on all its streams. */
export function start(args: string[], options: ProgramOptions = {}): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", ...options.allow ?? ["-A"], "--quiet", options.mod ?? MOD, ...args],
    env: { LLAMA_ARG_REPEAT_LAYERS: "", ...options.env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** Runs the program to its end. */
export async function program(args: string[], options: ProgramOptions = {}): Promise<Result> {
  const child = start(args, options);
  const writer = child.stdin.getWriter();
  if (options.stdin !== undefined) {
    await writer.write(new TextEncoder().encode(options.stdin)).catch(() => {});
  }
  await writer.close().catch(() => {});
  const { code, stdout, stderr } = await child.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr), bytes: new Uint8Array(stdout) };
}

/** Runs the program, which must end with 0 and print one JSON object. */
export async function json(args: string[], options: ProgramOptions = {}): Promise<Printed> {
  const { code, out, err } = await program([...args, "--json"], options);
  if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
  if (out.trimEnd().includes("\n")) throw new Error(`more than one line: ${out}`);
  return JSON.parse(out);
}

/** Reads a stream until `found` is in its text. */
export async function readUntil(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  found: string | RegExp,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  while (typeof found === "string" ? !text.includes(found) : !found.test(text)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the stream ended before ${found}: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  return text;
}
