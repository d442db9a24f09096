import { assertEquals, assertThrows } from "@std/assert";
import { fromEnvironment, parseAliases } from "./from_environment.ts";

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
    aliases: { deep: "26,34", plain: "none", same: undefined },
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

Deno.test("parseAliases() wants names", () => {
  assertEquals(
    { ...parseAliases(["a = 1,2", "__proto__=3,4"]) },
    JSON.parse('{"a":"1,2","__proto__":"3,4"}'),
  );
  assertThrows(() => parseAliases(["=1,2"]), TypeError, "name=spec");
  assertThrows(() => parseAliases([""]), TypeError);
});
