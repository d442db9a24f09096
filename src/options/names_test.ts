import { assertEquals, assertThrows } from "@std/assert";
import { knownNames, nearest } from "./names.ts";

const KNOWN = ["nCtx", "maxTokens", "temperature", "threads", "contextShift"];

Deno.test("nearest() finds a name in another spelling, by another library's word, or none", () => {
  const cases: [string, string | undefined][] = [
    ["nctx", "nCtx"],
    ["n_ctx", "nCtx"],
    ["contextSize", "nCtx"],
    ["max_tokens", "maxTokens"],
    ["maxToken", "maxTokens"],
    ["maxNewTokens", "maxTokens"],
    ["temp", "temperature"],
    ["temprature", "temperature"],
    ["n_threads", "threads"],
    ["gpuLayers", undefined],
    ["x", undefined],
    ["", undefined],
  ];
  for (const [name, near] of cases) assertEquals(nearest(name, KNOWN), near, name);
});

Deno.test("knownNames() takes known names, and no other, even one without a value", () => {
  knownNames("f()", { nCtx: 1, threads: undefined }, KNOWN);
  knownNames("f()", {}, KNOWN);
  assertThrows(() => knownNames("f()", { toString: undefined }, KNOWN), TypeError, '"toString"');
  assertThrows(() => knownNames("f()", null as unknown as object, KNOWN), TypeError, "f()");
});
