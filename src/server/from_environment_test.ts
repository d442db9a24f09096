import { assertEquals, assertThrows } from "@std/assert";
import { fromEnvironment, parseNames } from "./from_environment.ts";

Deno.test("fromEnvironment() reads llama-server's variables", () => {
  const variables: Record<string, string> = {
    LLAMA_ARG_MODEL: "m.gguf",
    LLAMA_ARG_REPEAT_LAYERS: "1,2",
    LLAMA_ARG_ALIAS: "deep=26,34&plain=none&same",
    LLAMA_ARG_CTX_SIZE: "512",
    LLAMA_ARG_N_PARALLEL: "2",
    LLAMA_ARG_N_GPU_LAYERS: "12",
    LLAMA_API_KEY: "a, b",
  };
  const options = fromEnvironment((name) => variables[name]);
  assertEquals({ ...options, aliases: { ...options.aliases } }, {
    model: "m.gguf",
    repeatLayers: "1,2",
    modelName: "same",
    aliases: { deep: "26,34", plain: "none" },
    nCtx: 512,
    nParallel: 2,
    load: { gpuLayers: 12 },
    apiKeys: ["a", "b"],
  });
  assertEquals(fromEnvironment(() => undefined).model.toString().endsWith("demo.gguf"), true);
  assertThrows(
    () => fromEnvironment((name) => name === "LLAMA_ARG_CTX_SIZE" ? "x" : undefined),
    TypeError,
    "LLAMA_ARG_CTX_SIZE must be a whole number",
  );
});

Deno.test("fromEnvironment() reads a number of GPU layers as llama.cpp does", () => {
  const layers = (text: string) =>
    fromEnvironment((name) => name === "LLAMA_ARG_N_GPU_LAYERS" ? text : undefined).load?.gpuLayers;
  assertEquals(["0", "+7", "-1", "-2", "auto", "all"].map(layers), [
    0,
    7,
    "all",
    "all",
    "all",
    "all",
  ]);
  for (const wrong of ["x", "1.5", ""]) {
    assertThrows(() => layers(wrong), TypeError, "LLAMA_ARG_N_GPU_LAYERS must be a whole number");
  }
});

Deno.test("fromEnvironment() reads the variables of the whole table", () => {
  const variables: Record<string, string> = {
    LLAMA_ARG_THREADS: "-1",
    LLAMA_ARG_BATCH: "256",
    LLAMA_ARG_FLASH_ATTN: "1",
    LLAMA_ARG_TOP_K: "7",
    LLAMA_ARG_ROPE_SCALE: "2",
    LLAMA_ARG_NO_CACHE_PROMPT: "",
    LLAMA_ARG_ENDPOINT_SLOTS: "off",
    LLAMA_ARG_UI: "0",
    LLAMA_ARG_TIMEOUT: "60",
  };
  const { model: _, ...options } = fromEnvironment((name) => variables[name]);
  assertEquals(options, {
    requestTimeout: 60,
    page: false,
    slots: false,
    context: {
      nBatch: 256,
      flashAttention: "on",
      args: ["--no-cache-prompt", "--rope-scale", "2", "--top-k", "7"],
    },
  });
  assertThrows(
    () => fromEnvironment((name) => name === "LLAMA_ARG_UI" ? "maybe" : undefined),
    TypeError,
    "LLAMA_ARG_UI must be on or off",
  );
});

Deno.test("fromEnvironment() reads the files that variables name, and drops nothing in silence", async () => {
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "key-1\nkey-2\n");
  const variables: Record<string, string> = {
    LLAMA_API_KEY: "key-0",
    LLAMA_ARG_API_KEY_FILE: file,
    LLAMA_ARG_CHAT_TEMPLATE_FILE: file,
    LLAMA_ARG_SPEC_TYPE: "ngram-simple",
    LLAMA_ARG_SPEC_DRAFT_N_MAX: "4",
    LLAMA_ARG_CORS_ORIGINS: "https://a.example, localhost",
  };
  const options = fromEnvironment((name) => variables[name]);
  await Deno.remove(file);
  assertEquals(options.apiKeys, ["key-0", "key-1", "key-2"]);
  assertEquals(options.cors, ["https://a.example", "localhost"]);
  assertEquals(options.context, {
    chatTemplate: "key-1\nkey-2\n",
    speculative: { type: "ngram", nMax: 4 },
  });
  assertThrows(
    () => fromEnvironment((name) => name === "LLAMA_ARG_LOG_FILE" ? "log" : undefined),
    TypeError,
    "LLAMA_ARG_LOG_FILE",
  );
});

Deno.test("parseNames() tells the model's names from those of plans", () => {
  assertEquals(
    { ...parseNames(["a = 1,2", "__proto__=3,4"]).aliases },
    JSON.parse('{"a":"1,2","__proto__":"3,4"}'),
  );
  const { modelName, aliases } = parseNames(["one, two", "deep=26,34", "three", "same="]);
  assertEquals(modelName, "one");
  assertEquals({ ...aliases }, {
    two: undefined,
    deep: "26,34",
    three: undefined,
    same: undefined,
  });
  assertThrows(() => parseNames(["=1,2"]), TypeError, "name=spec");
  assertThrows(() => parseNames([""]), TypeError);
  assertThrows(() => parseNames(["a=1,2", "a=3,4"]), TypeError, "given twice, as 1,2 and as 3,4");
  assertThrows(() => parseNames(["a,,b"]), TypeError);
});

Deno.test("fromEnvironment() takes a model of the hub, which goes before a file", () => {
  const model = (env: Record<string, string>) => fromEnvironment((name) => env[name]).model;
  assertEquals(model({ LLAMA_ARG_HF_REPO: "o/r:Q8_0", LLAMA_ARG_MODEL: "m.gguf" }), "hf:o/r:Q8_0");
  assertEquals(
    model({ LLAMA_ARG_HF_REPO: "o/r:Q8_0", LLAMA_ARG_HF_FILE: "m.gguf" }),
    "hf:o/r/m.gguf",
  );
  assertEquals(model({ LLAMA_ARG_MODEL_URL: "https://a.test/m.gguf" }), "https://a.test/m.gguf");
});
