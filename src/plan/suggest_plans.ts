import { edgeLayers } from "./_edge.ts";
import { expandPlan } from "./expand_plan.ts";
import { planAdvisories } from "./plan_advisories.ts";

/** A plan to try. */
export interface SuggestedPlan {
  /** The plan, in the grammar of `--repeat-layers`. */
  spec: string;
  /** What is known of it, or why it is a place to begin. */
  why: string;
  /** It was measured on this very model, and the results published. */
  isPublished: boolean;
}

/** What a suggestion looks at. */
export interface SuggestModel {
  /** Architecture, as the file names it. */
  architecture: string;
  /** Layers, without next-token layers. */
  nLayer: number;
  /** The model's name, its file's, or both. */
  name: string;
}

interface Known {
  architecture: string;
  nLayer: number;
  name: RegExp;
  plans: readonly (readonly [spec: string, why: string])[];
}

const MATH_EQ = (math: string, eq: string) =>
  `${math} on Math120 (0.8763 without), ${eq} on EQ140 (0.7394 without)`;
const SEARCH = (math: string, eq: string) =>
  `${math} and ${eq} on 16 questions of a search; expect about half on others`;

/** Results that David Noel Ng published. */
const KNOWN: readonly Known[] = [
  {
    architecture: "qwen35",
    nLayer: 64,
    name: /qwen.?3\.5.*27b/i,
    plans: [
      ["33,34", MATH_EQ("+0.0179", "+0.0945")],
      ["31,34", MATH_EQ("+0.0207", "+0.0972")],
      ["30,35", MATH_EQ("+0.0279", "+0.0979")],
      ["26,34", MATH_EQ("+0.0279", "+0.1009")],
      ["24,35", SEARCH("+0.1203", "+0.0900")],
      ["29,34", SEARCH("+0.0644", "+0.0975")],
      ["43,45;28,34", "found by a search over pairs of blocks"],
    ],
  },
  {
    architecture: "qwen2",
    nLayer: 80,
    name: /qwen-?2-72b/i,
    plans: [["45,52", "the block of the first published RYS model"]],
  },
];

/** Where the published blocks of a model of 64 layers lie, as parts of its depth. */
const USUAL: readonly (readonly [start: number, end: number])[] = [
  [33 / 64, 34 / 64],
  [31 / 64, 34 / 64],
  [30 / 64, 35 / 64],
  [26 / 64, 34 / 64],
];

/**
 * Plans to try on a model: those whose results were published for it, else blocks where those of other models lie.
 *
 * @param model The model.
 * @returns Plans, the cheapest first. Empty for a model with too few layers to have a middle.
 *
 * @example
 * ```ts
 * import { suggestPlans } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * const known = suggestPlans({ architecture: "qwen35", nLayer: 64, name: "Qwen3.5-27B" });
 * assertEquals([known[0]!.spec, known[0]!.isPublished], ["33,34", true]);
 * const other = suggestPlans({ architecture: "llama", nLayer: 32, name: "" });
 * assertEquals(other.map(({ spec }) => spec), ["16,17", "15,17", "15,18", "13,17"]);
 * ```
 */
export function suggestPlans({ architecture, nLayer, name }: SuggestModel): SuggestedPlan[] {
  const known = KNOWN.find((one) =>
    one.architecture === architecture && one.nLayer === nLayer && one.name.test(name)
  );
  if (known) return known.plans.map(([spec, why]) => ({ spec, why, isPublished: true }));
  const specs = new Set<string>();
  for (const [start, end] of USUAL) {
    const i = Math.floor(start * nLayer);
    const j = Math.max(i + 1, Math.round(end * nLayer));
    if (planAdvisories(expandPlan(`${i},${j}`, nLayer).layers, nLayer).length === 0) {
      specs.add(`${i},${j}`);
    }
  }
  const why =
    "in the middle, where the published blocks of other models lie; not measured on this one";
  return [...specs].map((spec) => ({ spec, why, isPublished: false }));
}

/**
 * The layers that a block may touch without an advisory: all but the first and the last ones.
 *
 * @param nLayer Layers of the model.
 * @returns The first of them and the one after the last.
 *
 * @example
 * ```ts
 * import { usualBand } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(usualBand(64), [8, 56]);
 * assertEquals(usualBand(12), [3, 9]);
 * ```
 */
export function usualBand(nLayer: number): [first: number, end: number] {
  const edge = edgeLayers(nLayer);
  return [Math.min(edge, nLayer), Math.max(edge, nLayer - edge)];
}
