import { assertEquals } from "@std/assert";
import { EngineError } from "../../engine/mod.ts";
import { ApiError, toApiError, withoutPlaces } from "./api_error.ts";

Deno.test("toApiError() says nothing of what is not a client's", () => {
  assertEquals(toApiError(new Error("secret /root/x.ts:5")).toJson(), {
    code: 500,
    message: "The request failed inside the server",
    type: "server_error",
  });
  const fatal = new EngineError("the engine's instance is gone: /rys/up/x.cpp:254: GGML_ASSERT", {
    fatal: true,
  });
  assertEquals(toApiError(fatal).status, 500);
  assertEquals(toApiError(fatal).message.includes("GGML"), false);
});

Deno.test("toApiError() keeps what llama-server said", () => {
  const error = new EngineError("too long", {
    status: 400,
    type: "exceed_context_size_error",
    details: { n_ctx: 256 },
  });
  assertEquals(toApiError(error).toJson(), {
    code: 400,
    message: "too long",
    type: "exceed_context_size_error",
    n_ctx: 256,
  });
  const own = new ApiError(404, "no");
  assertEquals(toApiError(own), own);
});

Deno.test("withoutPlaces() takes out files and lines of code, and nothing else", () => {
  for (
    const [text, clean] of [
      ["cannot open /home/me/models/a.gguf: no", "cannot open (file): no"],
      ["/rys/up/common/sampling.cpp:254: failed", "(file): failed"],
      ["at server-context.cpp:99", "at (file)"],
      ["see file:///etc/passwd now", "see (file) now"],
      ["C:\\models\\a.gguf is bad", "(file) is bad"],
      ["../models/x.gguf", "(file)"],
      ["1/2 and/or 26,34 at position 3", "1/2 and/or 26,34 at position 3"],
      ["JSON schema error at #/properties/a/b", "JSON schema error at #/properties/a/b"],
      ["https://example.com/a/b is remote", "https://example.com/a/b is remote"],
    ] as const
  ) {
    assertEquals(withoutPlaces(text), clean);
  }
});
