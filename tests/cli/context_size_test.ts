import { assertEquals, assertStringIncludes } from "@std/assert";
import { json, MODEL, program } from "./_program.ts";

const quick = ["-m", MODEL, "-p", "Once upon a time", "--temp", "0"];

Deno.test("a context size that is rounded up is reported", async () => {
  const { code, err } = await program([...quick, "-n", "1", "-c", "10"]);
  assertEquals(code, 0);
  assertStringIncludes(err, "a context of 10 tokens becomes one of 256");
});

Deno.test("a context size above what the model was trained for is reported, with the memory it takes", async () => {
  const { code, err } = await program([...quick, "-n", "1", "-c", "4096", "--quiet"]);
  assertEquals(code, 0);
  assertStringIncludes(err, "is larger than the 2048 that the model was trained for");
  assertStringIncludes(err, "MiB, and one request can use 2048 tokens of it");
});

Deno.test("-n 0 generates nothing", async () => {
  const got = await json([...quick, "-n", "0"]);
  assertEquals([got.text, got.tokens, got.n_generated], ["", [], 0]);
  assertEquals(got.n_prompt > 0, true);
});
