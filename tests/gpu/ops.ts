// llama.cpp's test-backend-ops: which cases there are, which to run, how they ended.

import type { GpuChoice } from "../../gpu/device.ts";
import { type BackendOpsRun, runBackendOps } from "./run_backend_ops.ts";

/** One case of test-backend-ops. */
export interface OpCase {
  /** Operation, such as `MUL_MAT`. */
  op: string;
  /** Its parameters as printed, such as `type_a=q4_0,...`. */
  vars: string;
}

/** How a case ended. */
export type OpResult = OpCase & { ok: boolean; line: string };

// deno-lint-ignore no-control-regex -- the program colours its words
const plain = (line: string) => line.replaceAll(/\x1b\[[0-9;]*m/g, "");

const LINE = /^\s*(?:\[[^\]]*\][^\n]*? )?([A-Za-z0-9_]+)\((.*)\): (.*)$/;

function parse(line: string): (OpCase & { end: string }) | undefined {
  const found = LINE.exec(plain(line));
  return found ? { op: found[1]!, vars: found[2]!, end: found[3]!.trim() } : undefined;
}

/** Where cases run. */
export interface OpsOptions {
  gpu?: GpuChoice;
  /** Ends a run that takes longer. */
  seconds?: number;
  /** Told of each case. */
  onResult?: (result: OpResult) => void;
}

/**
 * The cases that the GPU backend claims to support.
 *
 * @returns The cases, or why there is no adapter.
 * @throws {Error} If the program ends early.
 */
export async function supportedCases(options: OpsOptions = {}): Promise<OpCase[] | string> {
  const run = await runBackendOps(["support"], options);
  if (run.why) return run.why;
  if (run.aborted || run.code !== 0) throw new Error(`cannot list the cases: ${ended(run)}`);
  const byName = new Map<string, OpCase>(); // some are listed twice
  for (const line of run.lines) {
    const found = parse(line);
    if (found?.end !== "SUPPORTED") continue;
    byName.set(`${found.op}(${found.vars})`, { op: found.op, vars: found.vars });
  }
  const cases = [...byName.values()];
  if (cases.length === 0) throw new Error("test-backend-ops names no case that is supported");
  return cases;
}

/** Which operation on which types a case is of. */
export function groupOf(c: OpCase): string {
  const types = [...c.vars.matchAll(/(?:^|,)((?:[a-z]+_)?type(?:_[A-Za-z0-9]+)?=[A-Za-z0-9_]+)/g)];
  return `${c.op} ${types.map((m) => m[1]).join(" ")}`.trim();
}

/** A case's rank under a seed: FNV-1a, then mixed. */
function rank(c: OpCase, seed: number): number {
  let h = 0x811c9dc5 ^ seed;
  for (const char of `${c.op}(${c.vars})`) h = Math.imul(h ^ char.charCodeAt(0), 0x01000193);
  h = Math.imul(h ^ h >>> 16, 0x85ebca6b);
  return (h ^ h >>> 13) >>> 0;
}

/** How much a case computes, roughly: the product of the numbers in its parameters. */
function work(c: OpCase): number {
  const numbers = c.vars.matchAll(/(?<=[=\[,])\d+(?=[,\]]|$)/g);
  return [...numbers].reduce((product, m) => product * Math.max(1, Number(m[0])), 1);
}

/** Below this nothing takes long, not on a software adapter either. */
const LITTLE_WORK = 1 << 20;

/** Types whose tables a software adapter's compiler takes half a minute for, in each shader. */
const SLOW_TYPE = /\biq[123]\w+/;

/**
 * A part that has every operation and every type, chosen by seed: each operation on each type, but for types that are
 * slow to compile one operation each.
 *
 * @param cases All cases.
 * @param seed Another seed, another part.
 * @param each Cases of each operation and types.
 */
export function choosePart(cases: readonly OpCase[], seed: number, each = 1): OpCase[] {
  const groups = Map.groupBy(cases, groupOf);
  const slow = Map.groupBy(
    [...groups.keys()].filter((group) => SLOW_TYPE.test(group)),
    (group) => SLOW_TYPE.exec(group)![0],
  );
  for (const [i, names] of [...slow.values()].entries()) {
    const kept = names.toSorted()[(seed + i) % names.length];
    for (const name of names) if (name !== kept) groups.delete(name);
  }
  return [...groups.values()].flatMap((group) => {
    // The larger half of what is large is left to the whole run.
    const bySize = group.toSorted((a, b) => work(a) - work(b));
    const half = bySize.slice(0, Math.max(each, Math.ceil(bySize.length / 2)));
    const chosen = [...half, ...bySize.slice(half.length).filter((c) => work(c) <= LITTLE_WORK)];
    return chosen.toSorted((a, b) => rank(a, seed) - rank(b, seed)).slice(0, each);
  });
}

/**
 * Runs cases.
 *
 * @param cases The cases.
 * @returns How each ended, in the order of running.
 * @throws {Error} If the program ends early; names the last case.
 */
export async function runCases(
  cases: readonly OpCase[],
  options: OpsOptions = {},
): Promise<OpResult[]> {
  const results: OpResult[] = [];
  const wanted = new Set(cases.map((c) => `${c.op}(${c.vars})`));
  const vars = [...new Set(cases.map((c) => c.vars))];
  const ops = [...new Set(cases.map((c) => c.op))];
  const run = await runBackendOps(["test", "-o", ops.join(","), "-p", `=${vars.join("\n")}`], {
    ...options,
    onLine(line) {
      const found = parse(line);
      if (!found || !wanted.delete(`${found.op}(${found.vars})`)) return;
      if (found.end.startsWith("not")) return;
      const result = {
        op: found.op,
        vars: found.vars,
        ok: found.end === "OK",
        line: plain(line).trim(),
      };
      results.push(result);
      options.onResult?.(result);
    },
  });
  if (run.why) throw new Error(`no WebGPU adapter: ${run.why}`);
  if (run.aborted || run.code < 0) {
    throw new Error(
      `test-backend-ops ended early after ${results.at(-1)?.line ?? "no case"}: ${ended(run)}`,
    );
  }
  return results;
}

function ended(run: BackendOpsRun): string {
  return [run.aborted ?? `exit code ${run.code}`, ...run.lines.slice(-3).map(plain)].join("\n");
}
