import { assertEquals, assertRejects } from "@std/assert";
import { UsageError } from "../errors.ts";
import { generateOptions, promptText, systemText } from "./generate_flags.ts";
import { parseFlags } from "./parse_flags.ts";

const options = (...args: string[]) => generateOptions(parseFlags(args));

Deno.test("generateOptions() leaves defaults to the engine", async () => {
  assertEquals(Object.values(await options()).filter((value) => value !== undefined), []);
});

Deno.test("generateOptions() carries llama.cpp's flags over", async () => {
  const got = await options(
    ...["-n", "7", "-s", "5", "--temp", "0", "--top-k", "3", "--top-p", "0.5", "--min-p", "0.1"],
    ...["--repeat-penalty", "1.1", "--repeat-last-n", "-1", "--presence-penalty", "0.2"],
    ...["--frequency-penalty", "0.3", "--ignore-eos", "-r", "\\n", "-r", "x"],
    ...["-j", '{"type":"object"}'],
  );
  assertEquals(got, {
    maxTokens: 7,
    seed: 5,
    temperature: 0,
    topK: 3,
    topP: 0.5,
    minP: 0.1,
    repeatPenalty: 1.1,
    repeatLastN: -1,
    presencePenalty: 0.2,
    frequencyPenalty: 0.3,
    ignoreEos: true,
    stop: ["\n", "x"],
    grammar: undefined,
    jsonSchema: { type: "object" },
  });
  assertEquals((await options("-n", "-1")).maxTokens, undefined);
  assertEquals((await options("--top-k", "-1")).topK, 0);
  assertEquals((await options("--no-escape", "-r", "\\n")).stop, ["\\n"]);
});

Deno.test("generateOptions() refuses what contradicts itself", async () => {
  const refused = (...args: string[]) => assertRejects(() => options(...args), UsageError);
  await refused("--grammar", "root ::= [a]", "-j", "{}");
  await refused("-j", "{");
  await refused("-j", "[]");
  await refused("-j", "true");
  await refused("-r", "");
});

Deno.test("promptText() takes a file as it is and the command line's text with escapes", async () => {
  assertEquals(await promptText(parseFlags(["-p", "a\\nb"])), "a\nb");
  assertEquals(await promptText(parseFlags(["--no-escape", "-p", "a\\nb"])), "a\\nb");
  assertEquals(await promptText(parseFlags([])), undefined);
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "a\\nb\n\n");
  assertEquals(await promptText(parseFlags(["-f", file])), "a\\nb\n");
  await Deno.remove(file);
  await assertRejects(() => promptText(parseFlags(["-f", file])), Error, "no such file");
});

Deno.test("systemText() reads its text from either flag, not from both", async () => {
  assertEquals(await systemText(parseFlags(["-sys", "a\\nb"])), "a\nb");
  assertEquals(await systemText(parseFlags([])), undefined);
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "be brief\n");
  assertEquals(await systemText(parseFlags(["-sysf", file])), "be brief");
  await assertRejects(
    () => systemText(parseFlags(["-sysf", file, "-sys", "a"])),
    UsageError,
    "exclude each other",
  );
  await Deno.remove(file);
});
