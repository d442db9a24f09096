/**
 * One run on a machine with a GPU, made to need nothing by hand: what the machine is and which Vulkan packages it has,
 * a part of llama.cpp's operation tests, GPU against CPU on the demo model and on a larger one, tokens per second. Each
 * step is a process of its own with a time limit, and the log is written as it goes.
 *
 * @module
 */

import { loadModel } from "@rys/edge";
import { parseArgs } from "@std/cli/parse-args";
import { writeWhole } from "../src/cli/write_whole.ts";
import { ROOT, someTokens } from "./_bench.ts";

const USAGE = "usage: deno run -A bench/gpu_remote.ts [options]";
const args = parseArgs(Deno.args, {
  boolean: ["quick", "help"],
  string: ["model", "out", "seconds", "step"],
  unknown: (arg) => {
    console.error(`error: unknown option ${arg}\n${USAGE}`);
    Deno.exit(2);
  },
});
if (args.help) {
  console.log(`${USAGE}
  --model FILE   a model of 0.2 to 1 billion parameters, measured besides the demo model
  --seconds N    limit of each step (150)
  --quick        as little as shows that it works, for a software adapter
  --out DIR      folder of the log (bench/results)`);
  Deno.exit(0);
}
const { model, quick } = args;
const seconds = Number(args.seconds ?? 150);
if (!(seconds > 0)) {
  console.error(`error: --seconds takes a number above 0, not "${args.seconds}"`);
  Deno.exit(2);
}
const DEMO = `${ROOT}/models/demo.gguf`;

/** Operations and types that stand for the rest: what a transformer's layer runs, and the usual quantisations. */
const OPS = ["RMS_NORM", "ROPE", "SOFT_MAX", "SET_ROWS", "GET_ROWS", "SWIGLU", "FLASH_ATTN_EXT"];
const TYPES = ["f16", "q4_0", "q8_0", "q4_K", "q6_K", "iq4_xs"];

/** Runs a part of test-backend-ops; fails if a case fails. */
async function ops(): Promise<boolean> {
  const { runCases, supportedCases } = await import("../tests/gpu/ops.ts");
  const all = await supportedCases();
  if (typeof all === "string") {
    console.log(`no WebGPU adapter: ${all}`);
    return false;
  }
  const numbers = (vars: string) => [...vars.matchAll(/\d{3,}/g)].map(([n]) => Number(n));
  const small = all.filter(({ vars }) => numbers(vars).every((n) => n <= (quick ? 256 : 2048)));
  const some = <T>(list: T[], n: number) =>
    list.filter((_, i) => i % Math.ceil(list.length / n) === 0);
  const cases = [
    ...(quick ? TYPES.slice(0, 2) : TYPES).flatMap((type) =>
      some(
        small.filter((c) => c.op === "MUL_MAT" && c.vars.includes(`type_a=${type},`)),
        quick ? 1 : 8,
      )
    ),
    ...OPS.flatMap((op) => some(small.filter((c) => c.op === op), quick ? 1 : 8)),
  ];
  const results = await runCases(cases, { onResult: ({ line }) => console.log(line) });
  const failed = results.filter(({ ok }) => !ok);
  console.log(`${results.length} cases, ${failed.length} failed`);
  return failed.length === 0 && results.length >= cases.length; // some cases come twice
}

/** Compares GPU and CPU on a model, and measures both. */
async function compare(path: string, n: number, nPrompt: number): Promise<boolean> {
  const texts: string[] = [];
  const prompt = "Once upon a time";
  for (
    const [name, gpu, gpuBridge] of [
      ["GPU, read at once", "required", undefined],
      ["GPU, read awaited", "required", { readback: "awaited" }],
      ["CPU", "off", undefined],
    ] as const
  ) {
    const start = performance.now();
    await using model = await loadModel(path, { gpu, gpuBridge });
    const loaded = performance.now() - start;
    const layers = model.info.gpu ? `${model.info.gpu.layers} layers on the GPU` : "on the CPU";
    console.log(`${name}: ${model.info.desc}, ${layers}, loaded in ${loaded.toFixed(0)} ms`);
    for (const tensor of model.info.gpu?.cpuTensors ?? []) {
      console.log(`  on the CPU: ${tensor.name}`);
    }
    for (const repeatLayers of quick ? ["none"] : ["none", middle(model.info.nLayer)]) {
      await using context = await model.createContext({ nCtx: 1024, nParallel: 1, repeatLayers });
      const options = { temperature: 0, ignoreEos: true, cachePrompt: false } as const;
      const tokens = someTokens(nPrompt, model.info.nVocab);
      await context.generate(tokens, { ...options, maxTokens: 2 }).completion(); // compiles shaders
      const { text } = await context.generate(prompt, { ...options, maxTokens: n }).completion();
      texts.push(`${repeatLayers}: ${text}`);
      const { timings } = await context.generate(tokens, { ...options, maxTokens: n }).completion();
      const perSecond = (count: number, ms: number) => (1000 * count / ms).toFixed(1);
      console.log(
        `  plan ${repeatLayers}: prompt ${
          perSecond(timings.promptTokens, timings.promptMs)
        } tokens/s, ` +
          `then ${perSecond(n - 1, timings.predictedMs)} tokens/s`,
      );
      console.log(`  ${JSON.stringify(text)}`);
    }
  }
  const distinct = new Set(texts);
  const same = distinct.size === (quick ? 1 : 2);
  console.log(same ? "greedy text: GPU and CPU write the same" : "greedy text: NOT the same");
  return same;
}

/** A plan that repeats a tenth of the layers, in the middle. */
function middle(nLayer: number): string {
  const n = Math.max(1, Math.round(nLayer / 10));
  const from = Math.round((nLayer - n) / 2);
  return `${from},${from + n}`;
}

/** What of Vulkan is installed, as far as packages and the loader tell. */
async function packages(): Promise<boolean> {
  const say = async (program: string, programArgs: string[], keep: RegExp) => {
    try {
      const { stdout } = await new Deno.Command(program, { args: programArgs, stderr: "null" })
        .output();
      for (const line of new TextDecoder().decode(stdout).split("\n")) {
        if (keep.test(line)) console.log(line.trim());
      }
    } catch {
      console.log(`${program}: not here`);
    }
  };
  const installed = "${db:Status-Abbrev} ${Package} ${Version}\n";
  await say(
    "dpkg-query",
    ["-W", `-f=${installed}`],
    /^ii .*(vulkan|mesa|nvidia|libegl|libgl[x1v])/i,
  );
  await say("ldconfig", ["-p"], /vulkan|EGL_nvidia|GLX_nvidia|nvidia-glvkspirv/);
  await say("nvidia-smi", ["-L"], /./);
  for (const name of ["NVIDIA_DRIVER_CAPABILITIES", "VK_DRIVER_FILES", "VK_ICD_FILENAMES"]) {
    console.log(`${name}=${Deno.env.get(name) ?? ""}`);
  }
  return true;
}

const STEPS: Record<string, () => Promise<boolean>> = {
  packages,
  ops,
  demo: () => compare(DEMO, quick ? 4 : 32, quick ? 8 : 256),
  model: () => compare(model!, quick ? 2 : 64, quick ? 8 : 512),
};

if (args.step !== undefined) {
  const step = STEPS[args.step];
  if (!step) {
    console.error(`error: no step "${args.step}"; there are ${Object.keys(STEPS).join(", ")}`);
    Deno.exit(2);
  }
  Deno.exit(await step() ? 0 : 1);
}

const out = args.out ?? `${ROOT}/bench/results`;
await Deno.mkdir(out, { recursive: true });
let report = "";
/** Adds to the report, which is whole on the disk after every step. */
async function write(text: string): Promise<void> {
  report += text;
  await writeWhole(`${out}/gpu_remote.md`, report);
  await Deno.stdout.write(new TextEncoder().encode(text));
}

/** Where a driver of NVIDIA's is there and its description for the loader is not, as in many containers. */
async function driverFile(): Promise<Record<string, string>> {
  const folders = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
  for (const folder of folders) {
    try {
      for await (const { name } of Deno.readDir(folder)) if (/nvidia/.test(name)) return {};
    } catch {
      // not there
    }
  }
  const library = "libEGL_nvidia.so.0";
  for (const folder of ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu"]) {
    if (!await Deno.stat(`${folder}/${library}`).then(() => true, () => false)) continue;
    const path = await Deno.makeTempFile({ suffix: ".json" });
    const ICD = { library_path: library, api_version: "1.3.0" };
    await Deno.writeTextFile(path, JSON.stringify({ file_format_version: "1.0.0", ICD }));
    await write(`\nNo driver file names ${library}: wrote one, VK_DRIVER_FILES=${path}\n`);
    return { VK_DRIVER_FILES: path };
  }
  return {};
}

await write(
  `# GPU run\n\n${new Date().toISOString()}${quick ? ", with as little as possible" : ""}\n`,
);
const env = {
  DENO_WEBGPU_BACKEND: "vulkan",
  NO_COLOR: "1",
  ...Deno.env.get("XDG_RUNTIME_DIR") ? {} : { XDG_RUNTIME_DIR: await Deno.makeTempDir() },
  ...await driverFile(),
};
const own = [`${ROOT}/bench/gpu_remote.ts`, ...quick ? ["--quick"] : []];
const steps: [string, string[]][] = [
  ["Machine", [`${ROOT}/mod.ts`, "doctor"]],
  ["Vulkan packages", [...own, "--step", "packages"]],
  ["Demo model", [...own, "--step", "demo"]],
  ["Operations", [...own, "--step", "ops"]],
  ...model
    ? [[model.split("/").at(-1)!, [...own, "--model", model, "--step", "model"]]] as [
      string,
      string[],
    ][]
    : [],
];
let failed = 0;
for (const [title, command] of steps) {
  await write(`\n## ${title}\n\n\`\`\`text\n`);
  const start = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--config", `${ROOT}/deno.json`, ...command],
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => child.kill("SIGKILL"), seconds * 1000);
  const copy = async (from: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    for await (const text of from.pipeThrough(new TextDecoderStream())) await write(text);
  };
  await Promise.all([copy(child.stdout), copy(child.stderr)]);
  const { code, signal } = await child.status;
  clearTimeout(timer);
  if (code !== 0) failed++;
  const took = ((performance.now() - start) / 1000).toFixed(1);
  const end = signal === "SIGKILL" ? "stopped at its limit" : code === 0 ? "done" : `code ${code}`;
  await write(`\`\`\`\n\n${end}, ${took} s\n`);
}
await write(`\n${failed ? `${failed} steps failed` : "all steps done"}\n`);
Deno.exit(failed ? 1 : 0);
