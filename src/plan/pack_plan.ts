import { formatPlan } from "./format_plan.ts";
import { layersToRuns, runsToLayers } from "./layers_to_runs.ts";
import type { LayerRun, Plan } from "./types.ts";

/** How the words of a packed plan are to be read. */
export const PlanKind = {
  /** No words: the model's own layers. */
  NONE: 0,
  /** Each triple is a block, inserted `repeat_count - 1` more times after the last place of layer `repeat_end - 1`. */
  SPEC: 1,
  /** Each triple is a run; the runs one after another are the path. */
  PATH: 2,
} as const;

/** A plan as it crosses to C++. */
export interface PackedPlan {
  /** One of {@linkcode PlanKind}. */
  kind: 0 | 1 | 2;
  /** Triples of repeat_start, repeat_end, repeat_count (passes in all). */
  words: Uint32Array;
}

/**
 * Packs a plan into words for the C ABI.
 *
 * @param plan The plan.
 * @returns Its kind, and three words for each block (kind 1) or run (kind 2).
 *
 * @example
 * ```ts
 * import { packPlan, parsePlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const { kind, words } = packPlan(parsePlan("43,45;28,34"));
 * assertEquals(kind, 1);
 * assertEquals([...words], [43, 45, 2, 28, 34, 2]);
 * ```
 */
export function packPlan(plan: Plan): PackedPlan {
  switch (plan.kind) {
    case "none":
      return { kind: PlanKind.NONE, words: new Uint32Array(0) };
    case "spec":
      return { kind: PlanKind.SPEC, words: packRuns(plan.blocks) };
    case "path":
      return { kind: PlanKind.PATH, words: packRuns(layersToRuns(plan.layers)) };
  }
}

function packRuns(runs: readonly LayerRun[]): Uint32Array {
  const words = new Uint32Array(3 * runs.length);
  for (const [i, run] of runs.entries()) {
    for (const [k, value] of [run.repeatStart, run.repeatEnd, run.repeatCount].entries()) {
      if (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff) {
        throw new RangeError(`Cannot pack ${value}: not an unsigned 32-bit number`);
      }
      words[3 * i + k] = value;
    }
  }
  return words;
}

/**
 * Reads a packed plan back.
 *
 * @param packed The kind and the words.
 * @returns The plan, its `spec` as {@linkcode formatPlan} writes it.
 * @throws {TypeError} If the kind is unknown or the number of words does not fit it.
 * @throws {RangeError} If a path is empty or too long.
 *
 * @example
 * ```ts
 * import { packPlan, parsePlan, unpackPlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const plan = parsePlan("layers:0..3,2..5");
 * assertEquals(unpackPlan(packPlan(plan)), plan);
 * ```
 */
export function unpackPlan(packed: PackedPlan): Plan {
  const { kind, words } = packed;
  if (words.length % 3 !== 0) {
    throw new TypeError(`A packed plan has triples of words, not ${words.length} words`);
  }
  const runs: LayerRun[] = [];
  for (let i = 0; i < words.length; i += 3) {
    runs.push({ repeatStart: words[i]!, repeatEnd: words[i + 1]!, repeatCount: words[i + 2]! });
  }
  let plan: Plan;
  if (kind === PlanKind.NONE) {
    if (runs.length > 0) {
      throw new TypeError(`A packed plan of kind 0 has no words, not ${words.length}`);
    }
    plan = { kind: "none", spec: "" };
  } else if (kind === PlanKind.SPEC || kind === PlanKind.PATH) {
    if (runs.length === 0) {
      throw new TypeError(`A packed plan of kind ${kind} has at least one triple`);
    }
    plan = kind === PlanKind.SPEC
      ? { kind: "spec", spec: "", blocks: runs }
      : { kind: "path", spec: "", layers: runsToLayers(runs) };
  } else {
    throw new TypeError(`A packed plan is of kind 0, 1 or 2, not ${kind}`);
  }
  plan.spec = formatPlan(plan);
  return plan;
}
