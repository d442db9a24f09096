import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { readHeader, readModel } from "../../src/gguf/mod.ts";
import { json, MOD, MODEL, program } from "./_program.ts";

async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "rys-export-" });
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const namesIn = (folder: string) => [...Deno.readDirSync(folder)].map(({ name }) => name).sort();

Deno.test("export writes a plan's layers out, in one file or in shards that are read again", async () => {
  await withFolder(async (folder) => {
    const whole = `${folder}/deep.gguf`;
    const plan = ["--repeat-layers", "26,34"];
    const { code, out, err } = await program(["export", ...plan, "-o", whole]);
    assertEquals([code, err], [0, ""]);
    assertMatch(out, /deep\.gguf: 3\.88 MiB, 48 layers, 530 tensors\n$/);
    const header = await readHeader(whole);
    assertEquals([header.nLayer, header.tensors.length, header.layerPlan], [48, 530, undefined]);
    assertEquals(header.size, (await Deno.stat(whole)).size);

    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", new URL("../../mod.ts", import.meta.url).href, "export"]
        .concat(
          [...plan, "-o", `${folder}/part.gguf`, "--split-max-tensors", "200", "--json"],
        ),
      env: { LLAMA_ARG_REPEAT_LAYERS: "" },
    }).output();
    const report = JSON.parse(new TextDecoder().decode(stdout));
    const shards = [1, 2, 3].map((n) => `${folder}/part-0000${n}-of-00003.gguf`);
    assertEquals(report.files, shards);
    assertEquals([report.shards, report.n_layer, report.n_tensors], [3, 48, 530]);
    assertEquals(report.plan.n_layer_eff, 48);
    const sizes = await Promise.all(shards.map(async (path) => (await Deno.stat(path)).size));
    assertEquals(report.bytes, sizes.reduce((sum, size) => sum + size));
    const split = await readModel(shards[1]!);
    assertEquals(split.header.tensors.map(({ name }) => name), header.tensors.map((t) => t.name));

    // Shards put together again are the file, byte for byte.
    const again = `${folder}/again.gguf`;
    await json(["export", "-m", shards[0]!, "-o", again]);
    assertEquals(await Deno.readFile(again), await Deno.readFile(whole));
    assertEquals(namesIn(folder), [
      "again.gguf",
      "deep.gguf",
      ...shards.map((path) => path.slice(folder.length + 1)),
    ]);
  });
});

Deno.test("without a plan the copy has every byte of the model", async () => {
  await withFolder(async (folder) => {
    await json(["export", "-o", `${folder}/same.gguf`]);
    assertEquals(await Deno.readFile(`${folder}/same.gguf`), await Deno.readFile(MODEL));
  });
});

Deno.test("--plan-only writes a file that carries its plan, which runs unless told otherwise", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/own.gguf`;
    await json(["export", "--plan-only", "--repeat-layers", "26,34", "-o", path]);
    const header = await readHeader(path);
    assertEquals([header.nLayer, header.layerPlan], [40, "26,34"]);

    const logits = ["logits", "-m", path, "--gpu", "off", "--tokens", "1,2,3"];
    const own = await program([...logits, "--json"]);
    assertEquals(JSON.parse(own.out).plan.n_layer_eff, 48);
    assertStringIncludes(own.err, "file's plan = 26,34 (rys.layer_plan) runs");
    // Another spelling of the same plan.
    const spelt = await program([...logits, "--repeat-layers", "layers:0..33,26..39"]);
    assertStringIncludes(spelt.err, "file's plan = 26,34 (rys.layer_plan) runs");
    const none = await program([...logits, "--repeat-layers", "none", "--json"]);
    assertEquals(JSON.parse(none.out).plan.n_layer_eff, 40);
    assertStringIncludes(none.err, "file's plan = 26,34 (rys.layer_plan) does not run");
    assertEquals((await json(["plan", "-m", path])).n_layer_eff, 48);

    // Written out, the plan is in the layers and no longer in the metadata.
    const flat = `${folder}/flat.gguf`;
    await json(["export", "-m", path, "-o", flat]);
    const written = await readHeader(flat);
    assertEquals([written.nLayer, written.layerPlan], [48, undefined]);
    await json([
      "export",
      "-m",
      path,
      "--plan-only",
      "--repeat-layers",
      "none",
      "-o",
      flat,
      "--force",
    ]);
    assertEquals((await readHeader(flat)).layerPlan, undefined);
  });
});

Deno.test("--format writes the plan for other programs", async () => {
  await withFolder(async (folder) => {
    const plan = ["--repeat-layers", "26,34"];
    const yaml = await program(["export", ...plan, "--format", "mergekit", "--source", "o/r"]);
    assertEquals(yaml.code, 0);
    const path = `${folder}/recipe.yaml`;
    await program(["export", ...plan, "--format", "mergekit", "--source", "o/r", "-o", path]);
    assertEquals(await Deno.readTextFile(path), yaml.out);
    const read = await json(["plan", "--from", path, "--n-layer", "40"]);
    const { out } = await program(["export", ...plan, "--format", "rys"]);
    assertEquals(JSON.parse(out).rys_relayer.layer_indices, read.layers);
  });
});

Deno.test("export never replaces a file unasked, and leaves nothing half-written", async () => {
  await withFolder(async (folder) => {
    const path = `${folder}/a.gguf`;
    await Deno.writeTextFile(path, "mine");
    for (
      const [args, code, part] of [
        [["-o", path], 1, "the file exists; --force"],
        [["-o", MODEL, "--force"], 1, "it is the model that is exported"],
        [["-o", folder], 1, "it is a folder"],
        [["-o", `${folder}/none/a.gguf`], 1, "there is no such folder"],
        [["-o", "-"], 2, "-o - is not possible"],
        [[], 2, "export needs a file to write: -o FILE"],
        [["-o", path, "--repeat-layers", "39,41"], 2, "--repeat-layers"],
        [["-o", path, "--split-max-size", "1T"], 2, "--split-max-size"],
        [["-o", path, "--format", "rys", "--plan-only"], 2, "--plan-only and --format rys"],
        [["-o", path, "-m", `${folder}/none.gguf`], 1, "there is no such file"],
      ] as const
    ) {
      const result = await program(["export", "--repeat-layers", "26,34", ...args]);
      assertEquals([args, result.code], [args, code]);
      assertStringIncludes(result.err, part);
    }
    assertEquals(await Deno.readTextFile(path), "mine");
    assertEquals(namesIn(folder), ["a.gguf"]);
    await json(["export", "--repeat-layers", "26,34", "-o", path, "--force"]);
    assertEquals((await readHeader(path)).nLayer, 48);
    assert(namesIn(folder).length === 1);
  });
});

Deno.test("reading and writing are all that export needs, and it asks for nothing else", async () => {
  await withFolder(async (folder) => {
    const audit = `${folder}/audit.jsonl`;
    const args = ["export", "--repeat-layers", "26,34", "-o", `${folder}/a.gguf`];
    const { code, err } = await program(args, {
      allow: ["--allow-read", `--allow-write=${folder}`],
      env: { DENO_AUDIT_PERMISSIONS: audit },
    });
    assertEquals(code, 0, err);
    // What is asked for without being allowed stops at a prompt where there is a terminal.
    const asked = (await Deno.readTextFile(audit)).trim().split("\n")
      .map((line) => JSON.parse(line).permission);
    assertEquals([...new Set(asked)].sort(), ["read", "write"]);

    const refused = await program(["export", "-o", `${folder}/b.gguf`], {
      allow: ["--allow-read", "--no-prompt"],
    });
    assertEquals(refused.code, 1);
    assertStringIncludes(refused.err, "--allow-write");
  });
});

Deno.test({
  name: "a file that the system lets grow no further is told, and nothing is left of it",
  ignore: Deno.build.os === "windows", // it has no such limit
  fn: async () => {
    await withFolder(async (folder) => {
      // 8 or 16 MiB, as shells count in blocks of 512 or 1024 bytes; the file has 20. The signal would end the process.
      const { code, stderr } = await new Deno.Command("sh", {
        args: ["-c", `trap "" XFSZ; ulimit -f 16384; exec "$@"`, "sh", Deno.execPath(), "run"]
          .concat(["-A", "--quiet", MOD, "export", "-o", `${folder}/a.gguf`])
          .concat(["--repeat-layers", "0,40x6"]),
        env: { LLAMA_ARG_REPEAT_LAYERS: "" },
      }).output();
      const err = new TextDecoder().decode(stderr);
      assertEquals(code, 1, err);
      assertStringIncludes(err, "does not allow so large a file");
      assertEquals(namesIn(folder), []);
    });
  },
});
