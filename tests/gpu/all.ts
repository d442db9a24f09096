/**
 * Everything that is to be known of the GPU backend on this machine's adapter: every case of test-backend-ops that it
 * claims, and every shader variant's pipeline. Hours on a software adapter; what is done is kept, and a run that was
 * stopped goes on.
 *
 * ```text
 * deno task test:gpu [--fresh] [--report] [OPERATION...]
 * ```
 *
 * `--report` runs nothing and reports what is kept.
 *
 * @module
 */

import { parseArgs } from "@std/cli/parse-args";
import { chooseGpu, type GpuInfo } from "../../gpu/device.ts";
import { inRepo } from "../engine/_engine.ts";
import { KNOWN_FAILURES } from "./known.ts";
import { groupOf, type OpCase, type OpResult, runCases, supportedCases } from "./ops.ts";
import { checkAllPipelines } from "./shaders.ts";

interface Part {
  seconds: number;
  results: OpResult[];
  /** Why the program ended before all cases had run. */
  aborted?: string;
}

const args = parseArgs(Deno.args, { boolean: ["fresh", "report"] });
const only = args._.map(String);

const gpu = await chooseGpu({ mode: "required" }, navigator.gpu);
if ("why" in gpu) {
  console.error(`skipped: no WebGPU adapter (${gpu.why})`);
  Deno.exit(1);
}
gpu.device.destroy();
const { info } = gpu;

const build = JSON.parse(await Deno.readTextFile(inRepo("wasm/backend-ops/build.json")));
const slug = info.description.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "");
const dir = inRepo(`.cache/gpu-ops-${build.id}-${slug}`);
if (args.fresh) await Deno.remove(dir, { recursive: true }).catch(() => {});
await Deno.mkdir(dir, { recursive: true });

const cases = await supportedCases();
if (typeof cases === "string") throw new Error(cases);
const byGroup = Map.groupBy(
  cases.filter((c) => only.length === 0 || only.includes(c.op)),
  groupOf,
);
console.log(`${info.description}: ${cases.length} cases in ${byGroup.size} groups`);

const parts = new Map<string, Part>();
for (const [group, members] of byGroup) {
  const file = `${dir}/${group.replaceAll(/[^A-Za-z0-9_=]+/g, "_")}.json`;
  const kept = await readPart(file);
  if (!kept && args.report) continue;
  const part = kept ?? await runPart(members);
  await Deno.writeTextFile(`${file}.partial`, JSON.stringify(part));
  await Deno.rename(`${file}.partial`, file);
  parts.set(group, part);
  const bad = part.results.filter((r) => !r.ok).length;
  console.log(
    `${group}: ${
      part.results.length - bad
    } of ${part.results.length} right (${members.length} claimed), ${part.seconds.toFixed(0)} s${
      part.aborted ? `; ended early: ${part.aborted}` : ""
    }`,
  );
}

const known = (c: OpCase) => KNOWN_FAILURES.find((k) => k.op === c.op && k.vars.test(c.vars));
const all = [...parts.values()].flatMap((part) => part.results);
const wrong = all.filter((r) => !r.ok && !known(r));
const mended = all.filter((r) => r.ok && known(r));
const aborted = [...parts].filter(([, part]) => part.aborted);

const shaders = only.length > 0 || args.report
  ? undefined
  : await checkAllPipelines((line) => console.log(line));
const refused = (shaders?.failures ?? []).map((text) => text.replaceAll(/\s+/g, " "));

const text = report(info);
console.log(text);
if (only.length === 0) {
  const path = inRepo(`bench/results/gpu-ops-${slug}.md`);
  await Deno.writeTextFile(path, text);
  console.log(`written to ${path}`);
}
Deno.exit(wrong.length + mended.length + aborted.length + refused.length > 0 ? 1 : 0);

async function readPart(file: string): Promise<Part | undefined> {
  try {
    const part: Part = JSON.parse(await Deno.readTextFile(file));
    return part.aborted ? undefined : part;
  } catch {
    return undefined;
  }
}

async function runPart(members: readonly OpCase[]): Promise<Part> {
  const start = performance.now();
  const results: OpResult[] = [];
  const part: Part = { seconds: 0, results };
  try {
    await runCases(members, { onResult: (result) => results.push(result), seconds: 3600 });
  } catch (error) {
    part.aborted = (error as Error).message.split("\n", 1)[0]!;
  }
  part.seconds = (performance.now() - start) / 1000;
  return part;
}

function report(gpu: GpuInfo): string {
  const lines = [
    `# test-backend-ops in the WASM, GPU against CPU: ${gpu.description}`,
    "",
    `llama.cpp ${build.upstream}, Deno ${Deno.version.deno}, ${Deno.build.os} ${Deno.build.arch}, ` +
    `features ${
      gpu.features.join(", ")
    }. Command: \`deno task test:gpu\`. Seconds as on that machine.`,
    "",
    `${cases.length} cases are claimed, ${all.length} were compared: ${
      all.filter((r) => r.ok).length
    } right, ${wrong.length} wrong, ` +
    `${all.filter((r) => !r.ok).length - wrong.length} wrong as known.`,
    "",
    "*claimed* is what the backend says it supports; what the CPU reference lacks cannot be compared.",
    "",
    "| operation and types | claimed | compared | right | seconds |",
    "| --- | --- | --- | --- | --- |",
  ];
  for (const [group, { results, seconds, aborted }] of parts) {
    const right = results.filter((r) => r.ok).length;
    lines.push(
      `| ${group} | ${byGroup.get(group)!.length} | ${results.length} | ${right} | ${
        seconds.toFixed(0)
      }${aborted ? ` (ended early)` : ""} |`,
    );
  }
  const list = (title: string, of: string[]) => {
    if (of.length > 0) lines.push("", `## ${title}`, "", ...of.map((line) => `- \`${line}\``));
  };
  const left = [...byGroup.keys()].filter((group) => !parts.has(group));
  list("Not run yet", left.map((group) => `${group}: ${byGroup.get(group)!.length} claimed`));
  list("Wrong", wrong.map((r) => r.line));
  list("Wrong, as known", all.filter((r) => !r.ok && known(r)).map((r) => r.line));
  list("Right, though known to be wrong", mended.map((r) => r.line));
  list("Ended early", aborted.map(([group, part]) => `${group}: ${part.aborted}`));
  if (shaders) {
    lines.push(
      "",
      "## Shader variants",
      "",
      `${shaders.compiled} pipelines made, ${shaders.skipped} ask for more than this adapter has, ` +
        `${refused.length} failed.`,
    );
  }
  list("Shader variants that failed", refused);
  return lines.join("\n") + "\n";
}
