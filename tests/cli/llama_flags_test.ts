// Flags of llama.cpp: each kind of them through the real program.

import { assert, assertEquals, assertNotEquals, assertStringIncludes } from "@std/assert";
import { json, MODEL, program } from "./_program.ts";
import { type RawTensor, readGguf, textKey } from "../engine/_gguf.ts";
import { writeGgufFile } from "../../src/gguf/_testing.ts";

const STORY = ["-p", "Once upon a time", "-n", "6", "--gpu", "off", "-t", "1"];
const text = async (...args: string[]) => (await json([...STORY, ...args])).text;

Deno.test("flags of sampling reach llama.cpp", async () => {
  // A bias that outweighs everything leaves one token.
  const { tokens } = await json([...STORY, "-l", "500+1000"]);
  assertEquals(tokens, Array(6).fill(500));
  const both = await json([...STORY, "--temp", "0", "-l", "500+900", "-l", "501+1000"]);
  assertEquals(both.tokens, Array(6).fill(501));
  // The chain is what --samplers says: with the likeliest token alone, the temperature does nothing.
  const greedy = await text("--temp", "0");
  assertEquals(
    await text("--samplers", "top_k;temperature", "--top-k", "1", "--temp", "9"),
    greedy,
  );
  assertEquals(await text("--sampler-seq", "kt", "--top-k", "1", "--temp", "9"), greedy);
  assertEquals(await text("--top-n-sigma", "0.000001", "--temp", "9", "-s", "3"), greedy);
  assertNotEquals(await text("--mirostat", "2", "--temp", "9", "-s", "3"), greedy);
});

Deno.test("flags of the context and the model reach llama.cpp", async () => {
  const plain = await json([...STORY, "--temp", "0"]);
  const scaled = await json([
    ...STORY,
    "--temp",
    "0",
    "--rope-scaling",
    "linear",
    "--rope-scale",
    "8",
  ]);
  assertNotEquals(scaled.tokens, plain.tokens);
  const shorter = ["--override-kv", "qwen3.context_length=int:1024", "-c", "0"];
  assertEquals((await json([...STORY, "-c", "0"])).n_ctx, 2048);
  assertEquals((await json([...STORY, ...shorter])).n_ctx, 1024);
  assertEquals(await text("--temp", "0", "--repeat-last-n", "-1", "--keep", "-1"), plain.text);
});

Deno.test("control vectors steer the layers that they are given for", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const { tensors } = readGguf(await Deno.readFile(MODEL));
    const width = Number(tensors.find(({ name }) => name === "output_norm.weight")!.shape[0]);
    const direction = (layer: number): RawTensor => ({
      name: `direction.${layer}`,
      shape: [BigInt(width)],
      type: 0,
      data: new Uint8Array(
        Float32Array.from({ length: width }, (_, i) => 4 * Math.sin(i * layer)).buffer,
      ),
    });
    const path = `${folder}/steer.gguf`;
    writeGgufFile(path, {
      keys: [textKey("general.architecture", "controlvector")],
      tensors: [direction(20), direction(21)],
    });
    const plain = await text("--temp", "0");
    assertEquals(await text("--temp", "0", "--control-vector-scaled", `${path}:0`), plain);
    assertNotEquals(await text("--temp", "0", "--control-vector", path), plain);
    const elsewhere = ["--control-vector-layer-range", "1", "10"];
    assertEquals(await text("--temp", "0", "--control-vector", path, ...elsewhere), plain);
    const wrong = await program([...STORY, "--control-vector", MODEL]);
    assertEquals(wrong.code, 1);
    assertStringIncludes(wrong.err, "a control vector cannot be used");
    const narrow = `${folder}/narrow.gguf`;
    writeGgufFile(narrow, {
      keys: [textKey("general.architecture", "controlvector")],
      tensors: [{ ...direction(20), shape: [8n], data: new Uint8Array(32) }],
    });
    const misfit = await program([...STORY, "--control-vector", narrow]);
    assertEquals(misfit.code, 1);
    assertStringIncludes(misfit.err, "not for this model");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("flags without a meaning here are reported in one line, and do no harm", async () => {
  const { code, out, err } = await program([
    ...[...STORY, "--temp", "0", "--mlock", "-ts", "1,1", "-mg", "0", "--numa", "distribute"],
    ...["--cpu-moe", "--no-warmup"],
  ]);
  assertEquals(code, 0);
  assertEquals(out.trimEnd(), await text("--temp", "0"));
  const lines = err.split("\n").filter((line) => line.includes("without effect"));
  assertEquals(lines, ["note: without effect here: --mlock, -ts, -mg, --numa, --cpu-moe"]);
});

Deno.test("-cnv makes a conversation of it", async () => {
  const { code, out, err } = await program(["-cnv", "-n", "4", "--gpu", "off"], {
    stdin: "Hello\n/stats\n",
  });
  assertEquals(code, 0);
  assert(out.trim() !== "");
  assertStringIncludes(err, "messages");
  const plain = await program([...STORY, "-no-cnv"]);
  assertEquals(plain.code, 0);
});

Deno.test("--log-file takes llama.cpp's log", async () => {
  const path = await Deno.makeTempFile();
  try {
    const { code, err } = await program([...STORY, "--log-file", path]);
    assertEquals(code, 0);
    const log = await Deno.readTextFile(path);
    assertStringIncludes(log, "load");
    assertEquals(err.includes(log.split("\n")[0]!), false);
  } finally {
    await Deno.remove(path);
  }
  const { code, err } = await program([...STORY, "--log-file", "/no/such/folder/log"]);
  assertEquals(code, 1);
  assertStringIncludes(err, "cannot write /no/such/folder/log");
});

Deno.test("variables of the environment are read for every flag, and the flag wins", async () => {
  const env = {
    LLAMA_ARG_MODEL: MODEL,
    LLAMA_ARG_N_PREDICT: "3",
    LLAMA_ARG_TEMPERATURE: "0",
    LLAMA_ARG_CTX_SIZE: "512",
    LLAMA_ARG_NO_CONTEXT_SHIFT: "",
  };
  const run = await json(["-p", "Once upon a time", "--gpu", "off"], { env });
  assertEquals([run.n_generated, run.n_ctx], [3, 512]);
  const more = await json(["-p", "Once upon a time", "--gpu", "off", "-n", "5"], { env });
  assertEquals(more.n_generated, 5);
  assertEquals(more.tokens.slice(0, 3), run.tokens);
  const wrong = await program(["-p", "x"], { env: { LLAMA_ARG_TOP_K: "many" } });
  assertEquals(wrong.code, 2);
  assertStringIncludes(wrong.err, "LLAMA_ARG_TOP_K must be a whole number");
});
