import type {
  ChatMessage,
  Completion,
  GenerateOptions,
  Generation,
  GenerationEnd,
  Piece,
} from "../../engine/mod.ts";
import { planToJson } from "../../plan/mod.ts";
import { flagFault, generateOptions, promptText, systemText } from "../flags/generate_flags.ts";
import { UsageError } from "../errors.ts";
import { gpuJson } from "../flags/gpu_flags.ts";
import type { Flags } from "../flags/parse_flags.ts";
import { planInputOrNone } from "../flags/plan_input.ts";
import { readPiped } from "../flags/read_input.ts";
import {
  bootLog,
  fittingPlan,
  type LoadedModel,
  openContext,
  openModel,
  type Session,
} from "../session.ts";
import { type Shell, showsColour, styles } from "../terminal/shell.ts";

const DEFAULT_PROMPT = "Once upon a time";
const DEFAULT_PREDICT = 128;

/**
 * The command `run`.
 *
 * @param flags The model, its plan, the prompt and sampling.
 * @param shell Where to write.
 */
export async function run(flags: Flags, shell: Shell): Promise<number> {
  const where = flags.name("repeatLayers");
  const spec = await planInputOrNone(where, flags.text("repeatLayers"));
  const options = await generateOptions(flags);
  const asked = await promptText(flags);
  const piped = asked === undefined ? await readPiped() : undefined;
  const given = asked ?? (piped?.text.replace(/\r?\n$/, "") || undefined);
  if (given === undefined && !flags.has("maxTokens")) options.maxTokens = DEFAULT_PREDICT;
  const prompt = given ?? DEFAULT_PROMPT;

  await using loaded = await openModel(
    flags,
    shell,
    (file) => fittingPlan(flags, where, spec, file),
  );
  const asChat = flags.on("chat") || flags.has("systemPrompt") || flags.has("systemPromptFile") ||
    flags.on("singleTurn");
  if (prompt === "" && !asChat && (await loaded.model.tokenize(prompt)).length === 0) {
    throw new UsageError(
      `${
        flags.name(flags.has("file") ? "file" : "prompt")
      }: the prompt is empty; there is nothing to go on from`,
    );
  }
  const session = await openContext(flags, loaded, loaded.checked);
  bootLog(loaded, session, shell);
  if (given === undefined) {
    const silent = piped?.silent
      ? " and nothing came through the pipe at once (-f - waits for it)"
      : "";
    shell.note(`no -p or -f is given${silent}, so this goes on from ${JSON.stringify(prompt)}`);
  }
  if (
    asChat && !loaded.model.info.hasChatTemplate && !flags.has("chatTemplate") &&
    !flags.has("chatTemplateFile")
  ) {
    shell.warn("the model has no chat template; ChatML is used");
  }
  if (!asChat && given !== undefined && await missesTemplate(loaded, prompt)) {
    shell.note("the model has a chat template, which a raw prompt bypasses; --chat uses it");
  }
  const generation = session.context.generate(
    asChat ? chatOf(await systemText(flags), prompt) : prompt,
    { ...options, signal: shell.signal },
  );
  try {
    if (flags.on("json")) {
      const { answer, json } = await toJson(generation, loaded, session);
      await shell.out(JSON.stringify(json) + "\n");
      if (answer.text === "") shell.note(noText(answer, answer.reasoning !== "", options));
      return 0;
    }
    let text = "";
    let reasoning = "";
    const end = await stream(generation, shell, (piece) => {
      text += piece.text;
      reasoning += piece.reasoning ?? "";
    });
    if (text === "") shell.note(noText(end, reasoning !== "", options));
    if (!shell.quiet) shell.err(`${speeds(end)}\n`);
    return 0;
  } catch (error) {
    throw flagFault(flags, error);
  }
}

/** Whether a raw prompt probably needs the chat template: the model has one, and the prompt has none of its tokens. */
async function missesTemplate({ model }: LoadedModel, prompt: string): Promise<boolean> {
  if (!model.info.hasChatTemplate) return false;
  const [special, plain] = await Promise.all(
    [true, false].map((parseSpecial) => model.tokenize(prompt, { parseSpecial })),
  );
  return special!.join() === plain!.join();
}

/**
 * Why a generation gave no text.
 *
 * @param end What is known at its end.
 * @param hasThought Whether it gave reasoning.
 * @param options What was asked for.
 */
export function noText(
  end: Pick<GenerationEnd, "finishReason" | "stoppingWord" | "nGenerated">,
  hasThought: boolean,
  options: Pick<GenerateOptions, "maxTokens"> = {},
): string {
  const why = options.maxTokens === 0
    ? "-n 0 asks for no tokens"
    : end.stoppingWord !== ""
    ? `the answer began with the stop string ${JSON.stringify(end.stoppingWord)}`
    : hasThought
    ? end.finishReason === "length"
      ? "reasoning used up the tokens; -n N allows more"
      : "the model ended after its reasoning"
    : end.finishReason !== "length"
    ? "the model ended at once"
    : end.nGenerated === 0
    ? "the prompt leaves no room in the context; -c N makes room"
    : "the generated tokens have no text";
  return `there is no text: ${why}`;
}

function chatOf(system: string | undefined, prompt: string): ChatMessage[] {
  const user = { role: "user", content: prompt };
  return system === undefined ? [user] : [{ role: "system", content: system }, user];
}

/**
 * Writes an answer to standard output as it comes, with a newline at its end. Thoughts of a reasoning model go to
 * standard error.
 *
 * @param generation The answer.
 * @param shell Where to write.
 * @param onPiece Called with each piece.
 * @returns What is known at the end.
 */
export async function stream(
  generation: Generation,
  shell: Shell,
  onPiece?: (piece: Piece) => void,
): Promise<GenerationEnd> {
  const style = styles(showsColour(Deno.stderr));
  let lastText = "";
  let thinks = false;
  let end: GenerationEnd | undefined;
  try {
    for await (const piece of generation) {
      onPiece?.(piece);
      if (piece.reasoning) {
        thinks = true;
        shell.err(style.dim(piece.reasoning));
      }
      if (piece.text !== "") {
        if (thinks) shell.err("\n");
        thinks = false;
        lastText = piece.text;
        await shell.out(piece.text);
      }
      end = piece.end ?? end;
    }
  } catch (error) {
    // The line is ended, so that what comes next has a line of its own.
    if (lastText !== "" && !lastText.endsWith("\n")) await shell.out("\n").catch(() => {});
    throw error;
  }
  if (thinks) shell.err("\n");
  if (!lastText.endsWith("\n")) await shell.out("\n");
  return end!;
}

/**
 * Speeds of a generation in one line.
 *
 * @param end What is known at its end.
 */
export function speeds(end: GenerationEnd): string {
  const { timings: t } = end;
  const tokens = (n: number) => n === 1 ? "1 token" : `${n} tokens`;
  // A single token is generated in no measurable time.
  const perSecond = (x: number) => Number.isFinite(x) && x > 0 ? `, ${x.toFixed(1)} tokens/s` : "";
  const cached = t.cachedTokens > 0 ? ` (${t.cachedTokens} more from the cache)` : "";
  const drafted = t.draftTokens === undefined
    ? ""
    : `, ${t.draftAccepted} of ${t.draftTokens} drafted tokens right`;
  const why = end.finishReason === "length" ? ", ended by its length" : "";
  return `prompt ${tokens(t.promptTokens)}${cached}${perSecond(t.promptPerSecond)}; ` +
    `generated ${tokens(t.predictedTokens)}${perSecond(t.predictedPerSecond)}${drafted}${why}`;
}

async function toJson(
  generation: Generation,
  { model, file }: LoadedModel,
  { context, cost, readyMs }: Session,
): Promise<{ answer: Completion; json: Record<string, unknown> }> {
  const begin = performance.now();
  const { answer, firstMs } = await collect(generation);
  const { info } = context;
  const { timings: t } = answer;
  const json = {
    text: answer.text,
    ...(answer.reasoning === "" ? {} : { reasoning: answer.reasoning }),
    tokens: answer.tokens,
    n_prompt: answer.nPrompt,
    n_generated: answer.nGenerated,
    finish_reason: answer.finishReason,
    stopping_word: answer.stoppingWord,
    seed: answer.seed,
    plan: planToJson(info.plan),
    plan_hash: info.planHash,
    model: {
      file: file.path,
      architecture: model.info.arch,
      name: model.info.name,
      desc: model.info.desc,
    },
    gpu: gpuJson(model.info),
    n_ctx: info.nCtx,
    n_threads: info.threads,
    kv_bytes: info.kvBytes,
    kv_bytes_base: cost.base.kvBytes,
    recurrent_bytes: info.recurrentBytes,
    recurrent_bytes_base: cost.base.recurrentBytes,
    compute_ratio: cost.computeRatio,
    model_bytes: info.modelBytes,
    timings: {
      load_ms: readyMs,
      first_token_ms: firstMs - begin,
      prompt_n: t.promptTokens,
      cache_n: t.cachedTokens,
      prompt_ms: t.promptMs,
      prompt_per_second: t.promptPerSecond,
      predicted_n: t.predictedTokens,
      predicted_ms: t.predictedMs,
      predicted_per_second: t.predictedPerSecond,
      ...(t.draftTokens === undefined
        ? {}
        : { draft_n: t.draftTokens, draft_n_accepted: t.draftAccepted }),
    },
  };
  return { answer, json };
}

/** The whole answer, and when its first piece arrived. */
async function collect(generation: Generation): Promise<{ answer: Completion; firstMs: number }> {
  const answer: Partial<Completion> & { text: string; reasoning: string; tokens: number[] } = {
    text: "",
    reasoning: "",
    tokens: [],
  };
  let firstMs = 0;
  for await (const piece of generation) {
    firstMs ||= performance.now();
    answer.text += piece.text;
    answer.reasoning += piece.reasoning ?? "";
    answer.tokens.push(...piece.tokens);
    if (piece.end) Object.assign(answer, piece.end);
  }
  return { answer: answer as Completion, firstMs };
}
