import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  EngineError,
  GgufError,
  loadModel,
  type LoadModelOptions,
  type ModelSource,
  readModel,
} from "@rys/edge";
import { DEMO, greedy, inRepo, SMALL, STORY } from "./_engine.ts";
import { readGguf, type SoundFile, textKey, wideKey, writeShards } from "./_gguf.ts";
import { type TestKey, writeGgufFile } from "../../src/gguf/_testing.ts";

const demo = (): SoundFile => readGguf(Deno.readFileSync(DEMO));

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function textOf(source: ModelSource, options: LoadModelOptions = {}): Promise<string> {
  await using model = await loadModel(source, options);
  await using context = await model.createContext(SMALL);
  return await greedy(context, STORY, 8);
}

Deno.test("loadModel() reads a path, a file URL, a Blob and bytes alike", async () => {
  const bytes = Deno.readFileSync(DEMO);
  const want = await textOf(DEMO);
  assertEquals(await textOf(new URL(`file://${DEMO}`)), want);
  assertEquals(await textOf(new Blob([bytes])), want);
  assertEquals(await textOf(bytes), want);
  assertEquals(await textOf(bytes.buffer), want);
  assertEquals(await textOf(`file://${DEMO}`), want);
  assertEquals(await textOf(await readModel(new URL(`file://${DEMO}`))), want);
  assertEquals(await textOf("models/../models/demo.gguf"), want);
});

Deno.test("loadModel() reads a path with spaces, percent signs and letters of any script", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a b%20 \u00e9\u{1f999}#?.gguf`;
    await Deno.copyFile(DEMO, path);
    const want = await textOf(DEMO);
    assertEquals(await textOf(path), want);
    const url = new URL("file:///");
    url.pathname = path.replaceAll("%", "%25");
    assertEquals(await textOf(url), want);
  }));

Deno.test("loadModel() reads the shards of a model, from any of them", () =>
  inFolder(async (folder) => {
    const want = await textOf(DEMO);
    // Written last first: a listing need not be in their order.
    const shards = writeShards(`${folder}/demo`, demo(), 3);
    for (const shard of shards.toReversed()) {
      const bytes = Deno.readFileSync(shard);
      Deno.removeSync(shard);
      Deno.writeFileSync(shard, bytes);
    }
    for (const shard of shards) assertEquals(await textOf(shard), want);
    await Deno.remove(shards[1]!);
    const error = await assertRejects(() => loadModel(shards[0]!), GgufError);
    assert(error.message.includes("demo-00002-of-00003.gguf"), error.message);
  }));

Deno.test("a physical model of 400 layers, over 4 GiB on disk, is the plan bit for bit", () =>
  inFolder(async (folder) => {
    await using model = await loadModel(DEMO);
    const plan = model.expandPlan("20,24x90");
    assertEquals(plan.nLayerEff, 400);
    const file = demo();
    const tensors = file.tensors.filter(({ name }) => !name.startsWith("blk."));
    plan.layers.forEach((source, layer) => {
      for (const tensor of file.tensors) {
        const part = new RegExp(`^blk\\.${source}\\.(.*)`).exec(tensor.name)?.[1];
        if (part) tensors.push({ ...tensor, name: `blk.${layer}.${part}` });
      }
    });
    const keys = file.keys.filter(({ key }) => key !== "qwen3.block_count")
      .concat(wideKey("qwen3.block_count", "uint32", 400));
    const path = `${folder}/sparse.gguf`;
    const size = writeGgufFile(path, { keys, tensors, alignment: 2 ** 20 });
    assert(size > 2 ** 32, `${size}`);
    await using physical = await loadModel(path);
    assertEquals(physical.info.nLayer, 400);
    const a = await model.logits(STORY, { threads: 1, repeatLayers: "20,24x90" });
    const b = await physical.logits(STORY, { threads: 1 });
    assertEquals(new Uint8Array(a.data.buffer), new Uint8Array(b.data.buffer));
  }));

Deno.test("loadModel() reports the plan in the file, and a context runs it unless another is given", () =>
  inFolder(async (folder) => {
    const path = `${folder}/plan.gguf`;
    const file = demo();
    writeGgufFile(path, { ...file, keys: [...file.keys, textKey("rys.layer_plan", "20,24")] });
    await using model = await loadModel(path);
    assertEquals(model.info.layerPlan, "20,24");
    assertEquals(model.expandPlan().nLayerEff, 44);
    for (const [repeatLayers, n] of [[undefined, 44], ["4,5", 41], ["none", 40]] as const) {
      await using context = await model.createContext({ ...SMALL, repeatLayers });
      assertEquals(context.info.plan.nLayerEff, n);
    }
  }));

Deno.test("a wrong plan in the file is an error of the context that would run it", () =>
  inFolder(async (folder) => {
    const path = `${folder}/plan.gguf`;
    const file = demo();
    writeGgufFile(path, { ...file, keys: [...file.keys, textKey("rys.layer_plan", "60,70")] });
    await using model = await loadModel(path);
    await assertRejects(() => model.createContext(SMALL), RangeError, "60");
    await using context = await model.createContext({ ...SMALL, repeatLayers: "none" });
    assert((await greedy(context, STORY, 2)).length > 0);
  }));

Deno.test("loadModel() refuses what is not a model, and names it", () =>
  inFolder(async (folder) => {
    const bytes = Deno.readFileSync(DEMO);
    const files: [string, Uint8Array<ArrayBuffer>][] = [
      ["empty", new Uint8Array()],
      ["html", new TextEncoder().encode("<!DOCTYPE html><title>404</title>")],
      ["head", bytes.slice(0, 1000)],
      ["cut", bytes.slice(0, bytes.length - 100_000)],
    ];
    for (const [name, data] of files) {
      const path = `${folder}/${name}.gguf`;
      await Deno.writeFile(path, data);
      const error = await assertRejects(() => loadModel(path)) as Error;
      assert(error instanceof GgufError || error instanceof EngineError, String(error));
      assert(error.message.includes(`${name}.gguf`), error.message);
      const ofBytes = await assertRejects(() => loadModel(data)) as Error;
      assert(
        ofBytes.message.includes("bytes") && !ofBytes.message.includes("blob"),
        String(ofBytes),
      );
    }
    await assertRejects(() => loadModel(`${folder}/missing.gguf`), Error, "missing.gguf");
    await assertRejects(() => loadModel(folder), Error);
    for (const source of [5, null, undefined, {}]) {
      await assertRejects(() => loadModel(source as unknown as string), TypeError);
    }
    await using server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      () => new Response("none", { status: 404 }),
    );
    const url = `http://127.0.0.1:${server.addr.port}/x.gguf`;
    for (const source of [url, new URL(url)]) {
      const error = await assertRejects(() => loadModel(source)) as Error;
      assert(error.message.includes("x.gguf") && error.message.includes("404"), String(error));
    }
  }));

Deno.test("loadModel() refuses a model that llama.cpp cannot make", () =>
  inFolder(async (folder) => {
    const file = demo();
    const path = `${folder}/wrong.gguf`;
    const cases: SoundFile[] = [
      { ...file, tensors: file.tensors.filter(({ name }) => name !== "blk.7.attn_q.weight") },
      {
        ...file,
        keys: file.keys.filter(({ key }) => key !== "general.architecture")
          .concat(textKey("general.architecture", "no-such-arch")),
      },
      {
        ...file,
        keys: file.keys.filter(({ key }) => key !== "qwen3.embedding_length")
          .concat(wideKey("qwen3.embedding_length", "uint32", 96)),
      },
    ];
    for (const wrong of cases) {
      writeGgufFile(path, wrong);
      const error = await assertRejects(() => loadModel(path)) as Error;
      assert(error instanceof GgufError || error instanceof EngineError, String(error));
      assert(error.message.length > 20, error.message);
    }
  }));

Deno.test("a value that ended the instance is refused by its key", () =>
  inFolder(async (folder) => {
    const file = demo();
    const path = `${folder}/value.gguf`;
    const norm = file.tensors.find(({ name }) => name === "blk.0.attn_norm.weight")!;
    const tokens = file.keys.find(({ key }) => key === "tokenizer.ggml.tokens")!;
    const cases: [SoundFile, string][] = [
      ...[
        textKey("qwen3.rope.scaling.type", "linfar"),
        wideKey("qwen3.attention.layer_norm_rms_epsilon", "float32", -1),
        wideKey("qwen3.rope.dimension_count", "uint32", 64),
        wideKey("qwen3.context_length", "uint32", 0),
        sameToken(tokens),
      ].map((key): [SoundFile, string] => [
        { ...file, keys: [...file.keys.filter((one) => one.key !== key.key), key] },
        `key "${key.key}"`,
      ]),
      [{
        ...file,
        tensors: file.tensors.map((one) => one === norm ? { ...norm, type: 26 } : one),
      }, `tensor "${norm.name}"`],
    ];
    for (const [wrong, field] of cases) {
      writeGgufFile(path, wrong);
      const error = await assertRejects(() => loadModel(path)) as Error;
      assert(error.message.includes(field), error.message);
      assert(error.message.includes(path), error.message);
      assert(error instanceof GgufError || (error instanceof EngineError && !error.fatal));
    }
  }));

Deno.test("an assertion while a context is made is the error of that call", () =>
  inFolder(async (folder) => {
    const path = `${folder}/rope.gguf`;
    const file = demo();
    // Right in general; this architecture wants all of a head.
    const key = wideKey("qwen3.rope.dimension_count", "uint32", 16);
    writeGgufFile(path, {
      ...file,
      keys: [...file.keys.filter((one) => one.key !== key.key), key],
    });
    await using model = await loadModel(path);
    for (let i = 0; i < 3; i++) {
      const error = await assertRejects(() => model.createContext(SMALL), EngineError);
      assertEquals(error.fatal, false);
      assert(
        /context could not be created.*n_embd_head == n_rot/s.test(error.message),
        error.message,
      );
    }
    assert((await model.tokenize(STORY)).length > 0);
    await assertRejects(() => model.logits(STORY), EngineError, "n_embd_head == n_rot");
  }));

/** A vocabulary whose first token is there twice. */
function sameToken({ key, type, raw }: TestKey): TestKey {
  const value = raw!; // as readGguf() gives it
  const view = new DataView(value.buffer, value.byteOffset);
  const length = (at: number) => Number(view.getBigUint64(at, true));
  const first = value.subarray(12, 12 + 8 + length(12));
  const rest = value.subarray(12 + first.length + 8 + length(12 + first.length));
  const bytes = new Uint8Array(12 + 2 * first.length + rest.length);
  bytes.set(value.subarray(0, 12));
  bytes.set(first, 12);
  bytes.set(first, 12 + first.length);
  bytes.set(rest, 12 + 2 * first.length);
  return { key, type, raw: bytes };
}

Deno.test("loadModel() does not read a header again that was read", () =>
  inFolder(async (folder) => {
    const path = `${folder}/header.gguf`;
    const file = demo();
    const write = (value: number) =>
      writeGgufFile(path, {
        ...file,
        keys: [...file.keys, wideKey("other.epsilon", "float32", value)],
      });
    write(0);
    const read = await readModel(path);
    write(-1); // what the check refuses, and the engine does not look at
    await assertRejects(() => loadModel(path), GgufError, 'key "other.epsilon"');
    await (await loadModel(read)).dispose();
    writeGgufFile(path, file);
    await assertRejects(() => loadModel(read), GgufError, "it has changed since its header");
  }));

Deno.test("mod.ts can be imported by its path, from a folder without an import map", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(
      `${folder}/a.ts`,
      `import { loadModel } from ${JSON.stringify(inRepo("mod.ts"))};
       await using model = await loadModel("file://${DEMO}");
       console.log(model.info.nLayer);`,
    );
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "--no-lock", "a.ts"],
      cwd: folder,
    }).output();
    const text = new TextDecoder();
    assertEquals(text.decode(stdout), "40\n", text.decode(stderr));
  }));

Deno.test("a file that shrinks or goes while it is loaded is one clear error", () =>
  inFolder(async (folder) => {
    const path = `${folder}/demo.gguf`;
    for (const what of ["shrinks", "is empty"]) {
      await Deno.copyFile(DEMO, path);
      const error = await assertRejects(
        () =>
          loadModel(path, {
            onProgress: (fraction) =>
              fraction === 0 && Deno.truncateSync(path, what === "shrinks" ? 2_500_000 : 0),
          }),
        EngineError,
      );
      assert(error.message.startsWith(`Cannot read ${path}: it ended at byte`), error.message);
    }
    // Gone between the look at its header and the engine's own look.
    await Deno.copyFile(DEMO, path);
    const error = await assertRejects(() => {
      const loading = loadModel(path);
      const timer = setInterval(() => {}, 1);
      const gone = async () => {
        while (true) {
          await new Promise((resolve) => setTimeout(resolve, 0));
          try {
            Deno.renameSync(path, `${path}.gone`);
            return;
          } catch { /* once more */ }
        }
      };
      gone();
      return loading.finally(() => clearInterval(timer));
    }) as Error;
    assert(error.message.includes(path), error.message);
  }));

Deno.test("a Blob that cannot be read is one clear error", async () => {
  const bytes = Deno.readFileSync(DEMO);
  class Broken extends Blob {
    reads = 0;
    override slice(start = 0, end = 0): Blob {
      if (start > 1_000_000) throw new Error("the disk is gone");
      return super.slice(start, end);
    }
  }
  const error = await assertRejects(() => loadModel(new Broken([bytes])), EngineError);
  assert(error.message.includes("the disk is gone"), error.message);
});

Deno.test("a model says in a few words what it is", async () => {
  await using model = await loadModel(DEMO);
  assertEquals(model.info.desc, "qwen3, 1.7 M parameters, F16, 3.2 MiB");
});

Deno.test("progress goes from 0 to 1 and never back", async () => {
  const seen: number[] = [];
  await using _model = await loadModel(DEMO, { onProgress: (fraction) => seen.push(fraction) });
  assertEquals(seen, seen.toSorted((a, b) => a - b));
  assertEquals([seen[0], seen.at(-1)], [0, 1]);
});

Deno.test("an onProgress that throws fails the load with its error", async () => {
  await assertRejects(
    () =>
      loadModel(DEMO, {
        onProgress: () => {
          throw new Error("mine");
        },
      }),
    Error,
    "mine",
  );
});

Deno.test("an onLog that throws does no harm", async () => {
  let lines = 0;
  await using model = await loadModel(DEMO, {
    onLog: () => {
      lines++;
      throw new Error("mine");
    },
  });
  await using context = await model.createContext(SMALL);
  assert((await greedy(context, STORY, 2)).length > 0);
  assert(lines > 0);
});

Deno.test("onLog receives whole lines with their weight", async () => {
  const lines: [string, string][] = [];
  {
    await using model = await loadModel(DEMO, {
      onLog: (...line) => lines.push(line),
      verbosity: 3,
    });
    await using _context = await model.createContext(SMALL);
  }
  assert(lines.length > 0);
  for (const [level, line] of lines) {
    assert(["debug", "info", "warn", "error"].includes(level));
    assert(!line.endsWith("\n"));
  }
});

Deno.test("loadModel() refuses wrong options by name", async () => {
  const wrong: [Record<string, unknown>, string][] = [
    [{ verbosity: NaN }, "verbosity"],
    [{ verbosity: "3" }, "verbosity"],
    [{ verbosity: 1e12 }, "verbosity"],
    [{ args: "x" }, "args"],
    [{ args: [1] }, "args"],
    [{ onLog: 5 }, "onLog"],
    [{ onProgress: "x" }, "onProgress"],
    [{ dist: "x" }, "dist"],
    [{ signal: 5 }, "signal"],
    [{ layersOnGpu: 1 }, `"layersOnGpu"; there are gpuLayers, `],
    [{ gpu: "maybe" }, "gpu must be one of auto, off, required"],
    [{ gpuLayers: -1 }, "gpuLayers"],
    [{ gpuLayers: "some" }, "gpuLayers"],
    [{ gpu: "required", gpuLayers: 0 }, "gpuLayers: 0"],
    [{ powerPreference: "most" }, "powerPreference"],
    [{ verbose: 1 }, `did you mean "verbosity"?`],
  ];
  for (const [options, name] of wrong) {
    await assertRejects(() => loadModel(DEMO, options), TypeError, name).catch(() =>
      assertRejects(() => loadModel(DEMO, options), RangeError, name)
    );
  }
});

Deno.test("a folder without a built WASM is an error that names the command", () =>
  inFolder(async (folder) => {
    const dist = new URL(`file://${folder}/`);
    await assertRejects(() => loadModel(DEMO, { dist }), EngineError, "deno task build");
  }));

Deno.test("halves of two builds refuse to work together", () =>
  inFolder(async (folder) => {
    const built = new URL("../../wasm/dist/", import.meta.url);
    for (const name of ["rys.js", "rys.wasm"]) {
      await Deno.symlink(new URL(name, built).pathname, `${folder}/${name}`);
    }
    await Deno.writeTextFile(`${folder}/build.json`, JSON.stringify({ id: "0123456789abcdef" }));
    const error = await assertRejects(
      () => loadModel(DEMO, { dist: new URL(`file://${folder}/`) }),
      EngineError,
    );
    assert(error.message.includes("0123456789abcdef"), error.message);
    assert(error.message.includes("deno task build"), error.message);
  }));
