import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { withHub } from "../hub/_hub.ts";
import { json, MODEL, program } from "./_program.ts";
import { plainKey, writeGguf } from "../../src/gguf/_testing.ts";

Deno.test("inspect shows the demo model, by either way of naming it", async () => {
  const { code, out, err } = await program(["inspect", MODEL]);
  assertEquals([code, err], [0, ""]);
  for (
    const part of [
      "architecture  = qwen3\n",
      "n_layer       = 40\n",
      "plans         = any\n",
      `\n 0 ${"A".repeat(40)}\nA attention: 40\n`,
      "\nf16       281  ",
    ]
  ) assertStringIncludes(out, part);
  assertEquals((await program(["inspect", "-m", MODEL])).out, out);
  const demo = await program(["inspect"]);
  assertEquals([demo.out, demo.err], [out, "note: no model is named, so this is the demo model\n"]);
});

Deno.test("inspect --json prints what the table shows", async () => {
  const { code, out } = await program(["inspect", MODEL, "--json"]);
  assertEquals(code, 0);
  const model = JSON.parse(out);
  assertEquals(
    [model.architecture, model.n_layer, model.n_layer_nextn, model.n_ctx_train, model.plans],
    ["qwen3", 40, 0, 2048, "any"],
  );
  assertEquals(model.layers.length, 40);
  assertEquals(model.remote, false);
  assertEquals(
    model.types.reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0),
    model.weight_bytes,
  );
});

Deno.test("inspect and plan read a few bytes of a model on the hub", async () => {
  const bytes = writeGguf({
    keys: [
      plainKey("general.architecture", "deepseek2"),
      plainKey("deepseek2.block_count", 16),
      plainKey("deepseek2.leading_dense_block_count", 1),
      plainKey("deepseek2.embedding_length", 64),
      plainKey("deepseek2.attention.head_count", 2),
      plainKey("deepseek2.context_length", 512),
    ],
    tensors: [{ name: "output.weight", shape: [1024, 8192] }],
  });
  await withHub({ "o/r": { files: { "m-Q8_0.gguf": bytes } } }, async (hub, cache) => {
    const env = { HF_ENDPOINT: hub.endpoint, HF_HUB_CACHE: cache, HF_TOKEN: "" };
    const { code, out, err } = await program(["inspect", "hf:o/r", "--json"], { env });
    assertEquals([code, err], [0, ""]);
    const model = JSON.parse(out);
    assertEquals([model.n_layer, model.remote, model.plans], [16, true, "some"]);
    assertEquals(model.weight_bytes, 4 * 1024 * 8192);
    assertStringIncludes(model.plans_why, "its first layer is dense");
    const fetched = hub.seen.filter(({ server }) => server === "bytes");
    assert(fetched.length > 0);
    for (const { range } of fetched) {
      const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(range!)!;
      assert(Number(last) - Number(first) < 2 ** 20, range!);
    }
    const url = `${hub.bytes}/plain/o/r/m-Q8_0.gguf`;
    assertEquals(JSON.parse((await program(["inspect", url, "--json"], { env })).out).n_layer, 16);

    const plan = await json(["plan", "-m", "hf:o/r", "--repeat-layers", "6,9", "-c", "512"], {
      env,
    });
    assertEquals([plan.n_layer_eff, plan.cost.kv_bytes * 16], [19, plan.cost.kv_bytes_base * 19]);
  });
});

Deno.test("inspect says what is wrong", async () => {
  for (
    const [args, code, part] of [
      [["inspect", "none.gguf"], 1, "none.gguf: there is no such file"],
      [["inspect", MODEL, MODEL], 2, "inspect shows one model"],
      [["inspect", MODEL, "-m", MODEL], 2, "inspect shows one model"],
      [["inspect", "hf:a"], 2, "hf:a"],
      [["inspect", MODEL, "--repeat-layers", "1,2"], 2, "--repeat-layers"],
    ] as const
  ) {
    const result = await program([...args]);
    assertEquals([args, result.code], [args, code]);
    assertStringIncludes(result.err, part);
    assertEquals(result.err.trimEnd().split("\n").length, 1, result.err);
  }
});
