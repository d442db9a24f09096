import { assertEquals } from "@std/assert";
import { ApiKeys } from "./api_keys.ts";

const ask = (keys: ApiKeys, headers: Record<string, string>) => keys.allow(new Headers(headers));

Deno.test("ApiKeys lets everybody in where there are none", () => {
  const keys = new ApiKeys([]);
  assertEquals([keys.required, ask(keys, {})], [false, true]);
});

Deno.test("ApiKeys takes a key from either header, and no other text", () => {
  const keys = new ApiKeys(["abc", "def"]);
  for (
    const headers of [
      { authorization: "Bearer abc" },
      { authorization: "BEARER   def" },
      { authorization: "def" },
      { "x-api-key": "abc" },
    ] as Record<string, string>[]
  ) {
    assertEquals(ask(keys, headers), true, JSON.stringify(headers));
  }
  for (
    const headers of [
      {},
      { authorization: "Bearer" },
      { authorization: "Bearer abcdef" },
      { authorization: "Bearer ab" },
      { authorization: "Bearer abc, Bearer def" },
      { authorization: "Basic abc", "x-api-key": "abc" },
    ] as Record<string, string>[]
  ) {
    assertEquals(ask(keys, headers), false, JSON.stringify(headers));
  }
});
