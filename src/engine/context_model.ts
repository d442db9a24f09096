import type { EffectivePlan } from "../plan/mod.ts";
import type { ContextOptions } from "./context_options.ts";
import type { ModelInfo } from "./model_info.ts";

/** Logits of every token of a prompt. */
export interface Logits {
  /** Tokens of the prompt. */
  tokens: number[];
  /** Vocabulary size. */
  nVocab: number;
  /** Row-major [tokens.length, nVocab]. */
  data: Float32Array<ArrayBuffer>;
  /** The plan that ran. */
  plan: EffectivePlan;
}

/** What a context needs from its model; a {@linkcode Model} is one. */
export interface ContextModel {
  /** What the model reports about itself. */
  readonly info: ModelInfo;
  /** See {@linkcode Model.tokenize}. */
  tokenize(
    text: string,
    options?: { addSpecial?: boolean; parseSpecial?: boolean },
  ): Promise<number[]>;
  /** See {@linkcode Model.detokenize}. */
  detokenize(tokens: readonly number[], options?: { special?: boolean }): Promise<string>;
  /** See {@linkcode Model.logits}. */
  logits(
    prompt: string | readonly number[],
    options?: ContextOptions & { signal?: AbortSignal },
  ): Promise<Logits>;
}
