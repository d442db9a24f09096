import type { EffectivePlan, LayerRun, MemoryCost, PlanCost } from "../../plan/mod.ts";
import type { Styles } from "./shell.ts";

/**
 * A number of bytes in a suitable unit.
 *
 * @param n How many.
 */
export function formatBytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(n >= 10 ? 1 : 2)} ${units[i]}`;
}

/**
 * Layers that run, as text: `0..25 | 26..33 x2 | 34..63`.
 *
 * @param runs The plan's runs.
 */
export function formatRuns(runs: readonly LayerRun[]): string {
  return runs.map(({ repeatStart, repeatEnd, repeatCount }) => {
    const layers = repeatEnd - repeatStart === 1
      ? `${repeatStart}`
      : `${repeatStart}..${repeatEnd - 1}`;
    return repeatCount === 1 ? layers : `${layers} x${repeatCount}`;
  }).join(" | ");
}

/**
 * Where a path jumps, as text: `34 (33 -> 26)`.
 *
 * @param plan The plan.
 * @param most The most seams to show; the rest are counted.
 */
export function formatSeams(plan: EffectivePlan, most = 8): string {
  if (plan.seams.length === 0) return "none";
  const shown = plan.seams.slice(0, most)
    .map((p) => `${p} (${plan.layers[p - 1]} -> ${plan.layers[p]})`).join(", ");
  const more = plan.seams.length - most;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/**
 * A plan drawn with one mark for each layer that runs: a dot if the layer runs only once, else the number of the
 * pass; a bar at each seam.
 *
 * @param plan The plan.
 * @param styles Colours.
 * @param width Marks in a line.
 * @returns Lines, each with the position of its first mark before it.
 */
export function layerBar(plan: EffectivePlan, styles: Styles, width = 64): string[] {
  const times = new Map<number, number>();
  for (const il of plan.layers) times.set(il, (times.get(il) ?? 0) + 1);
  const seams = new Set(plan.seams);
  const passes = new Map<number, number>();
  const lines: string[] = [];
  const digits = String(plan.nLayerEff - 1).length;
  for (let p = 0; p < plan.nLayerEff; p += width) {
    const marks = plan.layers.slice(p, p + width).map((il, k) => {
      const pass = (passes.get(il) ?? 0) + 1;
      passes.set(il, pass);
      const mark = times.get(il) === 1
        ? styles.dim("·")
        : styles.cyan(pass > 9 ? "+" : String(pass));
      return (seams.has(p + k) ? styles.yellow("|") : "") + mark;
    });
    lines.push(`${String(p).padStart(digits)} ${marks.join("")}`);
  }
  return lines;
}

/** A ratio as text: `x1.20`. */
export function formatRatio(ratio: number): string {
  return `x${ratio.toFixed(2)}`;
}

function withAndWithout(now: number, plain: number): string {
  if (now === plain) return formatBytes(now);
  const change = plain === 0
    ? ""
    : `, ${now > plain ? "+" : ""}${(100 * (now - plain) / plain).toFixed(1)} %`;
  return `${formatBytes(now)} (without the plan ${formatBytes(plain)}${change})`;
}

/** Where some layers attend to a window: how the cache is divided. */
function windowLines({ base, plan, nCtxSwa }: PlanCost): [name: string, value: string][] {
  if (plan.nWindowKvLayers === 0) return [];
  const full = ({ kvBytes, windowKvBytes }: MemoryCost) => kvBytes - windowKvBytes;
  return [
    [
      "  attention",
      `${withAndWithout(full(plan), full(base))} in ${
        plan.nKvLayers - plan.nWindowKvLayers
      } layers`,
    ],
    [
      "  windows",
      `${
        withAndWithout(plan.windowKvBytes, base.windowKvBytes)
      } in ${plan.nWindowKvLayers} layers of ${nCtxSwa} cells`,
    ],
  ];
}

/**
 * The lines that say what a plan does and costs, as `name = value`.
 *
 * @param plan The plan.
 * @param cost What it costs, if known.
 */
export function planLines(plan: EffectivePlan, cost?: PlanCost): [name: string, value: string][] {
  const lines: [string, string][] = [
    ["n_layer", String(plan.nLayer)],
    ["n_layer_eff", String(plan.nLayerEff)],
    ["plan", `${plan.spec.trim()}: ${formatRuns(plan.runs)}`],
    [plan.seams.length > 1 ? "seams" : "seam", formatSeams(plan)],
  ];
  if (cost !== undefined) {
    const { base, plan: own, nCtx } = cost;
    lines.push(
      ["kv cache", `${withAndWithout(own.kvBytes, base.kvBytes)} for ${nCtx} tokens`],
      ...windowLines(cost),
      ["recurrent", withAndWithout(own.recurrentBytes, base.recurrentBytes)],
      ["compute", `${formatRatio(cost.computeRatio)} per token`],
    );
  } else {
    lines.push(["compute", `about ${formatRatio(plan.nLayerEff / plan.nLayer)} per token`]);
  }
  return lines;
}

/**
 * Lines `name = value`, names aligned.
 *
 * @param lines Names and values.
 * @param styles Colours.
 */
export function alignLines(
  lines: readonly (readonly [name: string, value: string])[],
  styles: Styles,
): string {
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${styles.dim(`${name.padEnd(width)} =`)} ${value}\n`).join(
    "",
  );
}
