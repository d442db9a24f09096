/**
 * What a GGUF model file says about itself: its layers, its tensors, its plan, and what decides how much memory it takes.
 * Damaged and hostile files are refused before anything of their size is allocated.
 *
 * @example Memory of a model, with a plan and without
 * ```ts no-assert ignore
 * import { modelFacts, readModel } from "@rys/edge/gguf";
 * import { estimateCost, expandPlan } from "@rys/edge/plan";
 *
 * const { header } = await readModel("model.gguf");
 * const cost = estimateCost(modelFacts(header), expandPlan("26,34", header.nLayer), { nCtx: 8192 });
 * console.log(cost.base.kvBytes, cost.plan.kvBytes);
 * ```
 *
 * @module
 */

export * from "./gguf_error.ts";
export type { ByteSource, GgufSource } from "./byte_source.ts";
export * from "./ggml_types.ts";
export * from "./limits.ts";
export type { GgufEntry, GgufHeader, GgufTensor, GgufValue, GgufValueTypeName } from "./types.ts";
export { readHeader, type ReadHeaderOptions } from "./read_header.ts";
export * from "./list_shards.ts";
export * from "./read_model.ts";
export * from "./describe_model.ts";
export * from "./memory_fit.ts";
export { planRefusal, type PlanSupport, planSupport } from "./plan_support.ts";
export * from "./model_facts.ts";
