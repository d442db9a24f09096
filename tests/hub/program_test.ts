// The program with models of the hub, as a child process: fetched, killed, resumed, listed, checked, removed.

import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { exportModel, HubError, readModel, readNamedModel } from "@rys/edge";
import { MODEL, program, readUntil, start } from "../cli/_program.ts";
import { sha256, type TestHub, withHub } from "./_hub.ts";

const DEMO = await Deno.readFile(MODEL);
const REPO = () => ({ "o/demo": { files: { "demo-Q8_0.gguf": DEMO } } });
const env = (hub: TestHub, cache: string) => ({
  HF_ENDPOINT: hub.endpoint,
  HF_HUB_CACHE: cache,
  XDG_CACHE_HOME: `${cache}/home`,
  HF_TOKEN: "",
  NO_COLOR: "1",
});

Deno.test("run -hf fetches a model and runs it; offline it runs from the cache", async () => {
  await withHub(REPO(), async (hub, cache) => {
    const args = ["-p", "Once upon a time", "-n", "4", "--temp", "0", "--gpu", "off", "--quiet"];
    const local = await program(["run", "-m", MODEL, ...args]);
    const first = await program(["run", "-hf", "o/demo:q8_0", ...args], { env: env(hub, cache) });
    assertEquals([first.code, first.out], [0, local.out], first.err);
    const { length } = hub.seen;
    const again = await program(["run", ...args, "--offline"], {
      env: { ...env(hub, cache), LLAMA_ARG_HF_REPO: "o/demo" },
    });
    assertEquals([again.code, again.out, hub.seen.length], [0, local.out, length], again.err);
  });
});

Deno.test("pull takes a path for a path, not for a repository", async () => {
  const { code, err } = await program(["pull", "models/demo.gguf"]);
  assertEquals(code, 2, err);
  assertMatch(err, /not paths: .*"models\/demo\.gguf"/);
});

Deno.test("export fetches a model that is not here, once it is known that it can be exported", async () => {
  await withHub(REPO(), async (hub, cache) => {
    const options = { env: env(hub, cache) };
    const local = `${cache}/local.gguf`;
    const plan = ["--repeat-layers", "26,34"];
    assertEquals((await program(["export", "-m", MODEL, ...plan, "-o", local])).code, 0);
    const fetched = () => Deno.stat(`${cache}/models--o--demo`).then(() => true, () => false);

    const refused = await program(["export", "-hf", "o/demo", ...plan, "-o", local], options);
    assertEquals([refused.code, await fetched()], [1, false], refused.err);
    assertStringIncludes(refused.err, "the file exists; --force");
    const wrong = ["export", "-hf", "o/demo", "--repeat-layers", "39,41", "-o", `${cache}/w.gguf`];
    const unfit = await program(wrong, options);
    assertEquals([unfit.code, await fetched()], [2, false], unfit.err);

    const url = `${hub.bytes}/plain/o/demo/demo-Q8_0.gguf`;
    for (const [i, name] of [["-hf", "o/demo:q8_0"], ["-m", "hf:o/demo"], ["-m", url]].entries()) {
      const output = `${cache}/${i}.gguf`;
      const { code, out, err } = await program(
        ["export", ...name, ...plan, "-o", output, "--json"],
        options,
      );
      assertEquals(code, 0, err);
      assertEquals(JSON.parse(out).files, [output]);
      assertEquals(sha256(await Deno.readFile(output)), sha256(await Deno.readFile(local)));
    }
    const { length } = hub.seen;
    const again = await program(
      ["export", "-hf", "o/demo", ...plan, "-o", `${cache}/0.gguf`, "--force", "--offline"],
      options,
    );
    assertEquals([again.code, hub.seen.length], [0, length], again.err);
  });
});

Deno.test("exportModel() fetches a model by its name, and takes one whose header was read", async () => {
  await withHub(REPO(), async (hub, cacheDir) => {
    const options = { endpoint: hub.endpoint, cacheDir, token: "" };
    const read = await readNamedModel("hf:o/demo", options);
    assertEquals(read.isRemote, true);
    const write = async (model: Parameters<typeof exportModel>[0], name: string) => {
      const output = `${cacheDir}/${name}.gguf`;
      await exportModel(model, output, { repeatLayers: "26,34", hub: options });
      return sha256(await Deno.readFile(output));
    };
    const local = await write(MODEL, "a");
    assertEquals(await write(read, "b"), local);
    assertEquals(await write("hf:o/demo", "c"), local);
    assertEquals(await write(await readModel(MODEL), "d"), local);
    await assertRejects(() => write("hf:o/none", "e"), HubError);
  });
});

Deno.test("pull that is killed goes on from where it was, to the same bytes", async () => {
  await withHub(REPO(), async (hub, cache) => {
    hub.faults.rate = 150_000;
    const child = start(["pull", "hf:o/demo"], { env: env(hub, cache) });
    const sidecar = `${cache}/models--o--demo/blobs/${sha256(DEMO)}.rys-part.json`;
    const deadline = Date.now() + 120_000;
    while (!await Deno.stat(sidecar).catch(() => undefined)) {
      assert(Date.now() < deadline, "nothing was written down");
      await new Promise((done) => setTimeout(done, 50));
    }
    child.kill("SIGKILL");
    await child.output();
    const { done } = JSON.parse(await Deno.readTextFile(sidecar)) as { done: [number, number][] };
    const kept = done.reduce((sum, [from, to]) => sum + to - from, 0);
    assert(kept > 0 && kept < DEMO.length, `${kept}`);
    hub.faults.rate = Infinity;
    const before = hub.downloads.length;
    const { code, out, err } = await program(["pull", "o/demo"], { env: env(hub, cache) });
    assertEquals(code, 0, err);
    assertEquals(sha256(await Deno.readFile(out.trim())), sha256(DEMO));
    const asked = hub.downloads.slice(before).reduce((sum, { range }) => {
      const [from, to] = range!.slice(6).split("-").map(Number);
      return sum + to! + 1 - from!;
    }, 0);
    assertEquals(asked, DEMO.length - kept);
  });
});

Deno.test("two processes that want the same file fetch it once", async () => {
  await withHub(REPO(), async (hub, cache) => {
    const both = await Promise.all(
      [1, 2].map(() => program(["pull", "hf:o/demo"], { env: env(hub, cache) })),
    );
    for (const { code, err } of both) assertEquals(code, 0, err);
    const ranges = hub.downloads.map(({ range }) => range);
    assertEquals(new Set(ranges).size, ranges.length);
  });
});

Deno.test("a process that waits for a download takes over when the other one is killed", async () => {
  await withHub(REPO(), async (hub, cache) => {
    hub.faults.rate = 100_000;
    const first = start(["pull", "hf:o/demo"], { env: env(hub, cache) });
    const sidecar = `${cache}/models--o--demo/blobs/${sha256(DEMO)}.rys-part.json`;
    const until = async (isSo: () => Promise<unknown> | boolean) => {
      const deadline = Date.now() + 120_000;
      while (!await isSo()) {
        assert(Date.now() < deadline);
        await new Promise((done) => setTimeout(done, 20));
      }
    };
    await until(() => Deno.stat(sidecar).catch(() => undefined));
    const asked = hub.seen.length;
    const second = program(["pull", "hf:o/demo"], { env: env(hub, cache) });
    // The second one has asked the hub for the files.
    await until(() => hub.seen.slice(asked).some(({ path }) => path.includes("/tree/")));
    first.kill("SIGKILL");
    await first.output();
    hub.faults.rate = Infinity;
    const { code, out, err } = await second;
    assertEquals(code, 0, err);
    assertEquals(sha256(await Deno.readFile(out.trim())), sha256(DEMO));
  });
});

Deno.test("Ctrl-C ends pull with 130, and keeps what was fetched", async () => {
  await withHub(REPO(), async (hub, cache) => {
    hub.faults.rate = 150_000;
    const child = start(["pull", "hf:o/demo"], { env: env(hub, cache) });
    const deadline = Date.now() + 120_000;
    while (hub.downloads.length === 0) {
      assert(Date.now() < deadline);
      await new Promise((done) => setTimeout(done, 50));
    }
    await new Promise((done) => setTimeout(done, 1500));
    child.kill("SIGINT");
    assertEquals((await child.output()).code, 130);
    const names = [...Deno.readDirSync(`${cache}/models--o--demo/blobs`)].map(({ name }) => name);
    assert(names.includes(`${sha256(DEMO)}.rys-part`), names.join());
  });
});

Deno.test("ls, verify and rm: what is in the cache, whether it is sound, and gone", async () => {
  await withHub(REPO(), async (hub, cache) => {
    const options = { env: env(hub, cache) };
    const pulled = await program(
      ["pull", "hf:o/demo", `${hub.bytes}/plain/o/demo/demo-Q8_0.gguf`],
      options,
    );
    assertEquals(pulled.code, 0, pulled.err);
    const listed = JSON.parse((await program(["ls", "--json"], options)).out).models;
    assertEquals(
      listed.map(({ model, bytes, complete }: Record<string, unknown>) => [model, bytes, complete]),
      [
        ["hf:o/demo/demo-Q8_0.gguf", DEMO.length, true],
        [`${hub.bytes}/plain/o/demo/demo-Q8_0.gguf`, DEMO.length, true],
      ],
    );
    assertEquals((await program(["verify"], options)).code, 0);
    const blob = `${cache}/models--o--demo/blobs/${sha256(DEMO)}`;
    const damaged = DEMO.slice();
    damaged[1000]! ^= 1;
    await Deno.writeFile(blob, damaged);
    const checked = await program(["verify", "hf:o/demo:Q8_0", "--json"], options);
    assertEquals([checked.code, JSON.parse(checked.out).files[0].state], [1, "damaged"]);
    assertEquals((await program(["rm", "o/demo"], options)).code, 0);
    assertEquals(await Deno.stat(blob).catch(() => "gone"), "gone");
    const gone = await program(["rm", "o/demo"], options);
    assertEquals(gone.code, 1);
    assertStringIncludes(gone.err, "it is not in the cache");
  });
});

Deno.test("a wrong name or two of them is wrong usage", async () => {
  for (
    const [args, words] of [
      [["run", "-m", "hf:nothing"], "expected hf:OWNER/REPO"],
      [["run", "-hf", "o/r", "-m", "x.gguf"], "-hf and -m exclude each other"],
      [["plan", "-hff", "x.gguf"], "needs the repository"],
      [["pull", "model.gguf"], "not paths"],
      [["pull"], "pull needs a model"],
    ] as const
  ) {
    const { code, err } = await program([...args]);
    assertEquals(code, 2, err);
    assertStringIncludes(err, words);
  }
});

Deno.test("serve listens while it fetches its model, and then answers under the repository's name", async () => {
  await withHub(REPO(), async (hub, cache) => {
    const held = Promise.withResolvers<void>();
    hub.faults.hold = { after: 100_000, until: held.promise };
    const args = ["serve", "-hf", "o/demo:Q8_0", "--port", "0", "--gpu", "off", "-c", "512"];
    const child = start(args, { env: env(hub, cache) });
    const reader = child.stderr.getReader();
    try {
      const text = await readUntil(reader, /http:\/\/\S+:\d+/);
      const url = /http:\/\/\S+:\d+/.exec(text)![0];
      const health = await fetch(`${url}/health`);
      await health.body?.cancel();
      assertEquals(health.status, 503);
      hub.faults.hold = undefined;
      held.resolve();
      await readUntil(reader, "model ready");
      const { data } = await (await fetch(`${url}/v1/models`)).json();
      assertEquals(data[0].id, "o/demo:Q8_0");
    } finally {
      held.resolve();
      reader.releaseLock();
      child.kill("SIGTERM");
      await Promise.all([child.stderr.cancel(), child.stdout.cancel(), child.stdin.close()]);
      await child.status;
    }
  });
});

Deno.test("with the container's permissions, which allow no symbolic links, a model is fetched and found", async () => {
  await withHub(REPO(), async (hub, cache) => {
    const options = {
      env: env(hub, cache),
      allow: [
        "--allow-read",
        `--allow-write=${cache}`,
        "--allow-net",
        "--allow-env",
        "--no-prompt",
      ],
    };
    const { code, out, err } = await program(["pull", "hf:o/demo"], options);
    assertEquals(code, 0, err);
    assertEquals(sha256(await Deno.readFile(out.trim())), sha256(DEMO));
    const again = await program(["pull", "hf:o/demo", "--offline"], options);
    assertEquals([again.code, again.out], [0, out], again.err);
    const refused = await program(["pull", "hf:o/demo"], {
      env: { ...options.env, HF_HUB_CACHE: `${cache}/other` },
      allow: ["--allow-read", "--allow-net", "--allow-env", "--no-prompt"],
    });
    assertEquals(refused.code, 1);
    assertStringIncludes(refused.err, "--allow-write");
  });
});
