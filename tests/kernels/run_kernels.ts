import { type OracleRun, runOracle } from "../oracle/run_oracle.ts";

/** Where `deno task build --kernels` puts the program. */
const PROGRAM = new URL("../../wasm/kernels/rys-kernels.js", import.meta.url);

/**
 * Runs the program that compares products of repacked weights with exact ones.
 *
 * @param args Its arguments, e.g. `["test", "1"]` or `["perf", "q4_K"]`.
 * @param onLine Receives each line as it comes.
 */
export function runKernels(
  args: string[],
  onLine: (line: string) => void = () => {},
): Promise<OracleRun> {
  return runOracle(args, onLine, new Map(), PROGRAM);
}

if (import.meta.main) {
  const { code } = await runKernels(Deno.args, (line) => console.log(line));
  Deno.exit(code);
}
