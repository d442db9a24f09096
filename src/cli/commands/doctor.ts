import { compileWasm } from "../../engine/dist.ts";
import { environment, mayLook, seenVariable } from "../environment.ts";
import { filePath } from "../file_path.ts";
import { folderSize } from "../folder_size.ts";
import { prepareDriverEnv } from "../../../gpu/driver_env.ts";
import { lookAtGpu } from "./gpu_check.ts";
import { diagnose, lookAtDrivers, realFiles } from "./gpu_files.ts";
import { driverFindings, gpuFindings, gpuReport } from "./gpu_text.ts";
import type { Flags } from "../flags/parse_flags.ts";
import type { Finding } from "./finding.ts";
import { formatBytes } from "../terminal/plan_text.ts";
import { type Shell, showsColour, styles } from "../terminal/shell.ts";
import { BUILD_COMMAND, DIST, readBuild, VERSION } from "../version.ts";

const HEADER = [0, 97, 115, 109, 1, 0, 0, 0];

/** The smallest modules that use one feature each. */
const PROBES: readonly { name: string; bytes: readonly number[] }[] = [
  { name: "memory64", bytes: [5, 3, 1, 4, 1] },
  { name: "threads", bytes: [5, 4, 1, 3, 1, 1] },
  {
    name: "SIMD",
    bytes: [1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
  },
  {
    name: "relaxed SIMD",
    bytes: [
      ...[1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15],
      ...[65, 2, 253, 15, 253, 128, 2, 11],
    ],
  },
  {
    name: "exceptions",
    bytes: [1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 8, 1, 6, 0, 6, 64, 25, 11, 11],
  },
];

/** Which features of WebAssembly this runtime has. */
export function wasmFeatures(): Record<string, boolean> {
  const features = Object.fromEntries(
    PROBES.map(({ name, bytes }) => [
      name,
      WebAssembly.validate(new Uint8Array([...HEADER, ...bytes])),
    ]),
  );
  features.JSPI = "Suspending" in WebAssembly && "promising" in WebAssembly;
  return features;
}

/** Multiplies sixteen times -128 with 255 taken as unsigned bytes, if the processor can; returns a sum of four. */
const DOT = [
  ...[1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 100, 0, 0], // () -> i32, exported as "d"
  ...[10, 23, 1, 21, 0, 65, 128, 127, 253, 15, 65, 127, 253, 15, 65, 0, 253, 17],
  ...[253, 147, 2, 253, 27, 0, 11],
];

/**
 * Which of the kernels for the CPU fit this processor, as the engine finds out when it starts.
 *
 * @returns The dot product of bytes: `"exact"` in one instruction with unsigned bytes, `"signed"` in one with signed ones,
 * `"emulated"` in several, or `"none"` without relaxed SIMD.
 */
export function dotProduct(): "exact" | "signed" | "emulated" | "none" {
  try {
    const module = new WebAssembly.Module(new Uint8Array([...HEADER, ...DOT]));
    const sum = (new WebAssembly.Instance(module).exports.d as () => number)();
    return sum === 4 * -128 * 255 ? "exact" : sum === 4 * 128 ? "signed" : "emulated";
  } catch {
    return "none";
  }
}

const KERNELS = {
  exact: "8-bit dot products in one instruction (VNNI)",
  signed: "8-bit dot products in one instruction (signed)",
  emulated: "16-bit sums: the processor has no dot product of bytes, or V8 does not use it",
  none: "none: no relaxed SIMD",
} as const;

/**
 * Folder in which downloads are kept.
 *
 * @param env Looks up an environment variable.
 * @returns The folder, or why there is none.
 */
export function cacheFolder(
  env: (name: string) => string | undefined = environment,
): { path: string } | { path: undefined; why: string } {
  const isWindows = Deno.build.os === "windows";
  const [own, home] = isWindows
    ? ["LOCALAPPDATA", "USERPROFILE"] as const
    : ["XDG_CACHE_HOME", "HOME"] as const;
  const sub = isWindows ? "" : Deno.build.os === "darwin" ? "/Library/Caches" : "/.cache";
  const homePath = env(home);
  const base = env(own) ?? (homePath === undefined ? undefined : homePath + sub);
  if (base === undefined) {
    const why = env === environment && !mayLook(home)
      ? "unknown: Deno may not look (--allow-env)"
      : `none: ${home} and ${own} are not set`;
    return { path: undefined, why };
  }
  return { path: base + (isWindows ? "\\rys-edge" : "/rys-edge") };
}

/**
 * The command `doctor`.
 *
 * @param flags `--json`, or nothing.
 * @param shell Where to write.
 */
export async function doctor(flags: Flags, shell: Shell): Promise<number> {
  const features = wasmFeatures();
  const build = await readBuild();
  const drivers = Deno.build.os === "linux" ? lookAtDrivers(realFiles(), seenVariable) : null;
  prepareDriverEnv(); // as the engine does, after a look at what the user has set
  const gpu = await lookAtGpu(navigator.gpu);
  const problems = drivers === null ? [] : diagnose(drivers, gpu.state);
  const memory = systemMemory();
  const cores = navigator.hardwareConcurrency;
  const kernels = dotProduct();
  const cache = cacheFolder();
  const wasm = await lookAtWasm(build);
  const findings: Finding[] = [
    { name: "rys-edge", value: VERSION },
    { name: "Deno", value: `${Deno.version.deno} (V8 ${Deno.version.v8}, ${Deno.build.target})` },
    wasm.finding,
    ...Object.entries(features).map(([name, ok]): Finding => ({
      name: `WASM ${name}`,
      value: ok ? "yes" : "no",
      ok,
      needed: true,
      fix: "update Deno: deno upgrade",
    })),
    { name: "CPU cores", value: String(cores) },
    { name: "CPU kernels", value: KERNELS[kernels] },
    {
      name: "memory",
      value: memory === null
        ? "unknown: Deno may not look (--allow-sys)"
        : `${formatBytes(memory.available)} available of ${formatBytes(memory.total)}`,
    },
    ...gpuFindings(gpu),
    ...(drivers === null ? [] : driverFindings(drivers)),
    {
      name: "cache",
      value: cache.path === undefined
        ? cache.why
        : `${cache.path} (${await describeFolder(cache.path)})`,
    },
  ];
  const missing = findings.filter((one) => one.needed && one.ok === false);
  if (flags.on("json")) {
    const report = {
      ok: missing.length === 0,
      version: VERSION,
      deno: Deno.version.deno,
      v8: Deno.version.v8,
      target: Deno.build.target,
      wasm: { present: wasm.bytes > 0, valid: wasm.valid, bytes: wasm.bytes, build: build ?? null },
      features,
      cores,
      kernels,
      memory,
      gpu: gpuReport(gpu, drivers, problems),
      cache: cache.path ?? null,
      missing: missing.map(({ name, value, fix }) => ({ name, value, fix })),
    };
    await shell.out(JSON.stringify(report) + "\n");
  } else {
    const style = styles(showsColour(Deno.stdout));
    const width = Math.max(...findings.map((one) => one.name.length));
    const lines = findings.map(({ name, value, ok }) => {
      const mark = ok === undefined ? " " : ok ? style.green("+") : style.red("-");
      return `${mark} ${name.padEnd(width)}  ${value}\n`;
    });
    const fixes = new Set(missing.map(({ fix }) => fix ?? ""));
    const verdict = missing.length === 0
      ? "everything needed is here\n"
      : `missing: ${missing.map((one) => one.name).join(", ")}\n` +
        [...fixes].map((fix) => `what helps: ${fix}\n`).join("");
    const gpuProblems = problems.map(({ what, fix }) => `- ${what}\n  what helps: ${fix}\n`);
    const gpuText = gpuProblems.length === 0 ? "" : `\nfor a GPU:\n${gpuProblems.join("")}`;
    await shell.out(lines.join("") + "\n" + verdict + gpuText);
  }
  return missing.length === 0 ? 0 : 1;
}

function systemMemory(): { total: number; available: number } | null {
  if (Deno.permissions.querySync({ name: "sys", kind: "systemMemoryInfo" }).state !== "granted") {
    return null;
  }
  const { total, available } = Deno.systemMemoryInfo();
  return { total, available };
}

async function lookAtWasm(
  build: { id: string; [field: string]: unknown } | undefined,
): Promise<{ finding: Finding; bytes: number; valid: boolean }> {
  const finding: Finding = { name: "WASM", value: "", ok: false, needed: true, fix: BUILD_COMMAND };
  const bytes = typeof build?.wasm_bytes === "number" ? build.wasm_bytes : 0;
  let valid = true;
  let missing = build ? undefined : "build.json";
  try {
    await compileWasm(new URL("rys.wasm", DIST));
  } catch (error) {
    valid = false;
    if (!(error instanceof WebAssembly.CompileError)) missing = "rys.wasm";
  }
  if (build === undefined || missing !== undefined) {
    finding.value = `not built: there is no ${missing} in ${filePath(DIST)}`;
    return { finding, bytes, valid: false };
  }
  const upstream = typeof build.upstream === "string" ? `, llama.cpp ${build.upstream}` : "";
  finding.ok = valid;
  finding.value = `build ${build.id}${upstream}, ${formatBytes(bytes)}${
    valid ? "" : ", which this Deno cannot run"
  }`;
  return { finding, bytes, valid };
}

async function describeFolder(path: string): Promise<string> {
  try {
    const { bytes, isPartial } = await folderSize(path);
    return `there, ${isPartial ? "at least " : ""}${formatBytes(bytes)} in files`;
  } catch (error) {
    return error instanceof Deno.errors.NotFound
      ? "not there yet"
      : "it cannot be looked at (--allow-read)";
  }
}
