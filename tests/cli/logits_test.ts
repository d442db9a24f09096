import { assert, assertAlmostEquals, assertEquals, assertStringIncludes } from "@std/assert";
import { json, MOD, MODEL, program } from "./_program.ts";

Deno.test("logits writes a row for each token", async () => {
  const file = await Deno.makeTempFile();
  try {
    const args = ["logits", "-m", MODEL, "-p", "Once upon a time", "--repeat-layers", "33,34"];
    const got = await json([...args, "-o", file]);
    assertEquals(got.tokens.length, got.n_tokens);
    assertEquals(got.bytes, got.n_tokens * got.n_vocab * 4);
    assertEquals(got.file, file);
    assertEquals(got.plan.n_layer_eff, 41);
    const bytes = await Deno.readFile(file);
    assertEquals(bytes.length, got.bytes);
    const view = new DataView(bytes.buffer, bytes.byteLength - got.n_vocab * 4);
    const best = got.top[0]!;
    assertEquals(view.getFloat32(4 * best.id, true), best.logit);
    for (let id = 0; id < got.n_vocab; id++) assert(view.getFloat32(4 * id, true) <= best.logit);
    assertEquals(typeof best.token, "string");
    assert(best.logprob < 0);

    const same = await json([
      "logits",
      "-m",
      MODEL,
      "--tokens",
      got.tokens.join(","),
      "--repeat-layers",
      "33,34",
    ]);
    assertEquals(same.top, got.top);
    assertEquals(same.file, null);
    const other = await json(["logits", "-m", MODEL, "-p", "Once upon a time"]);
    assert(other.top[0]?.logit !== best.logit);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("logits -o - writes to standard output", async () => {
  const args = ["logits", "-m", MODEL, "--tokens", "1,2,3"];
  const { n_vocab, top } = await json(args);
  const { code, bytes } = await program([...args, "-o", "-"]);
  assertEquals([code, bytes.length], [0, 3 * 4 * n_vocab]);
  const last = new Float32Array(bytes.buffer, 2 * 4 * n_vocab, n_vocab);
  assertAlmostEquals(last[top[0]!.id]!, top[0]!.logit, 1e-6);
});

Deno.test("logits needs a prompt of the model's tokens", async () => {
  assertEquals((await program(["logits", "-m", MODEL])).code, 2);
  assertEquals((await program(["logits", "-m", MODEL, "--tokens", "1,x"])).code, 2);
  assertEquals((await program(["logits", "-m", MODEL, "--tokens", "1,99999999"])).code, 2);
  assertEquals((await program(["logits", "-m", MODEL, "--tokens", "1", "-p", "x"])).code, 2);
  assertEquals(
    (await program(["logits", "-m", MODEL, "--tokens", "1", "-o", "/no/where"])).code,
    1,
  );
});

Deno.test("logits -o does not overwrite a model or its own prompt", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const model = `${dir}/m.gguf`;
    await Deno.copyFile(MODEL, model);
    const size = (await Deno.stat(model)).size;
    const over = await program(["logits", "-m", model, "--tokens", "1", "-o", model]);
    assertEquals(over.code, 2);
    assertEquals((await Deno.stat(model)).size, size);
    await Deno.writeTextFile(`${dir}/p.txt`, "Once");
    const prompt = ["-f", `${dir}/p.txt`, "-o", `${dir}/p.txt`];
    assertEquals((await program(["logits", "-m", MODEL, ...prompt])).code, 2);
    assertEquals(await Deno.readTextFile(`${dir}/p.txt`), "Once");
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test({
  name: "logits -o leaves the old file, and nothing else, where the disk has no room",
  ignore: Deno.build.os === "windows",
  async fn() {
    const dir = await Deno.makeTempDir();
    try {
      const out = `${dir}/out.bin`;
      await Deno.writeTextFile(out, "what was there");
      // No file of this process may grow beyond 8 KiB: writes fail as on a full disk, half way.
      const args = ["run", "-A", "--quiet", MOD, "logits", "-m", MODEL, "-p", "Once upon a time"];
      const limited = new Deno.Command("sh", {
        args: ["-c", `trap '' XFSZ; ulimit -f 16; exec "$@"`, "sh", Deno.execPath(), ...args]
          .concat("-o", out),
        env: { LLAMA_ARG_REPEAT_LAYERS: "" },
        stdin: "null",
      });
      const { code, stdout, stderr } = await limited.output();
      const err = new TextDecoder().decode(stderr);
      assertEquals([code, stdout.length], [1, 0], err);
      assertStringIncludes(err, `error: cannot write ${out}: File too large\n`);
      assertEquals(await Deno.readTextFile(out), "what was there");
      assertEquals([...Deno.readDirSync(dir)].map((entry) => entry.name), ["out.bin"]);
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  },
});

Deno.test("logits -o writes to a device as it stands, and through a link", async () => {
  const dir = await Deno.makeTempDir();
  const args = ["logits", "-m", MODEL, "--tokens", "1"];
  try {
    await Deno.writeTextFile(`${dir}/file`, "old");
    await Deno.symlink(`${dir}/file`, `${dir}/link`);
    const { bytes } = await json([...args, "-o", `${dir}/link`]);
    assertEquals((await Deno.lstat(`${dir}/link`)).isSymlink, true);
    assertEquals((await Deno.stat(`${dir}/file`)).size, bytes);
    if (Deno.build.os !== "linux") return;
    assertEquals((await program([...args, "-o", "/dev/null"])).code, 0);
    assertEquals((await Deno.lstat("/dev/null")).isCharDevice, true);
    const full = await program([...args, "-o", "/dev/full"]);
    assertEquals(full.code, 1);
    assertStringIncludes(full.err, "cannot write /dev/full: No space left on device");
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
