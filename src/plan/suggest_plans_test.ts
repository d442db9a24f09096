import { assert, assertEquals } from "@std/assert";
import { expandPlan } from "./expand_plan.ts";
import { suggestPlans, usualBand } from "./suggest_plans.ts";

Deno.test("suggestPlans() gives the published blocks of a model, each of which it can run", () => {
  const model = { architecture: "qwen35", nLayer: 64, name: "Qwen3.5 27B Q4_K_M" };
  const plans = suggestPlans(model);
  assertEquals(plans.map(({ spec }) => spec), [
    "33,34",
    "31,34",
    "30,35",
    "26,34",
    "24,35",
    "29,34",
    "43,45;28,34",
  ]);
  assertEquals(plans.map(({ spec }) => expandPlan(spec, 64).nLayerEff), [
    65,
    67,
    69,
    72,
    75,
    69,
    72,
  ]);
  assert(plans.every(({ isPublished }) => isPublished));
  const large = { architecture: "qwen2", nLayer: 80, name: "Qwen2-72B-Instruct" };
  assertEquals(suggestPlans(large).map(({ spec }) => spec), ["45,52"]);
});

Deno.test("suggestPlans() takes no other model for one with published blocks", () => {
  for (
    const other of [
      { architecture: "qwen35", nLayer: 64, name: "Qwen3.5-9B" },
      { architecture: "qwen35", nLayer: 32, name: "Qwen3.5-27B" },
      { architecture: "llama", nLayer: 64, name: "Qwen3.5-27B" },
      { architecture: "qwen2", nLayer: 80, name: "Qwen2.5-72B" },
    ]
  ) assert(suggestPlans(other).every(({ isPublished }) => !isPublished), other.name);
});

Deno.test("suggestPlans() suggests nothing that it would warn of, for any number of layers", () => {
  for (let nLayer = 1; nLayer <= 200; nLayer++) {
    const plans = suggestPlans({ architecture: "llama", nLayer, name: "" });
    assertEquals(new Set(plans.map(({ spec }) => spec)).size, plans.length);
    for (const { spec } of plans) assertEquals(expandPlan(spec, nLayer).advisories, [], spec);
    if (nLayer >= 12) assert(plans.length > 0, `${nLayer} layers`);
    const [first, end] = usualBand(nLayer);
    assert(first <= end);
    for (let il = first; il < Math.min(end, nLayer); il++) {
      assertEquals(expandPlan(`${il},${il + 1}`, nLayer).advisories, []);
    }
  }
});
