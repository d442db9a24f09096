// The files for serverless hosts: what they name is there in the server, and the container's files and command, run here
// outside of a container, start it.

import { assert, assertEquals } from "@std/assert";
import { FLAGS } from "../../src/cli/flags/flags.ts";
import { gpuOptions } from "../../src/cli/flags/gpu_flags.ts";
import { parseFlags } from "../../src/cli/flags/parse_flags.ts";
import { inRepo } from "../engine/_engine.ts";
import { parseAllDocuments, parseYaml } from "./_npm.ts";

const SERVERLESS = inRepo("examples/serverless");
const read = (file: string): string => Deno.readTextFileSync(`${SERVERLESS}/${file}`);

/** Variables that others than the server read. */
const OTHERS = [
  ...["NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "VK_DRIVER_FILES"],
  ...["DENO_WEBGPU_BACKEND", "XDG_RUNTIME_DIR", "DENO_DIR", "DENO_NO_UPDATE_CHECK"],
  "XDG_CACHE_HOME",
  ...["PORT_HEALTH", "RUNPOD_INIT_TIMEOUT"],
];

function checkVariables(names: readonly string[]): void {
  const known: (string | undefined)[] = FLAGS.flatMap((flag) => flag.env ?? []);
  for (const name of names) assert(known.includes(name) || OTHERS.includes(name), name);
}

/** The instructions of a Dockerfile: continued lines joined, comments left out. */
function instructions(text: string): [name: string, rest: string][] {
  return text.replace(/^#.*\n/gm, "").replace(/\\\n\s*/g, " ").split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [, name, rest] = /^(\w+)\s+(.*)$/.exec(line)!;
      return [name!, rest!];
    });
}

const DOCKERFILE = instructions(read("Dockerfile"));
const last = (name: string): string => DOCKERFILE.findLast(([one]) => one === name)![1];
const ENTRYPOINT: string[] = JSON.parse(last("ENTRYPOINT"));
const IMAGE_ENV: Record<string, string> = Object.fromEntries(
  last("ENV").split(/\s+/).map((pair) => pair.split("=", 2) as [string, string]),
);

interface Probe {
  httpGet: { path: string; port: string | number };
}

interface Container {
  args: string[];
  env: { name: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  ports: { name: string; containerPort: number }[];
  resources: { limits: Record<string, string | number> };
  startupProbe: Probe;
  readinessProbe?: Probe;
  livenessProbe: Probe;
}

interface Workload {
  kind: string;
  metadata: { name: string };
  spec: {
    selector: { matchLabels: Record<string, string> };
    template: {
      metadata: { labels: Record<string, string> };
      spec: {
        containers: [Container];
        terminationGracePeriodSeconds: number;
        containerConcurrency: number;
        nodeSelector: Record<string, string>;
        securityContext: { runAsUser: number };
      };
    };
  };
}

/** What is asked of a running server, at the end. */
const PROBED = new Set<string>();

/** The flags of a container. One without its GPU fails; it does not compute on the CPU, slowly and at a GPU's price. */
function serveFlags(args: readonly string[]): ReturnType<typeof parseFlags> {
  const flags = parseFlags(["serve", ...args]);
  assertEquals(flags.warnings, []);
  assertEquals(gpuOptions(flags).gpu, "required");
  return flags;
}

/** Checks what a container names: flags, variables, port, probes. */
function checkContainer(container: Container): ReturnType<typeof parseFlags> {
  const flags = serveFlags(container.args);
  checkVariables(container.env.map(({ name }) => name));
  const [port] = container.ports;
  assertEquals(String(port!.containerPort), IMAGE_ENV["PORT"]);
  assertEquals(String(container.resources.limits["nvidia.com/gpu"]), "1");
  for (
    const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe]
  ) {
    if (probe === undefined) continue;
    assert([port!.containerPort, port!.name].includes(probe.httpGet.port));
    PROBED.add(probe.httpGet.path);
  }
  return flags;
}

Deno.test("Dockerfile: variables, user and port are what the server and Vulkan need", () => {
  checkVariables(Object.keys(IMAGE_ENV));
  assertEquals(IMAGE_ENV["HOST"], "0.0.0.0");
  assertEquals(last("EXPOSE"), IMAGE_ENV["PORT"]);
  assert(IMAGE_ENV["NVIDIA_DRIVER_CAPABILITIES"]!.split(",").includes("graphics"));
  assertEquals(IMAGE_ENV["DENO_WEBGPU_BACKEND"], "vulkan");
  const packages = DOCKERFILE.findLast(([name, rest]) =>
    name === "RUN" && rest.includes("apt-get")
  )!;
  assert(/\blibvulkan1\b/.test(packages[1]));
  // The folder of XDG_RUNTIME_DIR is made, for the user that runs, and for nobody else.
  assert(packages[1].includes(`install -d -o rys -g rys -m 0700 ${IMAGE_ENV["XDG_RUNTIME_DIR"]}`));
  assertEquals(last("USER"), "rys");
  const icd = DOCKERFILE.find(([name, rest]) => name === "COPY" && rest.includes("icd"))![1];
  assertEquals(icd.split(" ").at(-1), IMAGE_ENV["VK_DRIVER_FILES"]);
  assertEquals(JSON.parse(read("nvidia_icd.json")).ICD.library_path, "libEGL_nvidia.so.0");
  // Each RUN that installs leaves no package lists, and takes no recommended packages.
  for (const [name, rest] of DOCKERFILE) {
    if (name !== "RUN" || !rest.includes("apt-get install")) continue;
    assert(
      rest.includes("--no-install-recommends") && rest.includes("rm -rf /var/lib/apt/lists/*"),
    );
  }
  // The version of Deno is one, and it is the one that the README names.
  const deno = DOCKERFILE.find(([name]) => name === "FROM")![1];
  const version = /^denoland\/deno:bin-(\d+\.\d+\.\d+) AS deno$/.exec(deno)![1];
  assert(Deno.readTextFileSync(inRepo("README.md")).includes(`npx -y deno@${version} task test`));
});

Deno.test("cloud-run/service.yaml: flags, port, probes", () => {
  const service: Workload = parseYaml(read("cloud-run/service.yaml"));
  assertEquals(service.kind, "Service");
  const { spec } = service.spec.template;
  const flags = checkContainer(spec.containers[0]);
  // Instances are not sent more than they take.
  const takes = flags.number("nParallel")! + flags.number("maxQueue")!;
  assert(spec.containerConcurrency <= takes);
  assertEquals(spec.nodeSelector["run.googleapis.com/accelerator"], "nvidia-l4");
});

Deno.test("kubernetes/*.yaml: one name, flags, ports, probes, drain time, metrics", () => {
  const deployment: Workload = parseYaml(read("kubernetes/deployment.yaml"));
  assertEquals(deployment.kind, "Deployment");
  const { metadata, spec } = deployment.spec.template;
  const labels = deployment.spec.selector.matchLabels;
  assertEquals(metadata.labels, labels);
  const flags = checkContainer(spec.containers[0]);
  assert(spec.terminationGracePeriodSeconds > flags.number("drainTimeout")! + 5);
  const user = /--uid (\d+)/.exec(read("Dockerfile"))![1];
  assertEquals(String(spec.securityContext.runAsUser), user);

  const service = parseYaml(read("kubernetes/service.yaml"));
  assertEquals(service.spec.selector, labels);
  assertEquals(service.spec.ports[0].targetPort, spec.containers[0].ports[0]!.name);

  const monitor = parseYaml(read("kubernetes/podmonitor.yaml"));
  assertEquals(monitor.spec.selector.matchLabels, labels);
  const [endpoint] = monitor.spec.podMetricsEndpoints;
  assertEquals(endpoint.port, spec.containers[0].ports[0]!.name);
  PROBED.add(endpoint.path);
  const { secretKeyRef } = spec.containers[0].env[0]!.valueFrom!;
  assertEquals(endpoint.authorization.credentials, secretKeyRef);

  const scaled = parseYaml(read("kubernetes/scaledobject.yaml"));
  assertEquals(scaled.spec.scaleTargetRef.name, deployment.metadata.name);
  const [trigger] = scaled.spec.triggers;
  assertEquals(Number(trigger.metadata.threshold), flags.number("nParallel"));
});

Deno.test("runpod/*.json: flags, variables, ports", () => {
  for (const file of ["queue", "load-balancer"]) {
    const { template, endpoint } = JSON.parse(read(`runpod/${file}.json`));
    const flags = serveFlags(template.dockerStartCmd);
    assertEquals(flags.on("runpodQueue"), file === "queue");
    checkVariables(Object.keys(template.env));
    assert(template.env.NVIDIA_DRIVER_CAPABILITIES.includes("graphics"));
    assertEquals([template.isServerless, template.name], [true, endpoint.name]);
    if (file === "queue") continue;
    assertEquals(template.env.PORT, template.env.PORT_HEALTH);
    assertEquals(template.ports, [`${template.env.PORT}/http`]);
    assertEquals(endpoint.scalerValue, flags.number("nParallel"));
  }
  PROBED.add("/ping");
});

Deno.test("koyeb/deploy.sh: flags, variables, port, check", () => {
  const script = read("koyeb/deploy.sh");
  const all = (pattern: RegExp) => [...script.matchAll(pattern)].map((match) => match[1]!);
  const flags = serveFlags(all(/--docker-args=(\S+)/g));
  assertEquals(
    String(flags.number("nParallel")),
    all(/--autoscaling-concurrent-requests (\d+)/g)[0],
  );
  checkVariables(all(/--env '?(\w+)=/g));
  assertEquals(all(/--ports (\d+):http/g), [IMAGE_ENV["PORT"]!]);
  assertEquals(all(/--env PORT=(\d+)/g), [IMAGE_ENV["PORT"]!]);
  const [check] = all(/--checks \d+:http:(\S+)/g);
  PROBED.add(check!);
});

Deno.test("YAML files hold one document each, without duplicate keys", () => {
  for (const folder of ["cloud-run", "kubernetes"]) {
    for (const { name } of Deno.readDirSync(`${SERVERLESS}/${folder}`)) {
      if (!name.endsWith(".yaml")) continue;
      const documents = parseAllDocuments(read(`${folder}/${name}`), { uniqueKeys: true });
      assertEquals([name, documents.length, documents[0]!.errors], [name, 1, []]);
    }
  }
});

/** Copies what the image would hold: the build's context by its ignore file, and what the build made. */
async function imageFiles(to: string): Promise<void> {
  const lines = read("Dockerfile.dockerignore").split("\n").filter((line) => line !== "");
  assertEquals(lines[0], "*");
  const left = lines.filter((line) => !line.startsWith("!")).slice(1);
  const copy = async (path: string): Promise<void> => {
    if (left.includes(path)) return;
    if (left.includes("**/*_test.ts") && path.endsWith("_test.ts")) return;
    if ((await Deno.stat(inRepo(path))).isDirectory) {
      await Deno.mkdir(`${to}/${path}`, { recursive: true });
      for await (const { name } of Deno.readDir(inRepo(path))) await copy(`${path}/${name}`);
    } else {
      await Deno.mkdir(`${to}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.copyFile(inRepo(path), `${to}/${path}`);
    }
  };
  for (const line of lines.filter((line) => line.startsWith("!"))) {
    // A folder that a checkout does not have yet is no fault of the list.
    await copy(line.slice(1)).catch((error) => {
      if (!(error instanceof Deno.errors.NotFound) || line !== "!gpu") throw error;
    });
  }
  await Deno.mkdir(`${to}/wasm/dist`, { recursive: true });
  for (const name of ["build.json", "rys.js", "rys.wasm"]) {
    await Deno.copyFile(inRepo(`wasm/dist/${name}`), `${to}/wasm/dist/${name}`);
  }
}

Deno.test("Dockerfile: the image's files and command start a server that answers its hosts' probes", async () => {
  assert(PROBED.size >= 4, "the tests above find the probes");
  const app = await Deno.makeTempDir();
  let child: Deno.ChildProcess | undefined;
  try {
    await imageFiles(app);
    const port = (() => {
      using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      return listener.addr.port;
    })();
    // Deno's cache is the one of this test run, in place of the image's.
    const { DENO_DIR: _, VK_DRIVER_FILES: __, XDG_RUNTIME_DIR: ___, ...rest } = IMAGE_ENV;
    const { XDG_CACHE_HOME: ____, ...env } = rest; // would also move Deno's cache
    assertEquals(ENTRYPOINT[0], "deno");
    child = new Deno.Command(Deno.execPath(), {
      args: [...ENTRYPOINT.slice(1), "-c", "512", "-t", "1"],
      cwd: app,
      env: {
        ...env,
        HOST: "127.0.0.1",
        PORT: String(port),
        LLAMA_API_KEY: "secret",
        LLAMA_ARG_MODEL: env["LLAMA_ARG_MODEL"]!.replace(/^\/app/, app),
      },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    let stderr = "";
    const reading = (async () => {
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) stderr += text;
    })();
    const origin = `http://127.0.0.1:${port}`;
    const ask = async (path: string, key = ""): Promise<[number, string]> => {
      const response = await fetch(origin + path, {
        headers: key === "" ? {} : { authorization: `Bearer ${key}` },
      }).catch((error) => {
        throw new Error(`${path}: ${error.message}; it said: ${stderr}`);
      });
      return [response.status, await response.text()];
    };
    const statuses = new Set<number>();
    for (const end = Date.now() + 300_000;;) {
      const status = await ask("/health").then(([status]) => status, () => 0);
      statuses.add(status);
      if (status === 200) break;
      assert(Date.now() < end, stderr);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    // Hosts have no key, but for /metrics.
    for (const path of PROBED) {
      const [status] = await ask(path, path === "/metrics" ? "secret" : "");
      assertEquals([path, status], [path, 200]);
    }
    statuses.delete(0); // it did not listen yet
    statuses.delete(503);
    assertEquals([...statuses], [200]);
    const [, metrics] = await ask("/metrics", "secret");
    const query: string =
      parseYaml(read("kubernetes/scaledobject.yaml")).spec.triggers[0].metadata.query;
    const named = [...query.matchAll(/\b(rys_\w+)\{/g)].map((match) => match[1]!);
    named.push(...[...read("kubernetes/README.md").matchAll(/`(rys_\w+)`/g)].map((m) => m[1]!));
    assert(named.length >= 5);
    for (const name of named) assert(new RegExp(`^${name}[ {]`, "m").test(metrics), name);
    const [status, models] = await ask("/v1/models", "secret");
    assertEquals([status, JSON.parse(models).data[0].id], [200, "demo"]);
    child.kill("SIGTERM");
    const [{ code }, stdout] = await Promise.all([
      child.status,
      new Response(child.stdout).text(),
      reading,
    ]);
    child = undefined;
    assertEquals([code, stdout], [0, ""]);
  } finally {
    if (child !== undefined) {
      child.kill("SIGKILL");
      await child.status;
    }
    await Deno.remove(app, { recursive: true });
  }
});
