import { assert, assertEquals, assertThrows } from "@std/assert";
import { type FlagId, flagsOf } from "../cli/flags/flags.ts";
import { parseFlags } from "../cli/flags/parse_flags.ts";
import { serverArgs, type ServerArgsOptions } from "./args.ts";

/** All that can be said, with a value that is not the default. */
const ALL: Required<ServerArgsOptions> = {
  model: "a folder/my model.gguf",
  repeatLayers: "26,34",
  modelName: "edge",
  aliases: { deep: "43,45; 28,34x2", order: [0, 1, 1, 2], same: undefined, "a b": "none" },
  strictModels: true,
  maxContexts: 2,
  memoryBudget: 3.5 * 2 ** 30,
  nParallel: 3,
  nCtx: 2048,
  context: {
    nBatch: 256,
    nUbatch: 128,
    threads: 2,
    cacheTypeK: "q8_0",
    cacheTypeV: "q4_0",
    flashAttention: "on",
    swaFull: true,
    chatTemplate: "{{ messages[0].content }}\n--port 1",
    speculative: { type: "draft", model: "-draft.gguf", nMax: 4 },
    controlVectors: [{ path: "v.gguf", scale: 2 }],
    controlVectorRange: [3, 9],
    lora: [{ path: "one.gguf" }, { path: "two:2.gguf", scale: -0.5 }],
    contextShift: true,
    cacheRamMib: 64,
  },
  seed: 7,
  slots: false,
  apiPrefix: "/llama",
  pooling: "last",
  apiKeys: ["key-1", "--key-2"],
  apiKeyFile: "keys.txt",
  cors: ["https://one.example", "https://two.example"],
  maxQueue: 0,
  maxBodyBytes: 1.5 * 2 ** 20,
  bodyTimeout: 0.5,
  requestTimeout: 60,
  readTimeout: 7,
  stuckTimeout: 8,
  drainTimeout: 2.25,
  page: false,
  host: "0.0.0.0",
  port: 0,
  allowedHosts: ["edge.example", "edge.lan"],
  gpu: "on",
  gpuLayers: 12,
  powerPreference: "low-power",
  runpodQueue: true,
  quiet: true,
  args: ["--temp", "0", "--verbose"],
};

const parsed = (options: ServerArgsOptions) => parseFlags(serverArgs(options));

Deno.test("serverArgs() says every option so that the command reads it back", () => {
  const flags = parsed(ALL);
  assertEquals(flags.command, "serve");
  assertEquals(flags.warnings, []);
  const texts: Partial<Record<FlagId, string>> = {
    model: "a folder/my model.gguf",
    repeatLayers: "26,34",
    maxContexts: "2",
    memoryBudget: "3584",
    nParallel: "3",
    nCtx: "2048",
    nBatch: "256",
    nUbatch: "128",
    threads: "2",
    cacheTypeK: "q8_0",
    cacheTypeV: "q4_0",
    flashAttention: "on",
    chatTemplate: "{{ messages[0].content }}\n--port 1",
    specType: "draft-simple",
    modelDraft: "-draft.gguf",
    specDraftNMax: "4",
    loraScaled: "one.gguf:1,two:2.gguf:-0.5",
    controlVectorScaled: "v.gguf:2",
    controlVectorRange: "3 9",
    cacheRamMib: "64",
    seed: "7",
    apiPrefix: "/llama",
    pooling: "last",
    apiKeyFile: "keys.txt",
    maxQueue: "0",
    maxBodyBytes: "1.5",
    bodyTimeout: "0.5",
    requestTimeout: "60",
    readTimeout: "7",
    stuckTimeout: "8",
    drainTimeout: "2.25",
    host: "0.0.0.0",
    port: "0",
    gpu: "on",
    gpuLayers: "12",
    powerPreference: "low-power",
    temperature: "0",
  };
  for (const [id, value] of Object.entries(texts)) {
    assertEquals(`${id} ${flags.text(id as FlagId)}`, `${id} ${value}`);
  }
  const lists: Partial<Record<FlagId, string[]>> = {
    aliases: ["edge", "deep=43,45;28,34x2", "order=layers:0..1,1..2", "same=", "a b=none"],
    apiKeys: ["key-1", "--key-2"],
    cors: ["https://one.example", "https://two.example"],
    allowedHosts: ["edge.example", "edge.lan"],
  };
  for (const [id, value] of Object.entries(lists)) assertEquals(flags.all(id as FlagId), value);
  const switches: FlagId[] = [
    "strictModels",
    "swaFull",
    "contextShift",
    "runpodQueue",
    "quiet",
    "verbose",
  ];
  for (const id of switches) assertEquals([id, flags.on(id)], [id, true]);
  assertEquals([flags.off("page"), flags.off("slots")], [true, true]);
});

Deno.test("serverArgs() has an option for every flag of the server", () => {
  const flags = parsed(ALL);
  // What llama.cpp is given as it is goes through `args`; some say what others say as well.
  const through: FlagId[] = [
    ...["grammar", "grammarFile", "jsonSchema", "jsonSchemaFile", "verbosity", "logFile"] as const,
    ...["help", "version", "ignored", "inert", "inertValue"] as const,
    ...["hfRepo", "hfFile", "modelUrl", "hfToken", "offline"] as const, // `model` takes these names
    ...["chatTemplateFile", "lora", "controlVector", "reranking"] as const,
  ];
  const missing = flagsOf("serve").filter((flag) => flag.llama === undefined)
    .map((flag) => flag.id as FlagId).filter((id) => !flags.has(id) && !through.includes(id));
  assertEquals(missing, []);
});

Deno.test("serverArgs() leaves out what is not given", () => {
  assertEquals(serverArgs(), ["serve"]);
  assertEquals(serverArgs({ aliases: {}, apiKeys: [], cors: false, page: true, context: {} }), [
    "serve",
  ]);
  assertEquals(serverArgs({ strictModels: false, model: undefined }), ["serve"]);
});

Deno.test("serverArgs() lets every origin in", () => {
  assertEquals(parsed({ cors: true }).all("cors"), ["*"]);
});

Deno.test("serverArgs() writes plans in any form as text", () => {
  const plans: [ServerArgsOptions["repeatLayers"], string][] = [
    [" 28 .. 33 x 2 ", "28,34x2"],
    [[0, 1, 2, 1, 2], "layers:0..2,1..2"],
    [{ blocks: [[43, 45], [28, 34]] }, "43,45;28,34"],
    ["none", "none"],
  ];
  for (const [plan, text] of plans) {
    assertEquals(parsed({ repeatLayers: plan }).text("repeatLayers"), text);
  }
});

Deno.test("serverArgs() refuses plans that do not parse", () => {
  const message = assertThrows(() => serverArgs({ repeatLayers: "33," }), SyntaxError).message;
  assert(message.startsWith("repeatLayers: "), message);
  assertThrows(() => serverArgs({ aliases: { deep: "34,26" } }), RangeError, "alias deep: ");
});

Deno.test("serverArgs() refuses what cannot stand on a command line", () => {
  const wrong: [ServerArgsOptions, string][] = [
    [{ aliases: { "a=b": "none" } }, 'the alias "a=b"'],
    [{ aliases: { "": "none" } }, 'the alias ""'],
    [{ aliases: { " a": "none" } }, 'the alias " a"'],
    [{ apiKeys: ["a,b"] }, "a comma separates keys"],
    [{ model: "a\0b" }, "model has a NUL character"],
    [{ context: { lora: [{ path: "a,b.gguf" }] } }, 'the path "a,b.gguf"'],
  ];
  for (const [options, message] of wrong) {
    assertThrows(() => serverArgs(options), TypeError, message);
  }
});

Deno.test("serverArgs() refuses unknown options and wrong types", () => {
  const wrong: [Record<string, unknown>, string][] = [
    [{ plan: "26,34" }, 'no option "plan"; did you mean "repeatLayers"?'],
    [{ context: { nCtx: 512 } }, 'context has no option "nCtx"'],
    [{ model: 7 }, "model must be text"],
    [{ port: "8080" }, "port must be a number"],
    [{ nCtx: NaN }, "nCtx must be a number"],
    [{ strictModels: "yes" }, "strictModels must be true or false"],
    [{ page: 0 }, "page must be true or false"],
    [{ allowedHosts: "edge.example" }, "allowedHosts must be a list"],
    [{ apiKeys: [7] }, "an item of apiKeys must be text"],
    [{ args: "--temp 0" }, "args must be a list of texts"],
  ];
  for (const [options, message] of wrong) {
    assertThrows(() => serverArgs(options as ServerArgsOptions), TypeError, message);
  }
});
