import type { Logits } from "../../engine/mod.ts";
import { planToJson } from "../../plan/mod.ts";
import { asUsage, Failure, UsageError } from "../errors.ts";
import { promptText } from "../flags/generate_flags.ts";
import { gpuJson } from "../flags/gpu_flags.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { planInputOrNone } from "../flags/plan_input.ts";
import { alignLines, formatBytes, formatRuns } from "../terminal/plan_text.ts";
import { costOf } from "../model_file.ts";
import { type LoadedModel, openModel, planFor, planLog } from "../session.ts";
import { type Shell, showsColour, styles } from "../terminal/shell.ts";
import { writeWhole } from "../write_whole.ts";

const DEFAULT_TOP = 10;

/** A token that could come next. */
export interface Likely {
  /** Its number. */
  id: number;
  /** Its logit. */
  logit: number;
  /** Natural logarithm of its probability. */
  logprob: number;
  /** Its text, if the model has a tokenizer. */
  token?: string;
}

/**
 * The command `logits`.
 *
 * @param flags The model, its plan, the prompt or tokens, and where the logits go.
 * @param shell Where to write.
 */
export async function logits(flags: Flags, shell: Shell): Promise<number> {
  const where = flags.name("repeatLayers");
  const spec = await planInputOrNone(where, flags.text("repeatLayers"));
  const prompt = await promptOf(flags);
  const output = flags.text("output");
  if (output === "-" && flags.on("json")) {
    throw new UsageError("-o - and --json exclude each other: both write to standard output");
  }
  if (output !== undefined && output !== "-") await checkOutput(flags, output);

  await using loaded = await openModel(flags, shell, (file) => planFor(where, spec, file));
  const { model, checked: plan } = loaded;
  checkPrompt(prompt, loaded);
  // The context is as long as the prompt, and has one slot.
  const tokens = typeof prompt === "string" ? await model.tokenize(prompt) : prompt;
  if (tokens.length === 0) throw new Failure("the prompt has no tokens");
  const cost = asUsage("", () => costOf(loaded.file, plan, flags, tokens.length));
  planLog(loaded, plan, cost, shell, [["load time", `${(loaded.loadMs / 1000).toFixed(2)} s`]]);
  const { nCtx: _, ...options } = loaded.options;
  const result = await model.logits(tokens, {
    ...options,
    repeatLayers: plan,
    signal: shell.signal,
  });
  const bytes = new Uint8Array(result.data.buffer);
  if (output === "-") await shell.out(bytes);
  else if (output !== undefined) {
    await writeWhole(output, bytes, { signal: shell.signal });
  }
  const top = await topOf(result, flags.number("top") ?? DEFAULT_TOP, loaded);
  const file = output === undefined || output === "-" ? null : output;
  if (flags.on("json")) {
    const summary = {
      n_vocab: result.nVocab,
      n_tokens: result.tokens.length,
      tokens: result.tokens,
      file,
      bytes: bytes.length,
      plan: planToJson(result.plan),
      gpu: gpuJson(model.info),
      top,
    };
    await shell.out(JSON.stringify(summary) + "\n");
  } else {
    const text = describe(
      result,
      top,
      file,
      bytes.length,
      output === "-" ? Deno.stderr : Deno.stdout,
    );
    if (output === "-") shell.err(text);
    else await shell.out(text);
  }
  return 0;
}

async function promptOf(flags: Flags): Promise<string | number[]> {
  const tokens = flags.text("tokens");
  const text = await promptText(flags);
  if (tokens !== undefined && text !== undefined) {
    throw new UsageError("--tokens and a prompt exclude each other");
  }
  if (text !== undefined) return text;
  if (tokens === undefined) {
    throw new UsageError("logits needs a prompt: -p TEXT, -f FILE, or --tokens 1,2,3");
  }
  return tokens.split(",").map((part) => {
    if (/^\s*\d{1,10}\s*$/.test(part)) return Number(part);
    throw new UsageError(`--tokens wants numbers like 1,2,3, not ${JSON.stringify(part)}`);
  });
}

function checkPrompt(prompt: string | number[], { model, file }: LoadedModel): void {
  const { nVocab, hasTokenizer } = model.info;
  if (typeof prompt === "string") {
    if (!hasTokenizer) {
      throw new Failure(`${file.path} has no tokenizer; give token numbers with --tokens 1,2,3`);
    }
    return;
  }
  const wrong = prompt.find((token) => token >= nVocab);
  if (wrong !== undefined) {
    throw new UsageError(
      `--tokens: ${wrong} is out of range: the model has tokens 0..${nVocab - 1}`,
    );
  }
}

/**
 * The likeliest of a row of logits.
 *
 * @param row The row.
 * @param n How many.
 */
export function likeliest(row: Float32Array, n: number): Likely[] {
  let max = -Infinity;
  for (const x of row) if (x > max) max = x;
  let sum = 0;
  for (const x of row) sum += Math.exp(x - max);
  const log = max + Math.log(sum);
  return Array.from(row.keys())
    .sort((a, b) => row[b]! - row[a]! || a - b)
    .slice(0, n)
    .map((id) => ({ id, logit: row[id]!, logprob: row[id]! - log }));
}

async function topOf(result: Logits, n: number, { model }: LoadedModel): Promise<Likely[]> {
  const top = likeliest(result.data.subarray(result.data.length - result.nVocab), n);
  if (!model.info.hasTokenizer) return top;
  return await Promise.all(
    top.map(async (one) => ({ ...one, token: await model.detokenize([one.id]) })),
  );
}

function describe(
  { tokens, nVocab, plan }: Logits,
  top: readonly Likely[],
  file: string | null,
  bytes: number,
  stream: { isTerminal(): boolean },
): string {
  const style = styles(showsColour(stream));
  const lines: [string, string][] = [
    ["plan", `${plan.spec.trim()}: ${formatRuns(plan.runs)}`],
    ["n_tokens", String(tokens.length)],
    ["n_vocab", String(nVocab)],
  ];
  if (file !== null) lines.push(["file", `${file} (${formatBytes(bytes)})`]);
  const rows = top.map(({ id, logit, logprob, token }) =>
    `${String(id).padStart(8)} ${logit.toFixed(4).padStart(10)} ${
      (100 * Math.exp(logprob)).toFixed(2).padStart(7)
    } %${token === undefined ? "" : `  ${JSON.stringify(token)}`}\n`
  );
  const head = rows.length === 0 ? "" : "\nnext token    logit  probability\n";
  return alignLines(lines, style) + head + rows.join("");
}

/** Refuses to write where Deno may not, or over an input: models, adapters and shards, which are GGUF files, and the prompt. */
async function checkOutput(flags: Flags, output: string): Promise<void> {
  const name = flags.name("output");
  const real = await Deno.realPath(output).catch(() => undefined);
  // The new file is written beside the old one until it is complete.
  const folder = (real ?? output).replace(/[^/\\]*$/, "") || ".";
  const { state } = await Deno.permissions.request({ name: "write", path: folder });
  if (state !== "granted") {
    throw new Failure(
      `${name} ${output}: Deno may not write there; run it with --allow-write, or --allow-write=${folder}`,
    );
  }
  if (real === undefined) return; // not there yet
  const prompt = flags.text("file");
  if (prompt !== undefined && prompt !== "-") {
    if (await Deno.realPath(prompt).catch(() => undefined) === real) {
      throw new UsageError(`${name} ${output}: it is the prompt's file`);
    }
  }
  const magic = new Uint8Array(4);
  try {
    using file = await Deno.open(real);
    await file.read(magic);
  } catch {
    return; // what cannot be read is reported when it is written
  }
  if (new TextDecoder().decode(magic) === "GGUF") {
    throw new UsageError(`${name} ${output}: it is a GGUF file, which logits does not overwrite`);
  }
}
