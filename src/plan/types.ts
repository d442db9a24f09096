/** Upstream's limit on layers in one context, next-token layers included. */
export const MAX_LAYERS = 512;

/** The GGUF key under which a model file may carry its own plan, as text. */
export const PLAN_KEY = "rys.layer_plan";

/** Layers `repeatStart..repeatEnd-1`, run `repeatCount` times in all. */
export interface LayerRun {
  /** First layer. */
  repeatStart: number;
  /** Layer after the last. */
  repeatEnd: number;
  /** Passes in all: 1 is once, 2 is once more. */
  repeatCount: number;
}

/** The model's own layers, in order. */
export interface NonePlan {
  /** Tells the three forms apart. */
  kind: "none";
  /** The text the plan was read from. */
  spec: string;
}

/** Blocks to insert, one after another, each after the last place where its last layer stands. */
export interface SpecPlan {
  /** Tells the three forms apart. */
  kind: "spec";
  /** The text the plan was read from. */
  spec: string;
  /** The blocks, in the order they are applied. */
  blocks: LayerRun[];
}

/** Layers in the very order they run. */
export interface PathPlan {
  /** Tells the three forms apart. */
  kind: "path";
  /** The text the plan was read from. */
  spec: string;
  /** Source layers, in order. */
  layers: number[];
}

/** A plan as written, before it meets a model. */
export type Plan = NonePlan | SpecPlan | PathPlan;

/** A plan on a model of known size. */
export interface EffectivePlan {
  /** Layers the model has, without next-token layers. */
  nLayer: number;
  /** Layers that run. */
  nLayerEff: number;
  /** The plan as the user wrote it. */
  spec: string;
  /** Source layers in the order they run. */
  layers: number[];
  /** `layers`, run-length coded; see {@linkcode layersToRuns}. */
  runs: LayerRun[];
  /** Places in `layers` whose layer does not follow the one before. */
  seams: number[];
  /** Warnings, one sentence each. */
  advisories: string[];
}
