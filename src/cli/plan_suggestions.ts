import { planRefusal } from "../gguf/mod.ts";
import { expandPlan, suggestPlans, usualBand } from "../plan/mod.ts";
import { asUsage } from "./errors.ts";
import type { Flags } from "./flags/parse_flags.ts";
import { costJson, costOf, type ModelFile } from "./model_file.ts";
import { formatBytes, formatRatio } from "./terminal/plan_text.ts";

/**
 * Plans to try on a model, with what each costs in the context that the command line asks for.
 *
 * @param model The model.
 * @param flags Read for the context and `--json`.
 * @returns The text for standard output.
 */
export function suggestions(model: ModelFile, flags: Flags): string {
  const { header } = model;
  const { nLayer, nextn, architecture, name = "" } = header;
  const suggested = suggestPlans({ architecture, nLayer, name: `${name} ${model.path}` });
  const rows = suggested.flatMap((one) => {
    const plan = expandPlan(one.spec, nLayer, { nextn });
    if (planRefusal(header, plan.layers) !== undefined) return [];
    return [{ ...one, plan, cost: asUsage("", () => costOf(model, plan, flags)) }];
  });
  const [first, end] = usualBand(nLayer);
  if (flags.on("json")) {
    return JSON.stringify({
      n_layer: nLayer,
      band: [first, end],
      suggestions: rows.map(({ spec, why, isPublished, plan, cost }) => ({
        spec,
        published: isPublished,
        why,
        n_layer_eff: plan.nLayerEff,
        cost: costJson(cost),
      })),
    }) + "\n";
  }
  const band = end > first
    ? `Layers ${first}..${
      end - 1
    } of ${nLayer} may be repeated without an advisory; blocks of the first and last ones usually make a model worse.\n`
    : `A model of ${nLayer} layers has no middle that blocks could lie in.\n`;
  if (rows.length === 0) {
    const why = suggested.length === 0 ? "" : ` Its architecture refuses the usual ones.`;
    return `${band}There is no plan to suggest.${why}\n`;
  }
  const width = Math.max(...rows.map(({ spec }) => spec.length));
  const lines = rows.map(({ spec, why, isPublished, plan, cost }) => {
    const grown = cost.plan.kvBytes + cost.plan.recurrentBytes - cost.base.kvBytes -
      cost.base.recurrentBytes;
    const costs = `${plan.nLayerEff} layers, ${formatRatio(cost.computeRatio)}, +${
      formatBytes(grown)
    }`;
    return `${spec.padEnd(width)}  ${costs}${isPublished ? `: ${why}` : ""}\n`;
  });
  const { isPublished, why } = rows[0]!;
  const source = isPublished
    ? "Published for this model by David Noel Ng; another quantisation may rank them otherwise.\n"
    : `These lie ${why}.\n`;
  return lines.join("") + "\n" + source + band;
}
