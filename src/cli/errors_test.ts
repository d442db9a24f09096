import { assertEquals, assertThrows } from "@std/assert";
import {
  asUsage,
  describeError,
  Failure,
  fileError,
  Interrupted,
  OutputClosed,
  UsageError,
} from "./errors.ts";

Deno.test("describeError() tells usage, failures and signals apart", () => {
  assertEquals(describeError(new UsageError("x")), { code: 2, message: "x" });
  assertEquals(describeError(new Failure("x")), { code: 1, message: "x" });
  assertEquals(describeError(new TypeError("x")), { code: 1, message: "x" });
  assertEquals(describeError("x"), { code: 1, message: "x" });
  assertEquals(describeError(new Interrupted("SIGINT", 130)), { code: 130, message: "" });
  assertEquals(describeError(new OutputClosed("x")), { code: 0, message: "" });
});

Deno.test("describeError() makes one line of a message", () => {
  assertEquals(describeError(new Error("a:\n  b\r\n\nc\n")).message, "a: b c");
  assertEquals(describeError(new RangeError("")).message, "RangeError");
});

Deno.test("describeError() says what makes room for a long prompt", () => {
  const error = Object.assign(new Error("too long"), {
    type: "exceed_context_size_error",
    details: { n_prompt_tokens: 1000, n_ctx: 256 },
  });
  assertEquals(describeError(error).message, "too long; -c 1256 or more makes room");
});

Deno.test("asUsage() makes a plan's errors the user's, and no others", () => {
  const fail = (error: Error) => () => {
    throw error;
  };
  const { message } = assertThrows(
    () => asUsage("--repeat-layers", fail(new RangeError("out of range"))),
    UsageError,
  );
  assertEquals(message, "--repeat-layers: out of range");
  assertThrows(() => asUsage("", fail(new Deno.errors.NotFound("gone"))), Deno.errors.NotFound);
  assertEquals(asUsage("", () => 1), 1);
});

Deno.test("fileError() says why in words", () => {
  const why = (error: unknown) => fileError("read", "f", error).message;
  assertEquals(why(new Deno.errors.NotFound("os error")), "cannot read f: no such file");
  assertEquals(why(new Deno.errors.IsADirectory("x")), "cannot read f: it is a folder");
  assertEquals(why(new Error("full (os error 28): write 'f'")), "cannot read f: full");
});
