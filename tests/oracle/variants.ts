import { runOracle } from "./run_oracle.ts";

/** Outcome of the oracle program for one variant. */
export interface VariantResult {
  /** Checks that held. */
  passed: number;
  /** Lines of those that did not. */
  failures: string[];
  /** Lines of plans that were refused as documented. */
  refused: string[];
}

/** Names of all variants that the oracle program knows. */
export async function variants(): Promise<string[]> {
  const { lines, code } = await runOracle(["--list"]);
  if (code !== 0) throw new Error(`the oracle program failed with code ${code}`);
  return lines.filter((line) => line !== "");
}

/**
 * Checks variants, a few at once.
 *
 * @param names Variants.
 * @param options `args` gives the program's options for a variant; `atOnce` is how many run side by side.
 * @returns A promise for each variant; one that rejects means that the program died.
 */
export function checkVariants(
  names: readonly string[],
  options: { args?: (name: string) => string[]; atOnce?: number } = {},
): Map<string, Promise<VariantResult>> {
  const results = new Map<string, PromiseWithResolvers<VariantResult>>();
  for (const name of names) {
    const result = Promise.withResolvers<VariantResult>();
    result.promise.catch(() => {}); // reported where it is awaited
    results.set(name, result);
  }
  const queue = [...names];
  const work = async () => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const { resolve, reject } = results.get(name)!;
      try {
        resolve(await check(name, options.args?.(name) ?? []));
      } catch (error) {
        reject(error);
      }
    }
  };
  for (let i = 0; i < (options.atOnce ?? 2); i++) work();
  return new Map([...results].map(([name, { promise }]) => [name, promise]));
}

async function check(name: string, args: string[]): Promise<VariantResult> {
  const { lines, code } = await runOracle([...args, `=${name}`]);
  const last = /^(\d+) passed, (\d+) failed, (\d+) refused/.exec(lines.at(-1) ?? "");
  if (!last) throw new Error(`no result for ${name}: ${lines.slice(-3).join("; ")}`);
  const result = {
    passed: Number(last[1]),
    failures: lines.filter((line) => line.startsWith("FAIL")),
    refused: lines.filter((line) => line.startsWith("ref ")),
  };
  if (
    result.failures.length !== Number(last[2]) || (code === 0) !== (result.failures.length === 0)
  ) {
    throw new Error(`${name}: code ${code} does not fit "${last[0]}"`);
  }
  return result;
}
