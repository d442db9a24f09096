/**
 * The parts of a graphics driver that a Linux system has: files, devices and variables, and what they lack for WebGPU.
 *
 * @module
 */

/** Something that was looked for: null where it is not there, undefined where the program may not look. */
export type Seen<T> = T | null | undefined;

/** What can be seen of a file system. */
export interface FileView {
  /** Names in a folder. */
  list(folder: string): Seen<string[]>;
  /** A file's bytes, one character each. */
  read(path: string): Seen<string>;
  /** What is at a path, and its permission bits. */
  stat(path: string): Seen<{ isFolder: boolean; mode: number }>;
  /** Whether a device may be opened. */
  opens(path: string): Seen<boolean>;
}

/** Looks up an environment variable. */
export type EnvView = (name: string) => Seen<string>;

/** A file that names a Vulkan driver. */
export interface DriverFile {
  /** The file. */
  path: string;
  /** The library as the file names it; "" where it names none. */
  library: string;
  /** Where that library is. */
  found: Seen<string>;
  /** Why the file is of no use. */
  wrong?: string;
}

/** The parts of a graphics driver that were found. */
export interface DriverFacts {
  /** Where the Vulkan loader is. */
  loader: Seen<string>;
  /** Files that name drivers, folder by folder. */
  drivers: DriverFile[];
  /** The variable that says which they are; undefined if the usual folders do. */
  driversFrom?: string;
  /** NVIDIA's libraries by name. */
  nvidia: Record<string, Seen<string>>;
  /** Libraries of X that NVIDIA's GLX library needs and that are not there. */
  missingX: string[];
  /** Device files. */
  devices: {
    /** Those of NVIDIA's driver. */
    nvidia: Seen<string[]>;
    /** Render nodes, and whether they may be opened. */
    render: Seen<{ path: string; opens: boolean }[]>;
  };
  /** The kind of container that this runs in. */
  container: Seen<string>;
  /** Variables that matter. */
  variables: Record<string, Seen<string>>;
  /** What is wrong with XDG_RUNTIME_DIR; "" if nothing is. */
  runtimeDir: Seen<string>;
}

/** Something that keeps WebGPU from the GPU. */
export interface Problem {
  /** What is wrong. */
  what: string;
  /** What helps. */
  fix: string;
}

/**
 * What WebGPU itself offers: an adapter that `--gpu auto` uses, a software one, one that lacks what the engine needs,
 * one that computes wrongly, or none.
 */
export type AdapterState = "usable" | "software" | "unfit" | "wrong" | "none";

const VARIABLES = [
  "DENO_WEBGPU_BACKEND",
  "VK_DRIVER_FILES",
  "VK_ICD_FILENAMES",
  "VK_ADD_DRIVER_FILES",
  "NVIDIA_VISIBLE_DEVICES",
  "NVIDIA_DRIVER_CAPABILITIES",
  "XDG_RUNTIME_DIR",
] as const;

const EGL = "libEGL_nvidia.so.0";
const GLX = "libGLX_nvidia.so.0";
const NVIDIA_FILE = "/etc/vulkan/icd.d/nvidia_icd.json";

/**
 * A driver file for NVIDIA's library without X, which containers need.
 */
export const NVIDIA_ICD: string = JSON.stringify({
  file_format_version: "1.0.0",
  ICD: { library_path: EGL, api_version: "1.3.0" },
});

/**
 * Looks at a Linux system's graphics driver.
 *
 * @param files The file system.
 * @param env The environment.
 * @param arch The processor, as in `Deno.build.arch`.
 */
export function lookAtDrivers(
  files: FileView,
  env: EnvView,
  arch: string = Deno.build.arch,
): DriverFacts {
  const find = libraryFinder(files, env, arch);
  const { drivers, from } = driverFiles(files, env, find);
  const variables = Object.fromEntries(VARIABLES.map((name) => [name, env(name)]));
  const x = ["libX11.so.6", "libXext.so.6"];
  return {
    loader: find("libvulkan.so.1"),
    drivers,
    ...(from === undefined ? {} : { driversFrom: from }),
    nvidia: { [EGL]: find(EGL), [GLX]: find(GLX) },
    missingX: x.filter((name) => find(name) === null),
    devices: devices(files),
    container: containerKind(files, env),
    variables,
    runtimeDir: runtimeDir(files, variables.XDG_RUNTIME_DIR),
  };
}

/** Finds a library by name where the dynamic linker would. */
function libraryFinder(
  files: FileView,
  env: EnvView,
  arch: string,
): (name: string) => Seen<string> {
  const triple = `${arch}-linux-gnu`;
  const folders = (env("LD_LIBRARY_PATH") ?? "").split(":").filter((folder) => folder !== "");
  const conf = files.list("/etc/ld.so.conf.d") ?? [];
  for (const name of ["/etc/ld.so.conf", ...conf.map((name) => `/etc/ld.so.conf.d/${name}`)]) {
    if (!name.endsWith(".conf")) continue;
    for (const line of (files.read(name) ?? "").split("\n")) {
      const folder = line.replace(/#.*/, "").trim();
      if (folder.startsWith("/")) folders.push(folder);
    }
  }
  for (const base of ["/lib", "/usr/lib"]) folders.push(`${base}/${triple}`, `${base}64`, base);
  const cache = files.read("/etc/ld.so.cache") ?? "";
  return (name) => {
    const pattern = new RegExp(`\\0(/[^\\0]*/${name.replaceAll(".", "\\.")})(?=\\0)`, "g");
    const cached = [...cache.matchAll(pattern)].map((match) => match[1]!)
      .filter((path) => !/i386|i686|lib32/.test(path));
    const places = [...folders.map((folder) => `${folder.replace(/\/$/, "")}/${name}`), ...cached];
    return firstSeen(files, places);
  };
}

function firstSeen(files: FileView, places: string[]): Seen<string> {
  let unseen = false;
  for (const path of places) {
    const stat = files.stat(path);
    if (stat) return path;
    unseen ||= stat === undefined;
  }
  return unseen ? undefined : null;
}

/** The files that the Vulkan loader would read. */
function driverFiles(
  files: FileView,
  env: EnvView,
  find: (name: string) => Seen<string>,
): { drivers: DriverFile[]; from?: string } {
  const split = (text: Seen<string>) => (text ?? "").split(":").filter((part) => part !== "");
  const from = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].find((name) => split(env(name)).length > 0);
  const home = env("HOME") ?? "";
  const inHome = (name: string, sub: string): string[] =>
    split(env(name) || (home === "" ? "" : home + sub));
  const usual = [
    ...inHome("XDG_CONFIG_HOME", "/.config"),
    ...split(env("XDG_CONFIG_DIRS") || "/etc/xdg"),
    "/etc",
    ...inHome("XDG_DATA_HOME", "/.local/share"),
    ...split(env("XDG_DATA_DIRS") || "/usr/local/share:/usr/share"),
  ].map((folder) => `${folder.replace(/\/$/, "")}/vulkan/icd.d`);
  const places = from !== undefined
    ? split(env(from))
    : [...split(env("VK_ADD_DRIVER_FILES")), ...new Set(usual)];
  const drivers: DriverFile[] = [];
  for (const place of places) {
    const stat = files.stat(place);
    if (stat?.isFolder) {
      for (const name of [...files.list(place) ?? []].sort()) {
        if (name.endsWith(".json")) drivers.push(driverFile(files, `${place}/${name}`, find));
      }
    } else if (stat || !usual.includes(place)) drivers.push(driverFile(files, place, find));
  }
  return { drivers, ...(from === undefined ? {} : { from }) };
}

function driverFile(
  files: FileView,
  path: string,
  find: (name: string) => Seen<string>,
): DriverFile {
  const text = files.read(path);
  if (text === undefined) return { path, library: "", found: undefined };
  const wrong = (wrong: string): DriverFile => ({ path, library: "", found: null, wrong });
  if (text === null) return wrong("is not there");
  let file: { ICD?: { library_path?: unknown } } | null;
  try {
    file = JSON.parse(text);
  } catch {
    return wrong("is not JSON");
  }
  const library = file?.ICD?.library_path;
  if (typeof library !== "string" || library === "") return wrong("has no ICD.library_path");
  if (!library.includes("/")) return { path, library, found: find(library) };
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  return {
    path,
    library,
    found: firstSeen(files, [library[0] === "/" ? library : folder + library]),
  };
}

function devices(files: FileView): DriverFacts["devices"] {
  // Only by asking for both can a folder that does not exist be told from one that may not be looked at.
  const dev = files.list("/dev");
  const nvidia = dev === undefined
    ? nvidiaByName(files)
    : (dev ?? []).filter((name) => /^nvidia\d+$/.test(name)).map((name) => `/dev/${name}`);
  const dri = files.list("/dev/dri");
  if (dri === undefined) return { nvidia, render: undefined };
  const render = (dri ?? []).filter((name) => name.startsWith("renderD")).sort()
    .map((name) => `/dev/dri/${name}`)
    .map((path) => ({ path, opens: files.opens(path) === true }));
  return { nvidia, render };
}

function nvidiaByName(files: FileView): Seen<string[]> {
  const first = files.stat("/dev/nvidia0");
  return first === undefined ? undefined : first === null ? [] : ["/dev/nvidia0"];
}

function containerKind(files: FileView, env: EnvView): Seen<string> {
  if (env("KUBERNETES_SERVICE_HOST")) return "Kubernetes";
  const signs = [["/run/.containerenv", "Podman"], ["/.dockerenv", "Docker"]] as const;
  let unseen = env("KUBERNETES_SERVICE_HOST") === undefined;
  for (const [path, kind] of signs) {
    const stat = files.stat(path);
    if (stat) return kind;
    unseen ||= stat === undefined;
  }
  return env("container") || (unseen ? undefined : null);
}

function runtimeDir(files: FileView, path: Seen<string>): Seen<string> {
  if (path === undefined) return undefined;
  if (!path) return "is not set";
  const stat = files.stat(path);
  if (stat === undefined) return undefined;
  if (stat === null) return `is ${path}, which is not there`;
  if (!stat.isFolder) return `is ${path}, which is not a folder`;
  const mode = stat.mode & 0o777;
  return mode === 0o700 ? "" : `is ${path}, whose mode is ${mode.toString(8)} and not 700`;
}

/**
 * What keeps WebGPU from the GPU, in the order in which to fix it.
 *
 * @param facts What was found.
 * @param state What WebGPU offers as it is.
 */
export function diagnose(facts: DriverFacts, state: AdapterState): Problem[] {
  if (state === "usable") return [];
  const problems: Problem[] = [];
  const add = (what: string, fix: string) => void problems.push({ what, fix });
  if (state === "wrong") {
    add(
      "the GPU computes wrongly",
      "update the graphics driver; until then --gpu off computes on the CPU",
    );
    return problems;
  }
  const backend = facts.variables.DENO_WEBGPU_BACKEND;
  if (backend && !/\bvulkan\b/i.test(backend)) {
    add(
      `DENO_WEBGPU_BACKEND is "${backend}", so Deno does not look at Vulkan`,
      "unset it, or set it to vulkan",
    );
  } else if (state === "unfit" && !backend) {
    add(
      "Deno may have fallen back from Vulkan to OpenGL, which lacks what the engine needs",
      "set DENO_WEBGPU_BACKEND=vulkan, and run doctor again to see what Vulkan lacks",
    );
  }
  if (facts.loader === null) {
    add(
      "there is no libvulkan.so.1, the Vulkan loader",
      "apt-get install libvulkan1 (Fedora: dnf install vulkan-loader)",
    );
  }
  for (const { path, wrong } of facts.drivers) {
    if (wrong === undefined) continue;
    const where = facts.driversFrom === undefined ? "" : `${facts.driversFrom} names `;
    add(
      where === "" ? `${path} ${wrong}` : `${where}${path}, which ${wrong}`,
      where === "" ? "repair or remove the file" : `correct ${facts.driversFrom}, or unset it`,
    );
  }
  const broken = facts.drivers.filter(({ library, found }) => library !== "" && found === null);
  for (const { path, library } of broken.filter(({ library }) => !isNvidia(library))) {
    add(
      `${path} names ${library}, which is not there`,
      "install the package that has the library, or remove the file",
    );
  }
  nvidiaProblems(facts, add);
  renderProblems(facts, add);
  const { nvidia, render } = facts.devices;
  if (nvidia?.length === 0 && render?.length === 0) {
    add(
      "no graphics device is visible: neither /dev/nvidia0 nor /dev/dri/renderD128",
      facts.container
        ? "if the host has a GPU, start the container with it: --gpus all (NVIDIA, with its " +
          "container toolkit), or --device /dev/dri (AMD, Intel)"
        : "none is needed: without a GPU the CPU computes",
    );
  }
  if ([nvidia, render, ...Object.values(facts.variables)].includes(undefined)) {
    add("not everything could be looked at", "run doctor with -A, which lets Deno look");
  } else if (state === "none" && problems.length === 0) {
    add(
      "all parts of a driver are here, and yet there is no adapter",
      "VK_LOADER_DEBUG=error,driver shows what happens to each driver; often the libraries are not " +
        "of the same version as the kernel driver",
    );
  }
  return problems;
}

type Add = (what: string, fix: string) => void;

const isNvidia = (library: string) => /nvidia/i.test(library);

function nvidiaProblems(facts: DriverFacts, add: Add): void {
  const { nvidia: libraries, devices: { nvidia: devices }, container } = facts;
  const found = Object.values(libraries).filter((path) => path);
  const unseen = Object.values(libraries).includes(undefined);
  const files = facts.drivers.filter(({ library }) => isNvidia(library));
  if (devices?.length === 0 && found.length > 0) {
    return add(
      "NVIDIA's driver libraries are here, but no NVIDIA device is",
      container
        ? "start the container with --gpus all"
        : "load the driver's kernel module (nvidia-modprobe); nvidia-smi shows why it does not load",
    );
  }
  if (!devices || devices.length === 0 || unseen) return;
  const capabilities = facts.variables.NVIDIA_DRIVER_CAPABILITIES;
  if (found.length === 0) {
    const now = capabilities === undefined
      ? ""
      : ` (NVIDIA_DRIVER_CAPABILITIES is ${
        capabilities === null ? "not set" : `"${capabilities}"`
      })`;
    return add(
      `there is an NVIDIA GPU, but not its graphics libraries: neither ${EGL} nor ${GLX}` +
        (container ? now : ""),
      container
        ? "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics " +
          "(docker run -e, or ENV in the image): NVIDIA's container toolkit then adds them"
        : "install the driver's graphics part (Debian: nvidia-vulkan-icd; Ubuntu: libnvidia-gl-VERSION)",
    );
  }
  const write = `write ${NVIDIA_FILE} with ${NVIDIA_ICD} and set VK_DRIVER_FILES=${NVIDIA_FILE}`;
  const working = files.filter((file) => file.found);
  if (working.length === 0) {
    const named = files.find((file) => file.found === null);
    return add(
      named === undefined
        ? "no Vulkan driver file names NVIDIA's library"
        : `${named.path} names ${named.library}, which is not there`,
      write,
    );
  }
  if (facts.missingX.length > 0 && working.every(({ library }) => library.includes("GLX"))) {
    add(
      `${working[0]!.path} names ${GLX}, which needs ${facts.missingX.join(" and ")}: not there`,
      libraries[EGL] ? write : `apt-get install libx11-6 libxext6`,
    );
  }
}

function renderProblems(facts: DriverFacts, add: Add): void {
  const nodes = facts.devices.render ?? [];
  if (nodes.length === 0) return;
  const closed = nodes.filter(({ opens }) => !opens).map(({ path }) => path);
  if (closed.length === nodes.length && facts.devices.nvidia?.length === 0) {
    add(
      `this user may not open ${closed.join(", ")}`,
      facts.container
        ? "run the container as a user of the group that owns it: --group-add, with the number that " +
          "stat -c %g shows for it"
        : "add the user to the group that owns it (usermod -aG render USER), and log in again",
    );
  }
  const isSoftware = (library: string) => /lvp|swiftshader/i.test(library);
  const hasDriver = facts.drivers.some(({ library, found }) =>
    found !== null && !isSoftware(library)
  );
  if (!hasDriver && facts.devices.nvidia?.length === 0) {
    add(
      "there is a render node, but no Vulkan driver that could use it",
      "apt-get install mesa-vulkan-drivers (Fedora: dnf install mesa-vulkan-drivers)",
    );
  }
}

/**
 * This machine's file system.
 *
 * @param root A folder that stands for `/`.
 */
export function realFiles(root = ""): FileView {
  const look = <T>(use: () => T): Seen<T> => {
    try {
      return use();
    } catch (error) {
      const hidden = error instanceof Deno.errors.NotCapable ||
        error instanceof Deno.errors.PermissionDenied;
      return hidden ? undefined : null;
    }
  };
  return {
    list: (folder) => look(() => [...Deno.readDirSync(root + folder)].map(({ name }) => name)),
    read: (path) => look(() => latin1(Deno.readFileSync(root + path))),
    stat: (path) =>
      look(() => {
        const { isDirectory, mode } = Deno.statSync(root + path);
        return { isFolder: isDirectory, mode: mode ?? 0 };
      }),
    opens: (path) => {
      try {
        Deno.openSync(root + path, { read: true, write: true }).close();
        return true;
      } catch (error) {
        if (error instanceof Deno.errors.NotCapable) return undefined;
        return error instanceof Deno.errors.NotFound ? null : false;
      }
    },
  };
}

function latin1(bytes: Uint8Array): string {
  return new TextDecoder("latin1").decode(bytes);
}
