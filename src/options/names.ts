import { editDistance } from "./edit_distance.ts";
import type { Scope } from "./option.ts";
import { type NameOf, optionsOf } from "./table.ts";

/**
 * The names of an options object's options; its type guarantees that none is missing.
 *
 * @param scopes Whose options they are: those in the table are listed there.
 * @param more Every other name, with 1 as its value.
 */
export function namesOf<T extends object, S extends Scope>(
  scopes: readonly ([NameOf<S>] extends [keyof T] ? S : never)[],
  more: Record<Exclude<keyof T, NameOf<S>>, 1>,
): string[] {
  return [...scopes.flatMap(optionsOf).map(({ id }) => id), ...Object.keys(more)];
}

/** What other libraries call an option. */
const ALIASES: Record<string, string> = {
  contextsize: "nCtx",
  contextlength: "nCtx",
  ctxsize: "nCtx",
  maxnewtokens: "maxTokens",
  maxcompletiontokens: "maxTokens",
  npredict: "maxTokens",
  numpredict: "maxTokens",
  temp: "temperature",
  nprobs: "logprobs",
  toplogprobs: "logprobs",
  batchsize: "nBatch",
  parallel: "nParallel",
  slots: "nParallel",
  nthreads: "threads",
  numthreads: "threads",
  layers: "repeatLayers",
  plan: "repeatLayers",
  idslot: "slot",
  verbose: "verbosity",
  loglevel: "verbosity",
};

/**
 * Refuses an option that does not exist, which would otherwise be ignored silently.
 *
 * @param of Whose options they are.
 * @param options The options.
 * @param known The names of those that exist.
 * @throws {TypeError} If there is another one.
 */
export function knownNames(of: string, options: object, known: readonly string[]): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`The options of ${of} must be an object`);
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    throw new TypeError(
      `${of} has no option ${JSON.stringify(name)}` +
        (near === undefined ? `; there are ${known.join(", ")}` : `; did you mean "${near}"?`),
    );
  }
}

/** The known name most similar to another, if one is similar at all. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  const alias = ALIASES[plain(name)];
  if (alias !== undefined && known.includes(alias)) return alias;
  let best: string | undefined;
  let least = Math.max(1, plain(name).length * 0.4);
  for (const one of known) {
    const d = editDistance(plain(name), plain(one));
    if (d < least) [best, least] = [one, d];
  }
  return best;
}
