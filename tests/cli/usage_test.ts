import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { MODEL, program } from "./_program.ts";

/** Runs what must fail with one line on standard error, and returns the line. */
async function fails(code: number, ...args: string[]): Promise<string> {
  const result = await program(args);
  assertEquals(result.code, code, `${args.join(" ")}: ${result.err}`);
  assertEquals(result.out, "");
  assert(result.err.startsWith("error: "), result.err);
  assertEquals(result.err.trimEnd().split("\n").length, 1, result.err);
  return result.err;
}

Deno.test("a wrong plan ends with 2 and says where it is wrong", async () => {
  for (const spec of ["34,33", "33,", "33,34;", "a,b", "60,70", "-1,2"]) {
    const line = await fails(2, "--repeat-layers", spec);
    assertStringIncludes(line, JSON.stringify(spec));
    assert(/ at position \d+/.test(line), line);
    assertEquals(await fails(2, `--repeat-layers=${spec}`), line);
  }
  assertStringIncludes(await fails(2, "--repeat-layers", ""), "empty");
});

Deno.test("a wrong plan ends every command alike", async () => {
  for (const command of ["chat", "logits", "bench", "plan"]) {
    const more = { logits: ["-p", "x"], plan: ["-m", MODEL] }[command] ?? [];
    assertStringIncludes(
      await fails(2, command, ...more, "--repeat-layers", "60,70"),
      "layer 60 at position 0 is out of range",
    );
  }
});

Deno.test("a file that is not a model ends with 1 in one line", async () => {
  assertStringIncludes(await fails(1, "-m", "missing.gguf"), "missing.gguf");
  const folder = await Deno.makeTempDir();
  try {
    const text = `${folder}/text.gguf`;
    await Deno.writeTextFile(text, "Once upon a time, there was no model here.\n".repeat(20));
    assertStringIncludes(await fails(1, "-m", text), text);
    const cut = `${folder}/cut.gguf`;
    const model = await Deno.readFile(MODEL);
    await Deno.writeFile(cut, model.subarray(0, model.length >> 1));
    assertStringIncludes(await fails(1, "-m", cut), "cut");
    await Deno.writeFile(cut, model.subarray(0, 1000));
    assertStringIncludes(await fails(1, "-m", cut), cut);
    await fails(1, "-m", folder);
    await fails(1, "plan", "-m", text, "--repeat-layers", "1,2");
    await fails(1, "--lora", `${folder}/none.gguf`);
    await fails(1, "-f", `${folder}/none.txt`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("unknown commands and flags end with 2 and the nearest name", async () => {
  assertStringIncludes(await fails(2, "chta"), '"chat"');
  assertStringIncludes(await fails(2, "--repeat-layer", "1,2"), "--repeat-layers");
  assertStringIncludes(await fails(2, "--n-layer", "64"), "belongs to: plan");
  assertStringIncludes(await fails(2, "help", "plam"), '"plan"');
  await fails(2, "-n", "few");
  await fails(2, "-j", "{");
});

Deno.test("wrong values end with 2 and the flag's name before anything loads", async () => {
  for (
    const wrong of [
      ["--temp", "-1"],
      ["--top-p", "3"],
      ["-m", ""],
      ["-ngl", "many"],
      ["--chat-template", "nope"],
      ["--lora-scaled", "f"],
      ["--spec-type", "draft-simple"],
      ["-ctv", "q8_0", "-fa", "off"],
      ["--port", "8080"],
      ["-hf", "some-model"],
    ]
  ) {
    assertStringIncludes(await fails(2, ...wrong), wrong[0]!);
  }
});

Deno.test("help and version go to standard output", async () => {
  for (const args of [["help"], ["--help"], ["help", "bench"], ["plan", "-h"], ["--version"]]) {
    const { code, out, err } = await program(args);
    assertEquals([code, err], [0, ""]);
    assert(out.length > 20);
  }
  assertStringIncludes((await program(["plan", "--help"])).out, "--n-layer N");
});

Deno.test("stacks are shown only where they are asked for", async () => {
  const { code, err } = await program(["-m", "missing.gguf", "-v"]);
  assertEquals(code, 1);
  assertStringIncludes(err, "\n    at ");
});

Deno.test("a grammar or a schema that cannot be used ends with 2 and its flag's name", async () => {
  for (
    const [args, part] of [
      [["-p", "x", "--grammar", "root ::= ("], "--grammar could not be parsed"],
      [["-p", "x", "-j", '{"type":"foo"}'], "-j has a JSON schema that cannot be used: at #: "],
      [["-p", "x", "--json-schema", '{"type":"foo"}', "--chat"], "unrecognized type foo"],
      [["chat", "-st", "-p", "x", "--grammar", "root ::= ("], "--grammar could not be parsed"],
    ] as const
  ) {
    const { code, err } = await program([...args, "-n", "2"]);
    assertEquals(code, 2, err);
    assertStringIncludes(err, "error: ");
    assertStringIncludes(err, part);
  }
});

Deno.test("an empty prompt ends with 2 and is said to be empty", async () => {
  assertStringIncludes(await fails(2, "-p", ""), "-p: the prompt is empty");
  const file = await Deno.makeTempFile();
  assertStringIncludes(await fails(2, "-f", file), "-f: the prompt is empty");
  await Deno.remove(file);
});

Deno.test("a permission that is missing is named before anything loads", async () => {
  const allow = ["--allow-read", "--no-prompt"];
  const serve = await program(["serve", "--port", "8099"], { allow });
  assertEquals([serve.code, serve.out], [1, ""], serve.err);
  assertStringIncludes(serve.err, "Cannot listen on 127.0.0.1:8099: ");
  assertStringIncludes(serve.err, "--allow-net=127.0.0.1:8099");
  assertEquals(serve.err.includes("    at "), false, serve.err);
  const logits = await program(["logits", "-p", "x", "-o", "logits.f32"], { allow });
  assertEquals([logits.code, logits.out], [1, ""]);
  assertStringIncludes(logits.err, "error: -o logits.f32: ");
  assertStringIncludes(logits.err, "--allow-write");
  assertEquals(logits.err.includes("load time"), false, logits.err);
});
