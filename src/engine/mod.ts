/**
 * The engine: models, contexts with their own plans, generations.
 *
 * @module
 */

export { EngineError } from "./client.ts";
export { Context, type RequestOptions } from "./context.ts";
export type { ContextInfo } from "./context_info.ts";
export type { ContextModel, Logits } from "./context_model.ts";
export type { ContextOptions, KvType, SpeculativeOptions } from "./context_options.ts";
export {
  type ChatMessage,
  type Completion,
  type FinishReason,
  type GenerateOptions,
  Generation,
  type GenerationEnd,
  type Piece,
  type Prompt,
  type Timings,
  type TokenLogprob,
} from "./generate.ts";
export { loadModel, type LoadModelOptions, type LogLevel, Model } from "./model.ts";
export type { ModelGpu, ModelInfo } from "./model_info.ts";
export type { GpuChoice } from "../../gpu/device.ts";
export type { GpuCounts } from "../../gpu/executor.ts";
export type { ModelSource } from "./source.ts";
export type {
  EffectivePlan,
  LayerRun,
  NonePlan,
  PathPlan,
  Plan,
  PlanInput,
  SpecPlan,
} from "../plan/mod.ts";
