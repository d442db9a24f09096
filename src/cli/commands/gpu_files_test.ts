import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  type AdapterState,
  diagnose,
  type DriverFacts,
  lookAtDrivers,
  NVIDIA_ICD,
  type Problem,
  realFiles,
} from "./gpu_files.ts";

const LIB = "/usr/lib/x86_64-linux-gnu";
const ICD = "/usr/share/vulkan/icd.d";
const icd = (library: string) => JSON.stringify({ ICD: { library_path: library } });

/** Facts of a folder that stands for a whole system. */
async function factsOf(
  files: Record<string, string>,
  env: Record<string, string> = {},
): Promise<DriverFacts> {
  const root = await Deno.makeTempDir();
  try {
    for (const [path, text] of Object.entries({ "/dev/null": "", ...files })) {
      await Deno.mkdir(root + path.slice(0, path.lastIndexOf("/")), { recursive: true });
      await Deno.writeTextFile(root + path, text);
    }
    return lookAtDrivers(realFiles(root), (name) => env[name] ?? null, "x86_64");
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

const LOADER = { [`${LIB}/libvulkan.so.1`]: "" };
const LAVAPIPE = {
  ...LOADER,
  [`${LIB}/libvulkan_lvp.so`]: "",
  [`${ICD}/lvp_icd.x86_64.json`]: icd(`${LIB}/libvulkan_lvp.so`),
};
const NVIDIA_DEVICE = { "/dev/nvidia0": "", "/dev/nvidiactl": "", "/.dockerenv": "" };
const X = { [`${LIB}/libX11.so.6`]: "", [`${LIB}/libXext.so.6`]: "" };

async function problems(
  state: AdapterState,
  files: Record<string, string>,
  env: Record<string, string> = {},
): Promise<Problem[]> {
  return diagnose(await factsOf(files, env), state);
}

/** The one problem that there is. */
async function only(
  state: AdapterState,
  files: Record<string, string>,
  env: Record<string, string> = {},
): Promise<Problem> {
  const found = await problems(state, files, env);
  assertEquals(found.length, 1, JSON.stringify(found));
  return found[0]!;
}

Deno.test("lookAtDrivers() finds loader, drivers and their libraries", async () => {
  const facts = await factsOf({
    ...LAVAPIPE,
    [`${ICD}/notes.txt`]: "",
    [`/etc/vulkan/icd.d/a.json`]: icd("../libs/liba.so"),
    [`/etc/vulkan/icd.d/../libs/liba.so`]: "",
    [`${ICD}/gone.json`]: icd("libgone.so"),
    [`${ICD}/broken.json`]: "{",
    [`${ICD}/empty.json`]: "{}",
  });
  assertEquals(facts.loader, `${LIB}/libvulkan.so.1`);
  assertEquals(facts.drivers, [
    {
      path: "/etc/vulkan/icd.d/a.json",
      library: "../libs/liba.so",
      found: "/etc/vulkan/icd.d/../libs/liba.so",
    },
    { path: `${ICD}/broken.json`, library: "", found: null, wrong: "is not JSON" },
    { path: `${ICD}/empty.json`, library: "", found: null, wrong: "has no ICD.library_path" },
    { path: `${ICD}/gone.json`, library: "libgone.so", found: null },
    {
      path: `${ICD}/lvp_icd.x86_64.json`,
      library: `${LIB}/libvulkan_lvp.so`,
      found: `${LIB}/libvulkan_lvp.so`,
    },
  ]);
  assertEquals(facts.devices, { nvidia: [], render: [] });
  assertEquals(facts.container, null);
});

Deno.test("lookAtDrivers() finds libraries by the linker's cache, its folders and LD_LIBRARY_PATH", async () => {
  const place = "/opt/gpu/libvulkan.so.1";
  const at = async (files: Record<string, string>, env = {}) =>
    (await factsOf({ [place]: "", ...files }, env)).loader;
  assertEquals(await at({}), null);
  assertEquals(await at({ "/etc/ld.so.cache": `\0libvulkan.so.1\0${place}\0` }), place);
  assertEquals(await at({ "/etc/ld.so.cache": `\0${place}.2\0/opt/libvulkan.so.1x\0` }), null);
  assertEquals(await at({ "/etc/ld.so.conf.d/gpu.conf": "# gpu\n/opt/gpu\n" }), place);
  assertEquals(await at({}, { LD_LIBRARY_PATH: "/nowhere:/opt/gpu/" }), place);
});

Deno.test("lookAtDrivers() lets VK_DRIVER_FILES replace the usual folders, and VK_ADD_DRIVER_FILES add to them", async () => {
  const files = { ...LAVAPIPE, "/x/a.json": icd("liba.so"), "/y/b.json": icd("libb.so") };
  const paths = async (env: Record<string, string>) => {
    const { drivers, driversFrom } = await factsOf(files, env);
    return [driversFrom, ...drivers.map(({ path }) => path)];
  };
  const usual = `${ICD}/lvp_icd.x86_64.json`;
  assertEquals(await paths({}), [undefined, usual]);
  const both = { VK_DRIVER_FILES: "/x/a.json:/y", VK_ICD_FILENAMES: "/z" };
  assertEquals(await paths(both), ["VK_DRIVER_FILES", "/x/a.json", "/y/b.json"]);
  assertEquals(await paths({ VK_ICD_FILENAMES: "/y" }), ["VK_ICD_FILENAMES", "/y/b.json"]);
  assertEquals(await paths({ VK_ADD_DRIVER_FILES: "/x/a.json" }), [undefined, "/x/a.json", usual]);
  assertEquals(await paths({ VK_DRIVER_FILES: "" }), [undefined, usual]);
});

Deno.test("lookAtDrivers() knows containers and a useless XDG_RUNTIME_DIR", async () => {
  const kind = async (files: Record<string, string>, env = {}) =>
    (await factsOf(files, env)).container;
  assertEquals(await kind({ "/.dockerenv": "" }), "Docker");
  assertEquals(await kind({ "/run/.containerenv": "" }), "Podman");
  assertEquals(await kind({}, { KUBERNETES_SERVICE_HOST: "10.0.0.1" }), "Kubernetes");
  assertEquals(await kind({}, { container: "lxc" }), "lxc");
  const dir = async (env: Record<string, string>) =>
    (await factsOf({ "/run/user/file": "" }, env)).runtimeDir;
  assertEquals(await dir({}), "is not set");
  assertEquals(await dir({ XDG_RUNTIME_DIR: "/none" }), "is /none, which is not there");
  assert(/^is \/run\/user, whose mode is \d+ and not 700$/.test(
    await dir({ XDG_RUNTIME_DIR: "/run/user" }) ?? "",
  ));
});

Deno.test("lookAtDrivers() says unseen, not absent, where Deno may not look", async () => {
  const script = new URL("./gpu_files.ts", import.meta.url).href;
  const code = `import { diagnose, lookAtDrivers, realFiles } from ${JSON.stringify(script)};
const facts = lookAtDrivers(realFiles(), () => undefined);
console.log(JSON.stringify([facts.loader === undefined, facts.devices.render === undefined,
  facts.container === undefined, diagnose(facts, "none").map(({ fix }) => fix)]));`;
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--no-check",
      "--quiet",
      "data:application/typescript," +
      encodeURIComponent(code),
    ],
  }).output();
  assertEquals(JSON.parse(new TextDecoder().decode(stdout)), [
    true,
    true,
    true,
    ["run doctor with -A, which lets Deno look"],
  ]);
});

Deno.test("diagnose() has nothing to say of a usable adapter", async () => {
  assertEquals(await problems("usable", {}), []);
});

Deno.test("diagnose() of a container without a device asks for one", async () => {
  const { what, fix } = await only("none", { ...LAVAPIPE, "/.dockerenv": "" });
  assertStringIncludes(what, "no graphics device is visible");
  assertStringIncludes(fix, "--gpus all");
  const bare = await only("software", LAVAPIPE);
  assertStringIncludes(bare.fix, "the CPU computes");
});

Deno.test("diagnose() of an NVIDIA container without graphics libraries names the capability", async () => {
  const env = { NVIDIA_DRIVER_CAPABILITIES: "compute,utility" };
  const found = await problems("none", NVIDIA_DEVICE, env);
  assertEquals(found.map(({ what }) => what.split(",")[0]), [
    "there is no libvulkan.so.1",
    "there is an NVIDIA GPU",
  ]);
  assertStringIncludes(found[0]!.fix, "apt-get install libvulkan1");
  assertStringIncludes(found[1]!.what, 'NVIDIA_DRIVER_CAPABILITIES is "compute,utility"');
  assertStringIncludes(found[1]!.fix, "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics");
  const { what } = await only("none", { ...LOADER, ...NVIDIA_DEVICE });
  assertStringIncludes(what, "NVIDIA_DRIVER_CAPABILITIES is not set");
});

Deno.test("diagnose() of NVIDIA's libraries without a driver file writes one", async () => {
  const files = { ...LOADER, ...NVIDIA_DEVICE, [`${LIB}/libEGL_nvidia.so.0`]: "" };
  const { what, fix } = await only("none", files);
  assertStringIncludes(what, "no Vulkan driver file names NVIDIA's library");
  assertStringIncludes(fix, NVIDIA_ICD);
  assertStringIncludes(fix, "VK_DRIVER_FILES=/etc/vulkan/icd.d/nvidia_icd.json");
  // What it says to do is right.
  const mended = { ...files, "/etc/vulkan/icd.d/nvidia_icd.json": NVIDIA_ICD };
  const env = { VK_DRIVER_FILES: "/etc/vulkan/icd.d/nvidia_icd.json" };
  assertStringIncludes((await only("none", mended, env)).what, "all parts of a driver are here");
});

Deno.test("diagnose() of a driver file for NVIDIA's GLX library without X names EGL", async () => {
  const files = {
    ...LOADER,
    ...NVIDIA_DEVICE,
    [`${LIB}/libGLX_nvidia.so.0`]: "",
    [`${ICD}/nvidia_icd.json`]: icd("libGLX_nvidia.so.0"),
  };
  const egl = { [`${LIB}/libEGL_nvidia.so.0`]: "" };
  const { what, fix } = await only("none", { ...files, ...egl });
  assertStringIncludes(what, "needs libX11.so.6 and libXext.so.6: not there");
  assertStringIncludes(fix, "libEGL_nvidia.so.0");
  assertStringIncludes((await only("none", files)).fix, "apt-get install libx11-6 libxext6");
  const whole = await only("none", { ...files, ...X });
  assertStringIncludes(whole.what, "all parts of a driver are here");
});

Deno.test("diagnose() of NVIDIA's libraries without a device asks for the device", async () => {
  const files = { ...LOADER, [`${LIB}/libEGL_nvidia.so.0`]: "", "/.dockerenv": "" };
  const [first] = await problems("none", files);
  assertStringIncludes(first!.what, "no NVIDIA device");
  assertStringIncludes(first!.fix, "--gpus all");
});

Deno.test("diagnose() of a render node without a driver asks for Mesa's", async () => {
  const node = { "/dev/dri/renderD128": "", "/dev/dri/card0": "" };
  const { what, fix } = await only("software", { ...LAVAPIPE, ...node });
  assertStringIncludes(what, "no Vulkan driver that could use it");
  assertStringIncludes(fix, "mesa-vulkan-drivers");
  const radeon = {
    [`${LIB}/libvulkan_radeon.so`]: "",
    [`${ICD}/radeon_icd.x86_64.json`]: icd("libvulkan_radeon.so"),
  };
  assertEquals(await problems("software", { ...LAVAPIPE, ...node, ...radeon }), []);
});

Deno.test("diagnose() of a render node that may not be opened asks for the group", async () => {
  const facts = await factsOf(LAVAPIPE);
  const render = [{ path: "/dev/dri/renderD128", opens: false }];
  const closed = diagnose({ ...facts, devices: { nvidia: [], render } }, "none");
  assertStringIncludes(closed[0]!.what, "may not open /dev/dri/renderD128");
  assertStringIncludes(closed[0]!.fix, "usermod -aG render");
  const boxed = { ...facts, container: "Docker", devices: { nvidia: [], render } };
  assertStringIncludes(diagnose(boxed, "none")[0]!.fix, "--group-add");
});

Deno.test("diagnose() of variables that lead astray names them", async () => {
  const [backend] = await problems("none", LAVAPIPE, { DENO_WEBGPU_BACKEND: "dx12" });
  assertStringIncludes(backend!.what, 'DENO_WEBGPU_BACKEND is "dx12"');
  const [fallback] = await problems("unfit", LAVAPIPE);
  assertStringIncludes(fallback!.fix, "DENO_WEBGPU_BACKEND=vulkan");
  const [gone] = await problems("none", LAVAPIPE, { VK_DRIVER_FILES: "/gone.json" });
  assertEquals(gone, {
    what: "VK_DRIVER_FILES names /gone.json, which is not there",
    fix: "correct VK_DRIVER_FILES, or unset it",
  });
});

Deno.test("diagnose() of a GPU that computes wrongly says how to go on", async () => {
  const { what, fix } = await only("wrong", LAVAPIPE);
  assertStringIncludes(what, "computes wrongly");
  assertStringIncludes(fix, "--gpu off");
});
