import { assertEquals } from "@std/assert";
import { outputNames, splitTensors } from "./split.ts";

Deno.test("tensors fill one file after another, in their order", () => {
  assertEquals(splitTensors([5, 5, 5], {}), [[0, 3]]);
  assertEquals(splitTensors([5, 5, 5], { maxBytes: 10 }), [[0, 2], [2, 3]]);
  assertEquals(splitTensors([5, 50, 5], { maxBytes: 10 }), [[0, 1], [1, 2], [2, 3]]);
  assertEquals(splitTensors([1, 1, 1, 1, 1], { maxTensors: 2 }), [[0, 2], [2, 4], [4, 5]]);
  assertEquals(splitTensors([9, 1, 1, 9], { maxTensors: 2, maxBytes: 10 }), [[0, 2], [2, 4]]);
  assertEquals(splitTensors([], { maxTensors: 2 }), [[0, 0]]);
});

Deno.test("shards have llama.cpp's names", () => {
  assertEquals(outputNames("a/b.gguf", 1), ["a/b.gguf"]);
  assertEquals(outputNames("a/b.gguf", 2), ["a/b-00001-of-00002.gguf", "a/b-00002-of-00002.gguf"]);
  assertEquals(outputNames("b", 1), ["b"]);
});
