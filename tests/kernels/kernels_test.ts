// Products of repacked weights, every type and many shapes, against exact sums and llama.cpp's own kernels; on each way
// that V8 has to multiply bytes. RYS_OPS_SEED gives other shapes and numbers.

import { assert, assertEquals, assertMatch } from "@std/assert";
import { dotProduct } from "../../src/cli/commands/doctor.ts";
import { inRepo } from "../engine/_engine.ts";
import { runKernels } from "./run_kernels.ts";

const noProgram = await Deno.stat(inRepo("wasm/kernels/build.json")).then(() => false, () => true);
const seed = Deno.env.get("RYS_OPS_SEED") ?? "1";

const test = (name: string, fn: () => Promise<void>) =>
  Deno.test({
    name: name + (noProgram ? ' (skipped: run "deno task build --kernels")' : ""),
    ignore: noProgram,
    sanitizeOps: false,
    sanitizeResources: false,
    fn,
  });

/** The program's lines in a Deno whose V8 has other flags. */
async function elsewhere(v8Flags: string, args: string[]): Promise<string[]> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-check",
      `--v8-flags=${v8Flags}`,
      "--config",
      inRepo("deno.json"),
      inRepo("tests/kernels/run_kernels.ts"),
      ...args,
    ],
  }).output();
  const text = new TextDecoder();
  const lines = text.decode(stdout).trimEnd().split("\n");
  assert(lines.length > 0 && lines[0] !== "", text.decode(stderr));
  return lines;
}

const TYPES = ["q4_0", "q4_1", "q8_0", "iq4_nl", "mxfp4", "q4_K", "q5_K", "q6_K", "f16"];

const here = noProgram ? undefined : runKernels(["test", seed]);
here?.catch(() => {});

test("repacked products are exact within llama.cpp's limits, whatever the batch and the threads", async () => {
  const { lines } = await here!;
  assertEquals(lines.filter((line) => line.startsWith("FAIL")), [], `seed ${seed}`);
  assertEquals(lines.at(-1), "0 failures");
  for (const [i, type] of TYPES.entries()) {
    assertMatch(lines[i]!, new RegExp(`^ok   ${type}, bits [0-9a-f]{8}$`));
  }
});

for (const flags of ["--no-enable-avx-vnni", "--no-enable-avx"]) {
  test(`repacked products are the same bits with V8's ${flags}`, async () => {
    assertEquals(await elsewhere(flags, ["test", seed]), (await here!).lines, `seed ${seed}`);
  });
}

test("doctor's dot product is what the engine finds", async () => {
  const { lines } = await runKernels(["name"]);
  assertEquals(lines, [dotProduct()]);
});
