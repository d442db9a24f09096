// The one-file examples, run as their first lines say.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { inRepo } from "../engine/_engine.ts";

async function run(name: string): Promise<{ out: string; err: string }> {
  const source = Deno.readTextFileSync(inRepo(`examples/${name}`));
  const command = new RegExp(`deno run (-A examples/${name.replace(".", "\\.")})\\b`).exec(source);
  assert(command !== null, `${name} does not say how to run it`);
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", ...command[1]!.split(" ")],
    cwd: inRepo(""),
    env: { NO_COLOR: "1" },
    signal: AbortSignal.timeout(300_000), // only so that one that hangs does not hang the tests
  }).output();
  const err = new TextDecoder().decode(stderr);
  assertEquals(code, 0, err);
  return { out: new TextDecoder().decode(stdout), err };
}

Deno.test("examples/stream.ts answers", async () => {
  const { out, err } = await run("stream.ts");
  assertMatch(out, /Oslo/);
  assertMatch(err, /^\d+ tokens, /m);
});

Deno.test("examples/compare_plans.ts answers under each plan", async () => {
  const lines = (await run("compare_plans.ts")).out.trim().split("\n");
  assertEquals(
    lines.map((line) => /^(\S+) \((\d+) of 40 layers, .+ tokens\/s\): \S/.exec(line)?.slice(1)),
    [["none", "40"], ["20,24", "44"], ["26-34x2", "56"]],
  );
});

Deno.test("examples/chains.ts is wrong without the block, and right with it", async () => {
  const lines = (await run("chains.ts")).out.trimEnd().split("\n").map((line) => line.trim());
  assertMatch(lines[2]!, /from the fox\?$/);
  assertEquals(lines.slice(3, 6), [
    "none   cat.  wrong: it is the owl",
    "20,24  owl.  right",
    "30,34  cat.  wrong: it is the owl",
  ]);
  assertMatch(lines[7]!, /from the owl\?$/);
  assertEquals(lines.slice(8), ["none   hen.  right", "20,24  hen.  right", "30,34  hen.  right"]);
});

Deno.test("examples/json_schema.ts prints what the schema says", async () => {
  const { out } = await run("json_schema.ts");
  assertMatch(out, /^\{ name: ".{0,12}", legs: [0-8], sound: "(meow|woof|moo)" \}\n$/);
});

Deno.test("examples/embeddings.ts ranks its texts", async () => {
  const lines = (await run("embeddings.ts")).out.trim().split("\n");
  assertEquals(lines.length, 3);
  const scores = lines.map((line) => Number(line.split("  ")[0]));
  assertEquals(scores, scores.toSorted((a, b) => b - a));
  assert(scores.every((score) => score > -1 && score <= 1), lines.join("\n"));
});

Deno.test("examples/state.ts goes on without reading again", async () => {
  const { out, err } = await run("state.ts");
  assert(out.trim().length > 0);
  const [, cached, computed] = /(\d+) tokens from .*, (\d+) computed/.exec(err) ?? [];
  assert(Number(cached) > Number(computed), err);
});

Deno.test("examples/worker.ts answers from its Worker", async () => {
  assert((await run("worker.ts")).out.trim().length > 0);
});
