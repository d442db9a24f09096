import { quote } from "./_text.ts";
import { type LayerRun, MAX_LAYERS, type ParsePlanOptions } from "./types.ts";

/** Where the parts of a block or an entry are in a text. */
export interface Position {
  start: number;
  end: number;
  count: number;
  /** The text names the last layer, not the one after it. */
  inclusive?: boolean;
}

/** A plan's blocks, or its path as ranges, and where they are in its text. */
export interface Checked {
  kind: "spec" | "path";
  spec: string;
  entries: readonly LayerRun[];
  positions?: readonly Position[];
}

/** Refuses a size that no model can have. */
export function checkModel(nLayer: number, nextn: number): void {
  if (!Number.isInteger(nLayer) || nLayer < 1 || nLayer > MAX_LAYERS) {
    throw new RangeError(`A model has 1 to ${MAX_LAYERS} layers, not ${nLayer}`);
  }
  if (!Number.isInteger(nextn) || nextn < 0 || nLayer + nextn > MAX_LAYERS) {
    throw new RangeError(
      `A model of ${nLayer} layers has 0 to ${MAX_LAYERS - nLayer} next-token layers, not ${nextn}`,
    );
  }
}

/** Refuses what the model (or any model, if it is not known) cannot run. Allocates nothing, whatever the numbers. */
export function checkPlan(plan: Checked, options: ParsePlanOptions): void {
  const { nLayer } = options;
  const nextn = options.nextn ?? 0;
  if (nLayer !== undefined) checkModel(nLayer, nextn);
  const most = nLayer ?? MAX_LAYERS;
  const model = nLayer === undefined
    ? `no model has more than ${MAX_LAYERS} layers`
    : `the model has layers 0..${nLayer - 1}`;
  const isSpec = plan.kind === "spec";

  let total = isSpec ? nLayer ?? 0 : 0;
  for (const [i, { repeatStart, repeatEnd, repeatCount }] of plan.entries.entries()) {
    const position = plan.positions?.[i];
    const at = (part: "start" | "end" | "count") =>
      position === undefined ? "" : ` at position ${position[part]}`;
    const refuse = (why: string): never => {
      throw new RangeError(`Cannot use layer spec ${quote(plan.spec)}: ${why}`);
    };
    const layerOutOfRange = (il: number, part: "start" | "end"): never =>
      refuse(
        nLayer !== undefined && il < nLayer + nextn
          ? `layer ${il}${at(part)} is a next-token layer, which no plan runs; ${model}`
          : `layer ${il}${at(part)} is out of range: ${model}`,
      );

    if (!isSpec && i === 0 && repeatStart !== 0) {
      refuse(`a path must begin with layer 0, not ${repeatStart}${at("start")}`);
    }
    if (repeatStart >= most) layerOutOfRange(repeatStart, "start");
    if (repeatEnd <= repeatStart) {
      const inclusive = position?.inclusive ?? !isSpec;
      const written = inclusive
        ? `${repeatStart}..${repeatEnd - 1}`
        : `${repeatStart},${repeatEnd}`;
      const fault = repeatEnd === repeatStart && !inclusive ? "empty" : "reversed";
      const hint = repeatEnd === 0 ? '; "none" stands for the model\'s own layers' : "";
      refuse(`the ${isSpec ? "block" : "range"} ${written}${at("start")} is ${fault}${hint}`);
    }
    if (repeatEnd > most) {
      if (position?.inclusive ?? !isSpec) layerOutOfRange(repeatEnd - 1, "end");
      refuse(
        `the end ${repeatEnd}${
          at("end")
        } is out of range: ${model}, so a block ends at ${most} or before`,
      );
    }
    if (repeatCount < (isSpec ? 2 : 1)) {
      refuse(`the repeat count ${isSpec ? repeatCount - 1 : repeatCount}${at("count")} is below 1`);
    }
    total += (repeatEnd - repeatStart) * (isSpec ? repeatCount - 1 : repeatCount);
    if (total + nextn > MAX_LAYERS) {
      const sum = `${total} layers${nextn > 0 ? ` and ${nextn} next-token layers` : ""}`;
      refuse(`it makes ${sum}${at("count")}, and ${MAX_LAYERS} is the most`);
    }
  }
}
