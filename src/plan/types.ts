/** Upstream's limit on layers in one context, next-token layers included. */
export const MAX_LAYERS = 512;

/** The GGUF key under which a model file may carry its own plan, as text. */
export const PLAN_KEY = "rys.layer_plan";

/** Layers `repeatStart..repeatEnd-1`, run `repeatCount` times in all. */
export interface LayerRun {
  /** First layer. */
  readonly repeatStart: number;
  /** Layer after the last. */
  readonly repeatEnd: number;
  /** Passes in all: 1 is once, 2 is once more. */
  readonly repeatCount: number;
}

/** The model's own layers, in order. */
export interface NonePlan {
  /** Tells the three forms apart. */
  readonly kind: "none";
  /** The text the plan was read from. */
  readonly spec: string;
}

/** Blocks to insert, one after another, each after the last place where its last layer stands. */
export interface SpecPlan {
  /** Tells the three forms apart. */
  readonly kind: "spec";
  /** The text the plan was read from. */
  readonly spec: string;
  /** The blocks, in the order they are applied. */
  readonly blocks: readonly LayerRun[];
}

/** Layers in the very order they run. */
export interface PathPlan {
  /** Tells the three forms apart. */
  readonly kind: "path";
  /** The text the plan was read from. */
  readonly spec: string;
  /** Source layers, in order. */
  readonly layers: readonly number[];
}

/** A plan as written, before it meets a model. */
export type Plan = NonePlan | SpecPlan | PathPlan;

/** A plan on a model of known size. */
export interface EffectivePlan {
  /** Layers the model has, without next-token layers. */
  readonly nLayer: number;
  /** Layers that run. */
  readonly nLayerEff: number;
  /** The plan as the user wrote it. */
  readonly spec: string;
  /** Source layers in the order they run. */
  readonly layers: readonly number[];
  /** `layers`, run-length coded; see {@linkcode layersToRuns}. */
  readonly runs: readonly LayerRun[];
  /** Places in `layers` whose layer does not follow the one before. */
  readonly seams: readonly number[];
  /** Warnings, one sentence each. */
  readonly advisories: readonly string[];
}

/**
 * What a plan may be given as: text, a list of layers or of pairs, a plan that was read or resolved before, or an object
 * in one of the forms of {@linkcode readPlan}.
 */
export type PlanInput =
  | string
  | readonly number[]
  | readonly (readonly number[])[]
  | Plan
  | EffectivePlan
  | Readonly<Record<string, unknown>>;

/** What a plan has to know of its model. */
export interface PlanModel {
  /** Layers the model has, without next-token layers. */
  nLayer: number;
  /** Next-token (MTP) layers that come after those, which no plan touches. Default 0. */
  nextn?: number | undefined;
  /** The plan that the model's file carries ({@linkcode PLAN_KEY}), if any. */
  layerPlan?: string | undefined;
}

/** Options for {@linkcode parsePlan} and the other readers. */
export interface ParsePlanOptions {
  /** Layers the model has; without it, only what no model could run is refused. */
  nLayer?: number | undefined;
  /** Next-token (MTP) layers that come after those. */
  nextn?: number | undefined;
}
