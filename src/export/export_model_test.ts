import { assert, assertEquals, assertRejects } from "@std/assert";
import { plainKey, type TestFile, writeGgufFile } from "../gguf/_testing.ts";
import { readModel } from "../gguf/mod.ts";
import { ExportError, exportModel } from "./mod.ts";

const filled = (byte: number) => (bytes: Uint8Array) => void bytes.fill(byte);

/** A model of 3 layers and a next-token layer, whose tensors say which they are; aligned to 64 bytes. */
const FILE: TestFile = {
  alignment: 64,
  keys: [
    plainKey("general.architecture", "qwen35"),
    plainKey("qwen35.block_count", 4),
    plainKey("qwen35.nextn_predict_layers", 1),
    plainKey("qwen35.attention.head_count", 4),
    plainKey("qwen35.feed_forward_length", [10, 11, 12, 13]),
    plainKey("tokenizer.ggml.tokens", ["a", "\u00fc", "", "b\u0000c"]),
    plainKey("rys.layer_plan", "1,2"),
  ],
  tensors: [
    { name: "token_embd.weight", shape: [3, 5], data: filled(100) },
    ...[0, 1, 2, 3].flatMap((il) => [
      { name: `blk.${il}.a.weight`, shape: [7], data: filled(10 + il) },
      { name: `blk.${il}.b.weight`, shape: [32, 2], type: 8, data: filled(20 + il) },
    ]),
    { name: "output.weight", shape: [2], data: filled(101) },
  ],
};

async function withModel(use: (path: string, folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "rys-export-" });
  try {
    writeGgufFile(`${folder}/m.gguf`, FILE);
    await use(`${folder}/m.gguf`, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Each tensor with the one byte that all its data are. */
async function contents(path: string): Promise<[name: string, byte: number][]> {
  const { files, header } = await readModel(path);
  const bytes = files.map((file) => Deno.readFileSync(file));
  return header.tensors.map(({ name, shard, offset, bytes: length }) => {
    const data = new Set(bytes[shard]!.subarray(offset, offset + length));
    assertEquals(data.size, 1, name);
    return [name, [...data][0]!];
  });
}

Deno.test("layers stand in the plan's order with their data, next-token layers last", async () => {
  await withModel(async (path, folder) => {
    const order = [0, 1, 2, 1, 2, 3];
    const expected = [
      ["token_embd.weight", 100],
      ...order.flatMap((il, place) => [
        [`blk.${place}.a.weight`, 10 + il],
        [`blk.${place}.b.weight`, 20 + il],
      ]),
      ["output.weight", 101],
    ];
    for (const splitMaxTensors of [undefined, 3, 1]) {
      const report = await exportModel(path, `${folder}/o${splitMaxTensors}.gguf`, {
        repeatLayers: "1,3",
        splitMaxTensors,
      });
      assertEquals(report.files.length, splitMaxTensors ? Math.ceil(14 / splitMaxTensors) : 1);
      assertEquals([report.nLayer, report.nextn, report.nTensors], [5, 1, 14]);
      assertEquals(await contents(report.files[0]!), expected);
      const { header } = await readModel(report.files[0]!);
      assertEquals([header.nLayer, header.nextn, header.alignment], [5, 1, 64]);
      const value = (key: string) => header.metadata.get(key)?.value;
      assertEquals(value("qwen35.feed_forward_length"), [10, 11, 12, 11, 12, 13]);
      // By its number, layer 3 would attend: (3 + 1) % 4 == 0.
      const recurrent = [true, true, true, true, true, false];
      assertEquals(value("qwen35.attention.recurrent_layers"), recurrent);
      assertEquals(value("tokenizer.ggml.tokens"), ["a", "\u00fc", "", "b\u0000c"]);
      assertEquals(header.layerPlan, undefined);
      assertEquals(value("split.count"), splitMaxTensors && report.files.length);
    }
  });
});

Deno.test("the file's own plan is the default, and --plan-only's default to keep", async () => {
  await withModel(async (path, folder) => {
    assertEquals((await exportModel(path, `${folder}/a.gguf`)).nLayer, 4);
    const kept = await exportModel(path, `${folder}/b.gguf`, { planOnly: true });
    assertEquals([kept.nLayer, kept.plan.nLayerEff], [3, 4]);
    assertEquals(await Deno.readFile(`${folder}/b.gguf`), await Deno.readFile(path));
  });
});

Deno.test("what fails or is stopped leaves nothing behind, and the old file as it was", async () => {
  await withModel(async (path, folder) => {
    const output = `${folder}/o.gguf`;
    await Deno.writeTextFile(output, "old");
    const stop = new AbortController();
    const stopped = exportModel(path, output, {
      force: true,
      signal: stop.signal,
      onProgress: () => stop.abort(new Error("enough")),
    });
    await assertRejects(() => stopped, Error, "enough");
    await assertRejects(() => exportModel(path, output), ExportError, "the file exists");
    await assertRejects(
      () => exportModel(path, path, { force: true }),
      ExportError,
      "it is the model",
    );
    const names = [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
    assertEquals(names, ["m.gguf", "o.gguf"]);
    assertEquals(await Deno.readTextFile(output), "old");
    let last = [0, 0];
    const { bytes } = await exportModel(path, output, {
      force: true,
      onProgress: (written, total) => {
        assert(written > last[0]! || written === last[0]);
        last = [written, total];
      },
    });
    assertEquals(last, [bytes, bytes]);
    assertEquals((await Deno.stat(output)).size, bytes);
  });
});

Deno.test("tensors that hold something of every layer get it in the plan's order", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rys-export-" });
  try {
    const [nLayer, width, nVocab] = [4, 32, 3];
    // 34 bytes are a block of 32 values: a row of the table is one block for each layer.
    const table = Uint8Array.from(
      { length: nVocab * nLayer * 34 },
      (_, i) => 10 * (1 + Math.floor(i / 34 / nLayer)) + Math.floor(i / 34) % nLayer,
    );
    const projection = Uint8Array.from(
      { length: 2 * 4 * width * nLayer },
      (_, i) => Math.floor(i / (2 * 4 * width)),
    );
    const path = `${folder}/m.gguf`;
    writeGgufFile(path, {
      keys: [
        plainKey("general.architecture", "gemma4"),
        plainKey("gemma4.block_count", nLayer),
        plainKey("gemma4.attention.head_count", 4),
        plainKey("gemma4.attention.sliding_window", 8),
        plainKey("gemma4.attention.sliding_window_pattern", [1, 0, 1, 0]),
        plainKey("gemma4.embedding_length_per_layer_input", width),
      ],
      tensors: [
        {
          name: "per_layer_token_embd.weight",
          shape: [width * nLayer, nVocab],
          type: 8,
          data: table,
        },
        { name: "per_layer_model_proj.weight", shape: [2, width * nLayer], data: projection },
        { name: "blk.0.a.weight", shape: [2], data: filled(1) },
      ],
    });
    const output = `${folder}/o.gguf`;
    await exportModel(path, output, { repeatLayers: "1,3" });
    const { header } = await readModel(output);
    const bytes = await Deno.readFile(output);
    const [rows, groups] = header.tensors.map(({ shape, offset, bytes: length }) => ({
      shape,
      data: [...bytes.subarray(offset, offset + length)],
    }));
    const order = [0, 1, 2, 1, 2, 3];
    const times = (n: number, byte: number) => Array<number>(n).fill(byte);
    assertEquals(rows!.shape, [width * 6, nVocab]);
    assertEquals(
      rows!.data,
      [10, 20, 30].flatMap((row) => order.flatMap((il) => times(34, row + il))),
    );
    assertEquals(groups!.shape, [2, width * 6]);
    assertEquals(groups!.data, order.flatMap((il) => times(2 * 4 * width, il)));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a process that is killed while it writes leaves no file under the output's name", async () => {
  await withModel(async (path, folder) => {
    const output = `${folder}/o.gguf`;
    const script = `
      import { exportModel } from ${JSON.stringify(new URL("./mod.ts", import.meta.url).href)};
      await exportModel(Deno.args[0], Deno.args[1], {
        onProgress: (written, total) => 2 * written > total && Deno.kill(Deno.pid, "SIGKILL"),
      });`;
    const killed = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--no-check", script, path, output],
      stderr: "piped",
    }).output();
    assertEquals(killed.signal, "SIGKILL", new TextDecoder().decode(killed.stderr));
    const names = [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
    assertEquals(names.length, 2);
    assert(/^o\.gguf\.[0-9a-f]{8}\.partial$/.test(names[1]!), names[1]);
    assertEquals((await exportModel(path, output)).files, [output]);
  });
});
