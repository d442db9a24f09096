// The examples, as their READMEs say to run them.

import { assert, assertEquals } from "@std/assert";
import { parseFlags } from "../../src/cli/flags/parse_flags.ts";
import { inRepo } from "../engine/_engine.ts";
import { startChild } from "../server/_child.ts";
import { CAPITAL } from "../server/_clients.ts";
import { createOpenAICompatible, generateText } from "../server/_npm.ts";

/** The flags of the server in a README's first command. */
function serveFlags(example: string): string[] {
  const readme = Deno.readTextFileSync(inRepo(`examples/${example}/README.md`));
  const command = /^deno run -A mod\.ts serve (.+)$/m.exec(readme);
  assert(command !== null, `examples/${example}/README.md starts no server`);
  const flags = command[1]!.split(/\s+/);
  parseFlags(["serve", ...flags]);
  return flags;
}

interface OpencodeConfig {
  $schema: string;
  model: string;
  small_model: string;
  provider: Record<string, {
    npm: string;
    name: string;
    options: { baseURL: string; apiKey: string };
    models: Record<string, { name: string; limit: { context: number; output: number } }>;
  }>;
  agent: Record<string, { mode: string; description: string; prompt: string }>;
}

Deno.test("examples/opencode: the config has opencode's form, and its models run their plans", async () => {
  const config: OpencodeConfig = JSON.parse(
    Deno.readTextFileSync(inRepo("examples/opencode/opencode.json")),
  );
  assertEquals(Object.keys(config), [
    ...["$schema", "provider", "model", "small_model", "agent"],
  ]);
  assertEquals(config.$schema, "https://opencode.ai/config.json");
  const [[id, provider]] = Object.entries(config.provider) as [[
    string,
    OpencodeConfig["provider"][string],
  ]];
  assertEquals(Object.keys(provider).sort(), ["models", "name", "npm", "options"]);
  assertEquals(provider.npm, "@ai-sdk/openai-compatible");
  assertEquals(provider.options.baseURL, "http://127.0.0.1:8080/v1");
  const variable = /^\{env:(\w+)\}$/.exec(provider.options.apiKey)?.[1];
  assertEquals(variable, "RYS_API_KEY");
  const names = Object.keys(provider.models).map((model) => `${id}/${model}`);
  for (const model of [config.model, config.small_model]) assert(names.includes(model), model);

  const flags = serveFlags("opencode");
  const context = parseFlags(["serve", ...flags]).number("nCtx");
  await using server = await startChild({ nCtx: undefined, args: flags });
  // As opencode does it: the package that the config names, with the config's options.
  const layers: Record<string, number> = {};
  const rys = createOpenAICompatible({
    name: id,
    async fetch(input, init) {
      const response = await fetch(input, init);
      const answer: { model: string; rys: { n_layer_eff: number } } = await response.clone().json();
      layers[answer.model] = answer.rys.n_layer_eff;
      return response;
    },
    baseURL: provider.options.baseURL.replace("http://127.0.0.1:8080", server.origin),
    apiKey: "secret",
  });
  for (const [name, model] of Object.entries(provider.models)) {
    assertEquals(Object.keys(model), ["name", "limit"]);
    assertEquals(model.limit.context, context);
    assert(model.limit.output < model.limit.context);
    const { text } = await generateText({
      model: rys(name),
      system: config.agent["plain"]!.prompt,
      prompt: CAPITAL.question,
      temperature: 0,
      maxOutputTokens: 20,
    });
    assertEquals(text, CAPITAL.answer);
  }
  assertEquals(layers, { demo: 40, "demo@26,34": 48, deep: 48 });
});

Deno.test("examples/ai-sdk: the app runs", async () => {
  await using server = await startChild({ args: serveFlags("ai-sdk") });
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", "--frozen", "--config", inRepo("deno.json")],
      ...[`--lock=${inRepo("tests/deno.lock")}`, inRepo("examples/ai-sdk/app.ts")],
    ],
    env: { RYS_URL: server.origin, RYS_API_KEY: "secret" },
    stdin: "null",
  }).output();
  assertEquals([code, code === 0 ? "" : new TextDecoder().decode(stderr)], [0, ""]);
  const lines = new TextDecoder().decode(stdout).trim().split("\n");
  assertEquals(lines.slice(0, 3), [
    `demo (40 layers): ${CAPITAL.answer}`,
    `demo@26,34 (48 layers): ${CAPITAL.answer}`,
    `deep (48 layers): ${CAPITAL.answer}`,
  ]);
  assertEquals(lines[3], `stream (41 layers, 8 tokens): ${CAPITAL.answer}`);
  const object = JSON.parse(lines[4]!.replace("object: ", ""));
  assertEquals(Object.keys(object), ["city", "sure"]);
  assert(["Oslo", "Paris", "Rome"].includes(object.city));
  assertEquals(lines.slice(5), ["embedding: 64 numbers"]);
});
