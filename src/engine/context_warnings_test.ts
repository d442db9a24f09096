import { assertEquals } from "@std/assert";
import { contextWarnings } from "./context_warnings.ts";

const MADE = { nCtx: 256, kvBytes: 3 << 20, recurrentBytes: 0 };

Deno.test("contextWarnings() says what a size becomes, and that it is more than the model was trained for", () => {
  assertEquals(contextWarnings(undefined, 100, MADE), []);
  assertEquals(contextWarnings(256, 0, MADE), []);
  assertEquals(contextWarnings(100, 100, MADE), []);
  assertEquals(contextWarnings(10, 512, MADE), [
    "a context of 10 tokens becomes one of 256: sizes are multiples of 256",
  ]);
  assertEquals(contextWarnings(256, 128, MADE), [
    "a context of 256 tokens is larger than the 128 that the model was trained for: " +
    "its cache takes 3 MiB, and one request can use 128 tokens of it",
  ]);
});
