import type { ContextInfo } from "./context_info.ts";

/**
 * What a caller should know about the size of a new context.
 *
 * @param asked The requested size; undefined for the default.
 * @param nCtxTrain The size that the model was trained for, 0 if it does not say.
 * @param info What was made.
 * @returns Sentences, or none.
 */
export function contextWarnings(
  asked: number | undefined,
  nCtxTrain: number,
  { nCtx, kvBytes, recurrentBytes }: Pick<ContextInfo, "nCtx" | "kvBytes" | "recurrentBytes">,
): string[] {
  if (asked === undefined || asked === nCtxTrain) return [];
  const warnings: string[] = [];
  if (nCtx !== asked) {
    warnings.push(
      `a context of ${asked} tokens becomes one of ${nCtx}: sizes are multiples of 256`,
    );
  }
  if (nCtxTrain > 0 && asked > nCtxTrain) {
    const mib = ((kvBytes + recurrentBytes) / 2 ** 20).toFixed(0);
    warnings.push(
      `a context of ${asked} tokens is larger than the ${nCtxTrain} that the model was trained for: ` +
        `its cache takes ${mib} MiB, and one request can use ${nCtxTrain} tokens of it`,
    );
  }
  return warnings;
}
