import { assertEquals, assertStringIncludes } from "@std/assert";
import { plainKey, writeGguf } from "../../src/gguf/_testing.ts";
import { json, MODEL, program } from "./_program.ts";

const args = ["plan", "--n-layer", "64", "--repeat-layers", "26,34"];

Deno.test("plan --json prints exactly the plan", async () => {
  const { code, out, err } = await program([...args, "--json"]);
  assertEquals([code, err], [0, ""]);
  const layers = Array.from({ length: 72 }, (_, p) => p < 34 ? p : p - 8);
  assertEquals(
    out,
    JSON.stringify({
      n_layer: 64,
      n_layer_eff: 72,
      spec: "26,34",
      layers,
      runs: [
        { repeat_start: 0, repeat_end: 26, repeat_count: 1 },
        { repeat_start: 26, repeat_end: 34, repeat_count: 2 },
        { repeat_start: 34, repeat_end: 64, repeat_count: 1 },
      ],
      seams: [34],
      advisories: [],
    }) + "\n",
  );
});

Deno.test("plan draws the layers and warns", async () => {
  const { code, out } = await program(["plan", "--n-layer", "8", "--repeat-layers", "3..4;6,7"]);
  assertEquals(code, 0);
  assertStringIncludes(out, "n_layer_eff = 11\n");
  assertStringIncludes(out, "0..2 | 3..4 x2 | 5 | 6 x2 | 7\n");
  assertStringIncludes(out, " 0 ···11|22·1|2·\n");
  assertStringIncludes(out, "advisory: ");
});

Deno.test("plan -m reads the header and tells the cost", async () => {
  const plan = await json(["plan", "-m", MODEL, "--repeat-layers", "20,30"]);
  assertEquals([plan.n_layer, plan.n_layer_eff], [40, 50]);
  assertEquals(plan.cost.kv_bytes, plan.cost.kv_bytes_base * 50 / 40);
  assertEquals(plan.cost.recurrent_bytes, 0);
  assertEquals(Math.abs(plan.cost.compute_ratio - 1.25) < 0.02, true);
  const half = await json(["plan", "-m", MODEL, "--repeat-layers", "20,30", "-c", "512"]);
  const quarter = await json(["plan", "-m", MODEL, "--repeat-layers", "20,30", "-c", "256"]);
  assertEquals(half.cost.kv_bytes, 2 * quarter.cost.kv_bytes);
});

Deno.test("plan without a model takes the demo model, and says so", async () => {
  const { code, out, err } = await program(["plan", "--repeat-layers", "33,34"]);
  assertEquals(code, 0);
  assertStringIncludes(out, "n_layer_eff = 41\n");
  assertStringIncludes(out, "kv cache ");
  assertEquals(
    err,
    "note: no -m or --n-layer is given, so this is the plan on the demo model\n",
  );
});

Deno.test("plan warns of layers left out", async () => {
  const args = ["plan", "--n-layer", "40", "--repeat-layers", "layers:0..3,3,39"];
  assertStringIncludes((await program(args)).out, "35 of 40 layers are skipped (4..38)");
});

Deno.test("plan --to writes what --from reads", async () => {
  const { layers } = await json(args);
  for (const form of ["mergekit", "rys_relayer", "layers", "spec"]) {
    const { code, out } = await program([...args, "--to", form, "--source", "some/model"]);
    assertEquals(code, 0);
    const back = await json(["plan", "--n-layer", "64", "--from", "-"], { stdin: out });
    assertEquals(back.layers, layers, form);
  }
  const relayer = (await program([...args, "--to", "rys_relayer"])).out;
  assertEquals((await json(["plan", "--from", "-"], { stdin: relayer })).n_layer, 64);
});

Deno.test("plan --to names no repository that nobody gave", async () => {
  const args = ["plan", "-m", MODEL, "--repeat-layers", "26,34", "--to"];
  const { out } = await program([...args, "mergekit"]);
  assertEquals(out.match(/model: .*/g), ["model: null", "model: null"]);
  assertStringIncludes(out, "# Write the model's folder or repository");
  const relayer = JSON.parse((await program([...args, "rys_relayer"])).out);
  assertEquals(relayer.rys_relayer.source_repo_id, null);
  const named = (await program([...args, "mergekit", "--source", "a/b"])).out;
  assertEquals(named.match(/model: .*/g), ['model: "a/b"', 'model: "a/b"']);
});

Deno.test("--repeat-layers takes what other programs write", async () => {
  for (
    const [spec, layers] of [
      ["(33,36)", 43],
      ["0,0", 40],
      ["0..13,10..39", 44],
      ["[[0, 14], [10, 40]]", 44],
      ['{"key": [33, 36]}', 43],
      ['{"spec": "blocks:33,36"}', 43],
    ] as const
  ) {
    const plan = await json(["plan", "-m", MODEL, "--repeat-layers", spec]);
    assertEquals([spec, plan.n_layer_eff], [spec, layers]);
  }
  const { code, err } = await program(["plan", "-m", MODEL, "--repeat-layers", "[33, 36]"]);
  assertEquals(code, 2);
  assertStringIncludes(err, 'a block to repeat is written "33,36"');
});

Deno.test("plan takes its default from the environment", async () => {
  const env = { LLAMA_ARG_REPEAT_LAYERS: "26,34" };
  assertEquals((await json(["plan", "--n-layer", "64"], { env })).n_layer_eff, 72);
  const over = ["plan", "--n-layer", "64", "--repeat-layers", "none"];
  assertEquals((await json(over, { env })).n_layer_eff, 64);
  const bad = { LLAMA_ARG_REPEAT_LAYERS: "34,33" };
  const { code, err } = await program(["plan", "--n-layer", "64"], { env: bad });
  assertEquals(code, 2);
  assertStringIncludes(err, "error: LLAMA_ARG_REPEAT_LAYERS: ");
});

Deno.test("plan refuses what does not go together", async () => {
  for (
    const wrong of [
      ["plan", "--n-layer", "8", "-m", MODEL],
      ["plan", "--n-layer", "8", "--repeat-layers", "1,2", "--from", "-"],
      ["plan", "--n-layer", "0"],
      ["plan", "--n-layer", "8", "--to", "yaml"],
    ]
  ) {
    const { code, err } = await program(wrong);
    assertEquals(code, 2, wrong.join(" "));
    assertEquals(err.trimEnd().split("\n").length, 1, err);
  }
});

Deno.test("--repeat-layers @FILE reads a recipe in each of its forms, and so does an alias", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const { layers } = await json(["plan", "--n-layer", "40", "--repeat-layers", "26,34;10,12"]);
    const files: Record<string, string> = {
      "flow.yaml": "blocks: [[26,34],[10,12]]\n",
      "block.yaml": "# found\nblocks:\n  - [26, 34]\n  - [10, 12]\n",
      "text.yaml": "name: x\nblocks: 26,34;10,12\n",
      "blocks.json": '{ "blocks": [[26, 34], [10, 12]] }',
      "layers.json": JSON.stringify({ layers }),
      "layers.yaml": `layers: [${layers.join(", ")}]\n`,
      "spec.txt": "26,34;10,12\n",
    };
    for (const form of ["mergekit", "rys_relayer"]) {
      const { out } = await program([
        ...["plan", "-m", MODEL, "--repeat-layers", "26,34;10,12", "--to", form],
      ]);
      files[form] = out;
    }
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${name}`, text);
      const plan = await json(["plan", "-m", MODEL, "--repeat-layers", `@${folder}/${name}`]);
      assertEquals(plan.layers, layers, name);
    }
    const at = `@${folder}/flow.yaml`;
    const run = await json(["run", "-p", "Once", "-n", "2", "--repeat-layers", at]);
    assertEquals(run.plan.layers, layers);
    const env = { LLAMA_ARG_REPEAT_LAYERS: at };
    assertEquals((await json(["logits", "-p", "Once"], { env })).plan.layers, layers);

    await Deno.writeTextFile(`${folder}/wrong.yaml`, "blocks: [[34,26]]\n");
    for (
      const [args, code, part] of [
        [["--repeat-layers", `${folder}/flow.yaml`], 2, `write @${folder}/flow.yaml`],
        [["--repeat-layers", `@${folder}/wrong.yaml`], 2, "reversed"],
        [["--repeat-layers", `@${folder}/none.yaml`], 1, "no such file"],
        [["--repeat-layers", "@"], 2, "name of a file"],
        [["serve", "--alias", `deep=@${folder}/none.yaml`], 1, "no such file"],
        [["serve", "--alias", `deep=${folder}/flow.yaml`], 2, `write @${folder}/flow.yaml`],
        [["serve", "--alias", `deep=@${folder}/wrong.yaml`], 2, "reversed"],
      ] as const
    ) {
      const result = await program([...args]);
      assertEquals(result.code, code, result.err);
      assertStringIncludes(result.err, part);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("plan -m tells where a model and its caches fit", async () => {
  const { out } = await program([
    ...["plan", "-m", MODEL, "--repeat-layers", "20,30", "--gpu", "off"],
  ]);
  assertStringIncludes(out, "WASM memory = 15.7 MiB of 15.5 GiB\n");
  assertEquals(out.includes("GPU "), false);
  const args = ["plan", "-m", MODEL, "--gpu", "off", "-c"];
  const huge = JSON.parse((await program([...args, "40000000", "--json"])).out);
  assertEquals([huge.memory.fits_cpu, huge.memory.gpu], [false, null]);
  assertEquals(huge.memory.cpu_bytes, huge.model.weight_bytes + huge.cost.kv_bytes);
  assertStringIncludes((await program([...args, "40000000"])).out, "GiB of 15.5 GiB: too much\n");
  const slots = await json([...args, "1024", "-np", "3", "-ctk", "q8_0", "-ctv", "f32"]);
  const one = await json([...args, "1024"]);
  assertEquals(slots.cost.kv_bytes * 4 * 32, one.cost.kv_bytes * (34 + 128));
});

Deno.test("plan -m refuses what the engine would refuse, and still shows the plan", async () => {
  const path = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    const keys = {
      block_count: 16,
      leading_dense_block_count: 2,
      embedding_length: 64,
      "attention.head_count": 2,
      context_length: 512,
    };
    await Deno.writeFile(
      path,
      writeGguf({
        keys: [
          plainKey("general.architecture", "deepseek2"),
          ...Object.entries(keys).map(([key, value]) => plainKey(`deepseek2.${key}`, value)),
        ],
      }),
    );
    const args = ["plan", "-m", path, "--gpu", "off", "--repeat-layers"];
    const good = await json([...args, "6,9"]) as unknown as { refused: unknown };
    assertEquals(good.refused, null);
    const { code, out, err } = await program([...args, "1,4"]);
    const why =
      "'deepseek2' cannot run this plan: layer 1 at place 4: one of the first 2 layers, which are dense, would run after a layer with experts";
    assertEquals([code, err], [1, `error: ${why}\n`]);
    assertStringIncludes(out, "n_layer_eff = 19\n");
    assertEquals(JSON.parse((await program([...args, "1,4", "--json"])).out).refused, why);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("plan --suggest names plans that run, with what they cost", async () => {
  const args = ["plan", "-m", MODEL, "--suggest"];
  const { code, out } = await program(args);
  assertEquals(code, 0);
  assertStringIncludes(out, "20,21  41 layers, x1.02, +256 KiB\n");
  assertStringIncludes(out, "Layers 5..34 of 40 may be repeated");
  const { suggestions, band } = JSON.parse((await program([...args, "--json"])).out);
  assertEquals(band, [5, 35]);
  for (const { spec, n_layer_eff, cost } of suggestions) {
    const plan = await json(["plan", "-m", MODEL, "--gpu", "off", "--repeat-layers", spec]);
    assertEquals([plan.n_layer_eff, plan.cost], [n_layer_eff, cost]);
  }
  const both = await program([...args, "--repeat-layers", "10,14"]);
  assertEquals(both.code, 2);
  assertStringIncludes(both.err, "--suggest and --repeat-layers exclude each other");
  const without = await program(["plan", "--n-layer", "40", "--suggest"]);
  assertEquals(without.code, 2);
  assertStringIncludes(without.err, "--suggest needs a model");
});
