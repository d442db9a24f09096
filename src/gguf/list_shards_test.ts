import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { GgufError } from "./gguf_error.ts";
import { listShards, parseShardName, shardNames } from "./list_shards.ts";
import { readModel } from "./read_model.ts";
import { plainKey, type TestFile, writeGguf } from "./_testing.ts";

const shard = (prefix: string, n: number, of: number) =>
  `${prefix}-${String(n).padStart(5, "0")}-of-${String(of).padStart(5, "0")}.gguf`;

function shardFile(no: number, count: number, tensors: string[], total?: number): TestFile {
  return {
    keys: [
      ...(no === 0
        ? [plainKey("general.architecture", "llama"), plainKey("llama.block_count", 3)]
        : []),
      { key: "split.no", type: "uint16", value: no },
      { key: "split.count", type: "uint16", value: count },
      { key: "split.tensors.count", type: "int32", value: total ?? 3 },
    ],
    tensors: tensors.map((name) => ({ name, shape: [32] })),
  };
}

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function writeModel(prefix: string): Promise<void> {
  await Deno.writeFile(shard(prefix, 1, 3), writeGguf(shardFile(0, 3, ["blk.0.a"])));
  await Deno.writeFile(shard(prefix, 2, 3), writeGguf(shardFile(1, 3, ["blk.1.a"])));
  await Deno.writeFile(shard(prefix, 3, 3), writeGguf(shardFile(2, 3, ["blk.2.a"])));
}

Deno.test("parseShardName() tells shards from other names", () => {
  assertEquals(parseShardName("/x/m-Q4_0-00002-of-00011.gguf"), {
    prefix: "/x/m-Q4_0",
    number: 2,
    count: 11,
  });
  for (
    const name of [
      "m.gguf",
      "m-1-of-2.gguf",
      "m-00001-of-00002.bin",
      "m-00001-of-00002.gguf.part",
      "",
    ]
  ) {
    assertEquals(parseShardName(name), undefined);
  }
  assertThrows(
    () => parseShardName("m-00003-of-00002.gguf"),
    GgufError,
    "its name says shard 3 of 2",
  );
  assertThrows(
    () => parseShardName("m-00000-of-00002.gguf"),
    GgufError,
    "its name says shard 0 of 2",
  );
});

Deno.test("shardNames() names all shards in order, from any one", () => {
  const names = shardNames("m-00011-of-00012.gguf");
  assertEquals([names.length, names[1], names[11]], [
    12,
    "m-00002-of-00012.gguf",
    "m-00012-of-00012.gguf",
  ]);
});

Deno.test("listShards() finds all shards from any one, and names those that are missing", async () => {
  await inFolder(async (folder) => {
    const prefix = `${folder}/m`;
    await writeModel(prefix);
    const all = [1, 2, 3].map((n) => shard(prefix, n, 3));
    for (const one of all) assertEquals(await listShards(one), all);
    await Deno.remove(all[1]!);
    const error = await assertRejects(() => listShards(all[2]!), GgufError);
    assertEquals(error.message, `${all[2]}: 1 of 3 shards is missing: m-00002-of-00003.gguf`);
    await Deno.remove(all[0]!);
    await assertRejects(
      () => listShards(all[2]!),
      GgufError,
      "2 of 3 shards are missing: m-00001-of-00003.gguf, m-00002-of-00003.gguf",
    );
    await assertRejects(() => listShards(shard(prefix, 1, 99999)), GgufError, "and 99995 more");
  });
});

Deno.test("readModel() puts the shards' tensors together", async () => {
  await inFolder(async (folder) => {
    const prefix = `${folder}/m`;
    await writeModel(prefix);
    const { files, header } = await readModel(shard(prefix, 2, 3));
    assertEquals(files.length, 3);
    assertEquals(header.tensors.map((t) => [t.name, t.shard]), [["blk.0.a", 0], ["blk.1.a", 1], [
      "blk.2.a",
      2,
    ]]);
    assertEquals([header.weightBytes, header.nLayer, header.splitCount], [3 * 128, 3, 3]);
  });
});

Deno.test("readModel() reads a model in one file", async () => {
  await inFolder(async (folder) => {
    await Deno.writeFile(`${folder}/m.gguf`, writeGguf({ tensors: [{ name: "t", shape: [32] }] }));
    assertEquals((await readModel(`${folder}/m.gguf`)).header.tensors.length, 1);
  });
});

Deno.test("readModel() refuses shards that do not belong together", async () => {
  await inFolder(async (folder) => {
    const prefix = `${folder}/m`;
    await writeModel(prefix);
    const path = shard(prefix, 1, 3);
    const replace = (n: number, file: TestFile) =>
      Deno.writeFile(shard(prefix, n, 3), writeGguf(file));

    await replace(2, shardFile(2, 3, ["blk.1.a"]));
    await assertRejects(
      () => readModel(path),
      GgufError,
      "it says that it is shard 3 of 3, its name says 2 of 3",
    );
    await replace(2, shardFile(1, 4, ["blk.1.a"]));
    await assertRejects(
      () => readModel(path),
      GgufError,
      "it says that it is shard 2 of 4, its name says 2 of 3",
    );
    await replace(2, shardFile(1, 3, ["blk.0.a"]));
    await assertRejects(() => readModel(path), GgufError, "another shard has the same tensor");
    await replace(2, shardFile(1, 3, ["blk.1.a", "blk.1.b"]));
    await assertRejects(
      () => readModel(path),
      GgufError,
      "3 tensors were promised, the shards have 4",
    );
    await replace(1, shardFile(0, 2, ["blk.0.a"]));
    await assertRejects(
      () => readModel(path),
      GgufError,
      "it says that there are 2 shards, its name says 3",
    );
    await Deno.rename(path, `${prefix}.gguf`);
    await assertRejects(
      () => readModel(`${prefix}.gguf`),
      GgufError,
      "it is shard 1 of 2, and its name does not tell",
    );
  });
});
