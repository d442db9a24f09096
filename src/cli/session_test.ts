import { assertEquals, assertRejects } from "@std/assert";
import { UsageError } from "./errors.ts";
import { parseFlags } from "./flags/parse_flags.ts";
import { resolvePlan } from "../plan/mod.ts";
import { readHeader } from "../gguf/mod.ts";
import { contextOptions, ownPlanLine } from "./session.ts";

const options = (...args: string[]) => contextOptions(parseFlags(args), 32768);

Deno.test("contextOptions() sizes the context as llama.cpp does", async () => {
  assertEquals((await options()).nCtx, 4096);
  assertEquals((await options("-c", "512")).nCtx, 512);
  assertEquals((await options("-c", "0")).nCtx, 32768);
  assertEquals((await contextOptions(parseFlags([]), 1024)).nCtx, 1024);
  assertEquals((await options()).nParallel, 1);
});

Deno.test("contextOptions() carries llama.cpp's flags over", async () => {
  const got = await options(
    ...["-b", "64", "-ub", "32", "-np", "2", "-t", "3", "-ctk", "q8_0", "-ctv", "q4_0"],
    ...["-fa", "on", "--swa-full", "--context-shift", "--chat-template", "chatml"],
    ...["--spec-type", "ngram-simple", "--spec-draft-n-max", "4"],
  );
  assertEquals(got, {
    nCtx: 4096,
    nBatch: 64,
    nUbatch: 32,
    nParallel: 2,
    threads: 3,
    cacheTypeK: "q8_0",
    cacheTypeV: "q4_0",
    flashAttention: "on",
    swaFull: true,
    contextShift: true,
    chatTemplate: "chatml",
    speculative: { type: "ngram", nMax: 4 },
    lora: undefined,
    cacheRamMib: undefined,
  });
  assertEquals((await options("-t", "-1")).threads, undefined);
  assertEquals((await options("--chat-template", "llama3")).args, ["--no-jinja"]);
});

Deno.test("contextOptions() reads adapters and draft models", async () => {
  const file = await Deno.makeTempFile();
  const got = await options("--lora", file, "--lora-scaled", `${file}:0.5`, "-md", file);
  assertEquals(got.lora, [{ path: file }, { path: file, scale: 0.5 }]);
  assertEquals(got.speculative, { type: "draft", model: file });
  await Deno.remove(file);
  await assertRejects(() => options("--lora", file), Error, "no such file");
  await assertRejects(() => options("-md", file), Error, "no such file");
});

Deno.test("contextOptions() refuses what contradicts itself", async () => {
  for (
    const wrong of [
      ["--lora-scaled", "f"],
      ["--lora-scaled", "f:"],
      ["--spec-type", "draft-simple"],
      ["--spec-type", "draft-mtp", "-md", "f"],
      ["--spec-type", "none", "-md", "f"],
      ["--spec-draft-n-max", "4"],
      ["-ctv", "q8_0", "-fa", "off"],
      ["--chat-template", "x", "--chat-template-file", "f"],
      ["--chat-template", "x"],
    ]
  ) {
    await assertRejects(() => options(...wrong), UsageError, undefined, wrong.join(" "));
  }
});

Deno.test("ownPlanLine() compares layers, not texts", async () => {
  const demo = await readHeader(new URL("../../models/demo.gguf", import.meta.url));
  const line = (layerPlan: string | undefined, given: string) =>
    ownPlanLine(resolvePlan(given, demo), { header: { ...demo, layerPlan } })[0]?.[1];
  const runs = "26,34 (rys.layer_plan) runs; --repeat-layers none runs the model without it";
  for (const given of ["26,34", " 26 , 34 ", "26,34x1", "layers:0..33,26..39"]) {
    assertEquals(line("26,34", given), runs, given);
  }
  for (const given of ["none", "26,33", "26,34x2"]) {
    const other = "26,34 (rys.layer_plan) does not run: another is given";
    assertEquals(line("26,34", given), other, given);
  }
  for (const broken of ["26,99", "what"]) {
    assertEquals(
      line(broken, "none"),
      `${broken} (rys.layer_plan) does not run: another is given`,
    );
  }
  assertEquals(line(undefined, "26,34"), undefined);
});
