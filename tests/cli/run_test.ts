import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { json, MOD, MODEL, program, start } from "./_program.ts";

const quick = ["-m", MODEL, "-p", "Once upon a time", "-n", "12", "--temp", "0"];

Deno.test("run works with a plan and nothing else", async () => {
  const { code, out, err } = await program(["--repeat-layers", "33,34"]);
  assertEquals(code, 0);
  assert(out.trim().length > 0);
  assert(out.endsWith("\n"));
  for (
    const line of [
      /^model += RYS Edge demo \(qwen3, 1\.7 M parameters, F16, 3\.2 MiB\)$/m,
      /^n_layer +=+ 40$/m,
      /^n_layer_eff += 41$/m,
      /^plan += 33,34: 0\.\.32 \| 33 x2 \| 34\.\.39$/m,
      /^seam += 34 \(33 -> 33\)$/m,
      /^kv cache += \S+ MiB \(without the plan \S+ MiB, \+2\.5 %\)/m,
      /^recurrent += 0 B$/m,
      /^compute += x1\.0\d per token$/m,
      /^threads += \d+$/m,
      /^load time += /m,
      /tokens\/s/,
    ]
  ) {
    assert(line.test(err), `${line}: ${err}`);
  }
});

Deno.test("run --json prints one object with everything in it", async () => {
  const got = await json([...quick, "--repeat-layers", "26,34"]);
  assertEquals(got.n_generated, got.tokens.length);
  assert(got.n_generated > 0 && got.n_generated <= 12);
  assert(got.n_prompt > 0);
  assert(["stop", "length"].includes(got.finish_reason));
  assertEquals([got.plan.n_layer, got.plan.n_layer_eff, got.plan.seams], [40, 48, [34]]);
  assertEquals(got.kv_bytes, got.kv_bytes_base * 48 / 40);
  assertEquals(got.recurrent_bytes, 0);
  assert(got.model_bytes > 1e6);
  assert(Number.isInteger(got.seed));
  for (const key of ["load_ms", "prompt_per_second", "predicted_per_second"]) {
    assert(got.timings[key]! > 0, key);
  }
});

Deno.test("run gives with --json the text it gives without", async () => {
  const { text } = await json(quick);
  const { out } = await program([...quick, "--quiet"]);
  assertEquals(out, text.endsWith("\n") ? text : `${text}\n`);
});

Deno.test("run repeats itself with a seed", async () => {
  const args = ["-m", MODEL, "-p", "The", "-n", "12", "--temp", "1.5", "--seed", "7"];
  const [a, b] = [await json(args), await json(args)];
  assertEquals(a.tokens, b.tokens);
  assertEquals(a.seed, 7);
});

Deno.test("run takes the plan none for no plan, to the bit", async () => {
  const [a, b] = [await json(quick), await json([...quick, "--repeat-layers", "none"])];
  assertEquals(a.tokens, b.tokens);
  assertEquals(a.plan_hash, b.plan_hash);
});

Deno.test("run --quiet writes nothing but the text", async () => {
  const { code, out, err } = await program([...quick, "--quiet", "--repeat-layers", "33,34"]);
  assertEquals([code, err], [0, ""]);
  assert(out.length > 1);
});

Deno.test("run warns of a plan that tends to do harm, and of flags given twice", async () => {
  const { code, err } = await program([...quick, "--repeat-layers", "1,3", "--temp", "0"]);
  assertEquals(code, 0);
  assertStringIncludes(err, "warning: layers 1..2 are repeated");
  assertStringIncludes(err, "warning: --temp is given more than once");
  const quiet = await program([
    ...["-m", MODEL, "-n", "1", "--quiet", "-s", "1", "-s", "2"],
    ...["--repeat-layers", "1,3"],
  ]);
  assertEquals(
    quiet.err.replace(/ within .*/, ""),
    "warning: -s is given more than once; only the last value counts\n" +
      "warning: layers 1..2 are repeated,\n",
  );
});

Deno.test("run takes a built-in chat template by its name", async () => {
  const size = async (...more: string[]) => (await json([...quick, "-n", "1", ...more])).n_prompt;
  const text = "{% for m in messages %}<|start_header_id|>{{ m.role }}{{ m.content }}{% endfor %}";
  // The name alone is not a template.
  assert(await size("--chat", "--chat-template", "llama3") > await size() + 20);
  assert(await size("--chat", "--chat-template", text) > await size());
});

Deno.test("run tells the context's real size", async () => {
  const { err } = await program([...quick, "-n", "1", "-c", "10"]);
  assert(/^n_ctx += 256$/m.test(err), err);
});

Deno.test("run works with leave to read and nothing else", async () => {
  const { code, out, err } = await program(["-n", "1"], {
    allow: ["--allow-read", "--no-prompt"],
    env: { LLAMA_ARG_REPEAT_LAYERS: "wrong" },
  });
  assertEquals(code, 0, err);
  assert(out.length > 0);
});

Deno.test("run reads the prompt from a file and from standard input", async () => {
  const want = (await json(quick)).tokens;
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "Once upon a time\n");
  const rest = ["-m", MODEL, "-n", "12", "--temp", "0"];
  assertEquals((await json([...rest, "-f", file])).tokens, want);
  await Deno.remove(file);
  assertEquals((await json([...rest, "-f", "-"], { stdin: "Once upon a time\n" })).tokens, want);
});

Deno.test("run takes what is piped in for the prompt", async () => {
  const want = (await json(quick)).tokens;
  const rest = ["-m", MODEL, "-n", "12", "--temp", "0"];
  assertEquals((await json(rest, { stdin: "Once upon a time\n" })).tokens, want);
  // -p wins.
  assertEquals((await json(quick, { stdin: "something else" })).tokens, want);
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, "Once upon a time\n");
    const from = async (path: string) => {
      const { stdout, stderr } = await new Deno.Command("sh", {
        args: [
          ...["-c", `exec "$0" run -A --quiet "$@" <'${path}'`],
          ...[Deno.execPath(), MOD, ...rest, "--json"],
        ],
        env: { LLAMA_ARG_REPEAT_LAYERS: "" },
      }).output();
      const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
      return { tokens: JSON.parse(text(stdout)).tokens, err: text(stderr) };
    };
    const piped = await from(file);
    assertEquals(piped.tokens, want);
    assert(!piped.err.includes("no -p or -f is given"), piped.err);
    assertStringIncludes((await from("/dev/null")).err, "note: no -p or -f is given, so this");
  } finally {
    await Deno.remove(file);
  }
});

Deno.test("run does not wait for a pipe that nobody writes to", async () => {
  const child = start(["-m", MODEL, "-n", "2"]);
  const [{ code }, err, out] = await Promise.all([
    child.status,
    new Response(child.stderr).text(),
    new Response(child.stdout).text(),
  ]);
  assertEquals(code, 0);
  assertStringIncludes(err, "nothing came through the pipe at once (-f - waits for it), so this");
  assert(out.length > 0);
  await child.stdin.close().catch(() => {});
});

Deno.test("run stops at -r and leaves it out", async () => {
  const { text } = await json(quick);
  const stop = text.slice(3, 6);
  const got = await json([...quick, "--no-escape", "-r", stop]);
  assertEquals(got.text, text.slice(0, text.indexOf(stop)));
  assertEquals([got.finish_reason, got.stopping_word], ["stop", stop]);
});

Deno.test("run follows a grammar and a schema", async () => {
  const grammar = await json([...quick, "--grammar", 'root ::= "yes" | "no"']);
  assert(["yes", "no"].includes(grammar.text), grammar.text);
  const schema = '{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]}';
  const { text } = await json([...quick, "-n", "60", "-j", schema]);
  assertEquals(typeof JSON.parse(text).a, "boolean");
});

Deno.test("run --chat and -sys use the chat template, plain run does not", async () => {
  const plain = await json([...quick, "-n", "2"]);
  const chat = await json([...quick, "-n", "2", "--chat"]);
  const system = await json([...quick, "-n", "2", "-sys", "Answer in one word."]);
  assert(chat.n_prompt > plain.n_prompt);
  assert(system.n_prompt > chat.n_prompt);
});

Deno.test("run says by how much a prompt is too long", async () => {
  const { code, err } = await program([
    "-m",
    MODEL,
    "-c",
    "256",
    "-p",
    "one two ".repeat(400),
    "--quiet",
  ]);
  assertEquals(code, 1);
  assertEquals(err.trimEnd().split("\n").length, 1, err);
  assert(/^error: .*\d{3}.*256.*-c \d+ or more makes room$/m.test(err), err);
});

Deno.test("run takes quantised caches and small batches", async () => {
  const f16 = await json([...quick, "-c", "512"]);
  const q8 = await json([
    ...quick,
    "-c",
    "512",
    "-ctk",
    "q8_0",
    "-ctv",
    "q8_0",
    "-b",
    "8",
    "-ub",
    "4",
  ]);
  assert(q8.kv_bytes < f16.kv_bytes);
  assertEquals(q8.n_ctx, 512);
});

Deno.test("run names --chat where a raw prompt bypasses the chat template", async () => {
  const note = "note: the model has a chat template, which a raw prompt bypasses; --chat uses it\n";
  const args = ["-m", MODEL, "-n", "1", "--temp", "0"];
  const noted = async (more: string[]) => (await program([...args, ...more])).err.includes(note);
  assertEquals(await noted(["-p", "Hello"]), true);
  assertEquals(await noted(["-p", "Hello", "--json"]), true);
  assertEquals(await noted(["-p", "Hello", "--chat"]), false);
  assertEquals(await noted(["-p", "Hello", "--quiet"]), false);
  // Somebody has put it into the template already.
  assertEquals(await noted(["-p", "<|im_start|>user\nHello<|im_end|>\n"]), false);
});

Deno.test("run says why there is no text", async () => {
  const args = ["-m", MODEL, "-p", "Hello", "-n", "4", "--grammar", 'root ::= ""'];
  for (const more of [[], ["--json"]]) {
    const { code, err } = await program([...args, ...more]);
    assertEquals(code, 0, err);
    assertStringIncludes(err, "note: there is no text: the model ended at once\n");
  }
});
