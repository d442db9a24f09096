import type { Finding } from "./finding.ts";
import type { AdapterReport, GpuReport } from "./gpu_check.ts";
import type { DriverFacts, DriverFile, Problem, Seen } from "./gpu_files.ts";
import { formatBytes } from "../terminal/plan_text.ts";

/**
 * What WebGPU offers, as lines for `doctor`.
 *
 * @param gpu What was found.
 */
export function gpuFindings(gpu: GpuReport): Finding[] {
  const { adapters, device, state, why } = gpu;
  if (adapters.length === 0) return [{ name: "GPU", value: `none: ${why}; the CPU computes` }];
  const findings: Finding[] = adapters.map((adapter, i) => ({
    name: i === 0 ? "GPU" : "GPU, another",
    value: adapterText(adapter, adapters.length > 1),
    ...(i === 0 && state === "usable" ? { ok: true } : {}),
  }));
  const { info, features } = adapters[0]!;
  findings.push({
    name: "GPU use",
    value: state === "usable"
      ? "models run on it"
      : state === "software"
      ? `--gpu auto computes on the CPU: ${why}; --gpu required computes here`
      : state === "wrong"
      ? "it computes wrongly; use --gpu off"
      : `the CPU computes: ${why}`,
  });
  const { limits } = info;
  findings.push({
    name: "GPU limits",
    value: `buffer ${formatBytes(limits.maxBufferSize)}, binding ` +
      `${formatBytes(limits.maxStorageBufferBindingSize)}, ` +
      `${limits.maxStorageBuffersPerShaderStage} storage buffers, ` +
      `${limits.maxComputeInvocationsPerWorkgroup} invocations and ` +
      `${formatBytes(limits.maxComputeWorkgroupStorageSize)} a workgroup`,
  });
  const has = (name: string, yes: boolean) => `${name} ${yes ? "yes" : "no"}`;
  const f16 = has("shader-f16", features.includes("shader-f16"));
  const timestamps = has("timestamp-query", features.includes("timestamp-query"));
  if (device === null) {
    findings.push({ name: "GPU features", value: `${f16}, ${timestamps}` });
    return findings;
  }
  const [least, most] = device.subgroupSize;
  const lanes = least === most ? `${least}` : `${least} to ${most}`;
  const subgroups = device.features.includes("subgroups")
    ? `subgroups yes (${lanes} lanes)`
    : "subgroups no";
  findings.push(
    {
      name: "GPU features",
      value: [f16, subgroups, timestamps, has("packed 4x8", device.packed4x8)].join(", "),
    },
    {
      name: "GPU results",
      value: device.readback === "sync"
        ? "are read at once"
        : "are read in the awaited form, which costs some 11 ms a token",
    },
    {
      name: "GPU check",
      value: device.computeError === ""
        ? "a computation gave the right result"
        : `a computation went wrong: ${device.computeError}`,
      ok: device.computeError === "",
    },
  );
  return findings;
}

function adapterText({ preferences, info }: AdapterReport, isOneOfSeveral: boolean): string {
  const { description, vendor, vendorId, deviceId, software } = info;
  const ids = vendorId === 0 ? "" : `${hex(vendorId)}:${hex(deviceId)}`;
  const facts = [vendor, ids, software ? "software" : ""].filter((fact) => fact !== "").join(", ");
  const given = isOneOfSeveral ? `; with --gpu-power: ${preferences.join(", ")}` : "";
  return `${description}${facts === "" ? "" : ` (${facts})`}${given}`;
}

const hex = (n: number) => n.toString(16).padStart(4, "0");

/**
 * The parts of a graphics driver that exist, as lines for `doctor`.
 *
 * @param facts What was found.
 */
export function driverFindings(facts: DriverFacts): Finding[] {
  const { loader, drivers, driversFrom, nvidia, devices, container, variables } = facts;
  const findings: Finding[] = [
    { name: "Vulkan loader", value: seenText(loader, "no libvulkan.so.1") },
  ];
  if (drivers.length === 0) findings.push({ name: "Vulkan driver", value: "no driver file" });
  for (const driver of drivers) {
    const from = driversFrom === undefined ? "" : `, by ${driversFrom}`;
    findings.push({ name: "Vulkan driver", value: driverText(driver) + from });
  }
  const libraries = Object.values(nvidia).filter((path) => path);
  if (libraries.length > 0) findings.push({ name: "NVIDIA", value: libraries.join(", ") });
  const nodes = devices.render?.map(({ path, opens }) =>
    opens ? path : `${path} (may not be opened)`
  );
  const isHidden = devices.nvidia === undefined || nodes === undefined;
  const all = [...devices.nvidia ?? [], ...nodes ?? []];
  findings.push(
    {
      name: "GPU devices",
      value: all.length > 0
        ? all.join(", ")
        : isHidden
        ? "unknown: Deno may not look (--allow-all)"
        : "none",
    },
    { name: "container", value: seenText(container, "no", "unknown: Deno may not look") },
  );
  const entries = Object.entries(variables);
  const set = entries.flatMap(([name, value]) => value ? [`${name}=${value}`] : []);
  const hidden = entries.filter(([, value]) => value === undefined).map(([name]) => name);
  findings.push({
    name: "variables",
    value: hidden.length === entries.length
      ? "unknown: Deno may not look (--allow-env)"
      : set.join(" ") || "none that matter",
  });
  if (facts.runtimeDir && drivers.length > 0) {
    findings.push({
      name: "runtime dir",
      value: `XDG_RUNTIME_DIR ${facts.runtimeDir}: harmless, but Mesa's drivers complain`,
    });
  }
  return findings;
}

function driverText({ path, library, found, wrong }: DriverFile): string {
  if (wrong !== undefined) return `${path} ${wrong}`;
  if (library === "") return `${path}, which Deno may not read`;
  if (found === null) return `${path} -> ${library}, which is not there`;
  return found === undefined ? `${path} -> ${library}` : `${path} -> ${found}`;
}

function seenText(
  seen: Seen<string>,
  absent: string,
  hidden = "unknown: Deno may not look (--allow-read)",
): string {
  return seen === undefined ? hidden : seen ?? absent;
}

/**
 * Everything that was found, for `--json`: null stands for what does not exist; what could not be looked at is left out.
 *
 * @param gpu What WebGPU offers.
 * @param drivers The parts of a driver that exist; null where nobody looked.
 * @param problems What is missing.
 */
export function gpuReport(
  { state, adapters, device, why }: GpuReport,
  drivers: DriverFacts | null,
  problems: readonly Problem[],
): Record<string, unknown> {
  return {
    state,
    used: state === "usable",
    why,
    adapter: adapters[0]?.info.description ?? null,
    adapters: adapters.map(({ preferences, info, features }) => ({
      power_preferences: preferences,
      description: info.description,
      vendor: info.vendor,
      vendor_id: info.vendorId,
      device_id: info.deviceId,
      software: info.software,
      features,
      limits: info.limits,
    })),
    device: device === null ? null : {
      features: device.features,
      subgroup_size: device.subgroupSize,
      packed_4x8: device.packed4x8,
      readback: device.readback,
      compute_check: { ok: device.computeError === "", error: device.computeError },
    },
    system: drivers === null ? null : {
      vulkan_loader: drivers.loader,
      driver_files: drivers.drivers,
      driver_files_from: drivers.driversFrom ?? null,
      nvidia_libraries: drivers.nvidia,
      devices: drivers.devices,
      container: drivers.container,
      variables: drivers.variables,
      runtime_dir: drivers.runtimeDir,
    },
    problems,
  };
}
