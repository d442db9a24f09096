import { assertEquals, assertThrows } from "@std/assert";
import {
  CACHE_TYPES,
  type CacheType,
  type CostOptions,
  estimateCost,
  type LayerFacts,
  type ModelFacts,
} from "./cost.ts";
import { expandPlan } from "./expand_plan.ts";

function model(layers: Partial<LayerFacts>[], more: Partial<ModelFacts> = {}): ModelFacts {
  return {
    architecture: "test",
    nLayer: layers.length,
    nextn: 0,
    nCtxTrain: 1024,
    layers: layers.map((layer) => ({
      nEmbdKGqa: 64,
      nEmbdVGqa: 64,
      hasKv: true,
      isRecr: false,
      isSwa: false,
      ...layer,
    })),
    hasSwaCache: false,
    nSwa: 0,
    nEmbdR: 0,
    nEmbdS: 0,
    isMla: false,
    isCausal: true,
    hasRsRollback: false,
    inexact: [],
    ...more,
  };
}

const FOUR = [{}, {}, {}, {}];

Deno.test("estimateCost() counts each layer as often as it runs", () => {
  const { base, plan, computeRatio } = estimateCost(model(FOUR), expandPlan("1,3x2", 4));
  assertEquals(base.kvBytes, 4 * 1024 * 64 * 2 * 2);
  assertEquals([plan.kvBytes, plan.nLayerEff, plan.nKvLayers], [2 * base.kvBytes, 8, 8]);
  assertEquals(computeRatio, 2);
});

Deno.test("estimateCost() follows a path that skips layers", () => {
  const { base, plan } = estimateCost(model(FOUR), expandPlan("layers:0,3", 4));
  assertEquals(plan.kvBytes * 2, base.kvBytes);
});

Deno.test("estimateCost() pads the context as llama.cpp does", () => {
  const size = (options: Parameters<typeof estimateCost>[2]) => {
    const { nCtx, nCtxSeq, nCtxSwa } = estimateCost(
      model(FOUR, { hasSwaCache: true, nSwa: 100 }),
      undefined,
      options,
    );
    return [nCtx, nCtxSeq, nCtxSwa];
  };
  assertEquals(size({}), [1024, 1024, 768]);
  assertEquals(size({ nCtx: 0 }), [1024, 1024, 768]);
  assertEquals(size({ nCtx: 1 }), [256, 256, 256]);
  assertEquals(size({ nCtx: 1000, nParallel: 3 }), [1536, 512, 512]);
  assertEquals(size({ nCtx: 1000, nParallel: 3, kvUnified: true }), [1024, 1024, 1024]);
  assertEquals(size({ nCtx: 4096, nParallel: 3, kvUnified: true, nUbatch: 64 }), [4096, 4096, 512]);
  assertEquals(size({ nCtx: 4096, swaFull: true }), [4096, 4096, 4096]);
  // The batch is bounded by the context as asked for.
  assertEquals(size({ nCtx: 100, nUbatch: 512 }), [256, 256, 256]);
  assertEquals(size({ nCtx: 4096, nUbatch: 0, nBatch: 2048 }), [4096, 4096, 2304]);
});

Deno.test("estimateCost() knows the bytes of every cache type", () => {
  const bytes = (type: CacheType) =>
    estimateCost(model([{}]), undefined, { nCtx: 256, cacheTypeK: type, cacheTypeV: type }).base
      .kBytes;
  const perValue = Object.fromEntries(
    Object.keys(CACHE_TYPES).map((type) => [type, bytes(type as CacheType) * 8 / 256 / 64]),
  );
  assertEquals(perValue, {
    f32: 32,
    f16: 16,
    bf16: 16,
    q8_0: 8.5,
    q4_0: 4.5,
    q4_1: 5,
    q5_0: 5.5,
    q5_1: 6,
    iq4_nl: 4.5,
  });
});

Deno.test("estimateCost() pads values to the widest layer without flash attention", () => {
  const facts = model([{}, { nEmbdVGqa: 128 }, { hasKv: false, nEmbdVGqa: 256 }]);
  const vBytes = (flashAttention: "on" | "off" | "auto", spec = "none") =>
    estimateCost(facts, expandPlan(spec, 3), { flashAttention, nCtx: 256 }).plan.vBytes / 512;
  assertEquals([vBytes("on"), vBytes("auto"), vBytes("off")], [192, 192, 512]);
  // Skipped layers do not count.
  assertEquals(vBytes("off", "layers:0,1"), 256);
});

Deno.test("estimateCost() counts layers with both kinds of memory, with one, and with none", () => {
  const facts = model([{ isRecr: true }, { isRecr: true, hasKv: false }, { hasKv: false }, {}], {
    nEmbdR: 3,
    nEmbdS: 5,
  });
  const { base } = estimateCost(facts, undefined, { nCtx: 256, nParallel: 2 });
  assertEquals([base.nKvLayers, base.nRecurrentLayers, base.recurrentBytes], [2, 2, 2 * 2 * 8 * 4]);
});

Deno.test("estimateCost() keeps states for a rollback only where llama.cpp can", () => {
  const bytes = (hasRsRollback: boolean) =>
    estimateCost(model([{ isRecr: true }], { nEmbdR: 1, hasRsRollback }), undefined, { nRsSeq: 3 })
      .base.recurrentBytes;
  assertEquals([bytes(false), bytes(true)], [4, 16]);
});

Deno.test("estimateCost() weighs layers if their weights are known", () => {
  const facts = model([{ weightBytes: 1 }, { weightBytes: 3 }, { weightBytes: 9, activeBytes: 4 }]);
  assertEquals(estimateCost(facts, expandPlan("2,3", 3)).computeRatio, 12 / 8);
  assertEquals(
    estimateCost(model([{ weightBytes: 1 }, {}]), expandPlan("0,1", 2)).computeRatio,
    1.5,
  );
});

Deno.test("estimateCost() refuses contexts that cannot be made", () => {
  const facts = model(FOUR);
  assertThrows(
    () => estimateCost(facts, expandPlan("1,2", 5)),
    RangeError,
    "The plan is for 5 layers, but the model has 4",
  );
  assertThrows(() => estimateCost({ ...facts, nextn: 1 }), RangeError, "but facts of 4");
  assertThrows(
    () => estimateCost(facts, undefined, { nCtx: 1.5 }),
    RangeError,
    "nCtx must be a whole number",
  );
  assertThrows(
    () => estimateCost(facts, undefined, { nCtx: -1 }),
    RangeError,
    "nCtx must be a whole number",
  );
  assertThrows(
    () => estimateCost(facts, undefined, { cacheTypeK: "q4_K" as CacheType }),
    RangeError,
    "cannot have type q4_K",
  );
  assertThrows(
    () => estimateCost(model([{ nEmbdKGqa: 48 }]), undefined, { cacheTypeK: "q8_0" }),
    RangeError,
    "its blocks of 32 do not divide 48",
  );
});

Deno.test("estimateCost() refuses options that it does not know", () => {
  const refused = (options: object) => () => estimateCost(model(FOUR), undefined, options);
  assertThrows(refused({ typeK: "q8_0" }), TypeError, "There is no option typeK; the options are");
  assertThrows(refused({ threads: 2 }), TypeError, "There is no option threads");
  assertThrows(refused({ toString: 2 }), TypeError, "There is no option toString");
  assertThrows(refused({ flashAttention: true }), RangeError, "one of on, off, auto, not true");
  assertEquals(refused({ cacheTypeK: undefined, nCtx: undefined })().nCtx, 1024);
});

Deno.test("estimateCost() refuses cache types that llama.cpp makes no context with", () => {
  const layer = {
    nEmbdKGqa: 160,
    nEmbdVGqa: 160,
    nEmbdHeadK: 80,
    nEmbdHeadV: 80,
    hasKv: true,
    isRecr: false,
    isSwa: false,
  };
  const facts = (architecture: string, isMla = false): ModelFacts => ({
    architecture,
    nLayer: 2,
    nextn: 0,
    nCtxTrain: 512,
    layers: [layer, layer],
    hasSwaCache: false,
    nSwa: 0,
    nEmbdR: 0,
    nEmbdS: 0,
    isMla,
    isCausal: true,
    hasRsRollback: false,
    inexact: [],
  });
  const refuse = (model: ModelFacts, options: CostOptions, message: string) => {
    assertThrows(() => estimateCost(model, undefined, options), RangeError, message);
  };
  // Rows of two heads fill blocks, one head does not.
  refuse(facts("llama"), { cacheTypeK: "q8_0" }, "its blocks of 32 do not divide 80");
  estimateCost(facts("llama"), undefined, { cacheTypeK: "q8_0", flashAttention: "off" });
  refuse(
    facts("llama"),
    { cacheTypeV: "q8_0", flashAttention: "off" },
    "without flash attention, which is off",
  );
  refuse(
    facts("grok"),
    { cacheTypeV: "q8_0" },
    "without flash attention, which grok does not have",
  );
  refuse(facts("deepseek2", true), { cacheTypeK: "f32" }, "of one type, not f32 and f16");
  estimateCost(facts("deepseek2", true), undefined, { cacheTypeK: "f32", cacheTypeV: "f32" });
});
