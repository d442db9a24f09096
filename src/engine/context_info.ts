import { type EffectivePlan, planHashHex } from "../plan/mod.ts";
import { EngineError } from "./client.ts";

/** What a context holds, as allocated. */
export interface ContextInfo {
  /** The plan that runs, read back from the engine. */
  plan: EffectivePlan;
  /** Hash of the plan, 16 hex digits; a saved state carries it. */
  planHash: string;
  /** Context size in tokens. */
  nCtx: number;
  /** Context size of one request, in tokens. */
  nCtxSeq: number;
  /** Tokens handed to the model at once. */
  nBatch: number;
  /** Tokens computed at once. */
  nUbatch: number;
  /** Requests that run at once. */
  nParallel: number;
  /** Threads that compute. */
  threads: number;
  /** Bytes of attention cache. */
  kvBytes: number;
  /** Bytes of recurrent state. */
  recurrentBytes: number;
  /** Bytes of scratch buffers. */
  computeBytes: number;
  /** Bytes of weights that the context reads: the model's own, whatever the plan. */
  modelBytes: number;
  /** What its creator should know, e.g. that the requested size was rounded up. */
  warnings: string[];
}

/** {@linkcode ContextInfo} in the engine's own form. */
export interface RawContext {
  n_ctx: number;
  n_ctx_seq: number;
  n_batch: number;
  n_ubatch: number;
  n_seq_max: number;
  n_threads: number;
  layers: number[];
  plan_hash: string;
  kv_bytes: number;
  recurrent_bytes: number;
  compute_bytes: number;
  model_bytes: number;
}

/** What the engine reports about a context, with its plan. */
export function contextInfo(raw: RawContext, plan: EffectivePlan): ContextInfo {
  // The two halves expand independently; running a plan other than the one shown would be worse than stopping.
  if (raw.layers.join() !== plan.layers.join() || raw.plan_hash !== planHashHex(plan.layers)) {
    throw new EngineError(
      `The engine runs layers ${raw.layers.join()}, the plan "${plan.spec}" says ${plan.layers.join()}`,
    );
  }
  return {
    plan,
    planHash: raw.plan_hash,
    nCtx: raw.n_ctx,
    nCtxSeq: raw.n_ctx_seq,
    nBatch: raw.n_batch,
    nUbatch: raw.n_ubatch,
    nParallel: raw.n_seq_max,
    threads: raw.n_threads,
    kvBytes: raw.kv_bytes,
    recurrentBytes: raw.recurrent_bytes,
    computeBytes: raw.compute_bytes,
    modelBytes: raw.model_bytes,
    warnings: [],
  };
}
