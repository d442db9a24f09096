import { assertEquals } from "@std/assert";
import { withoutPrefix } from "./api_prefix.ts";

Deno.test("withoutPrefix() takes the beginning of a path away, and nothing else", async () => {
  const of = (path: string, prefix = "/llama") =>
    withoutPrefix(new Request(`http://host${path}`), prefix)?.url;
  assertEquals(of("/health", ""), "http://host/health");
  assertEquals(of("/llama/v1/models?a=1"), "http://host/v1/models?a=1");
  assertEquals(of("/llama"), "http://host/");
  assertEquals(of("/llama/"), "http://host/");
  assertEquals(of("/health"), undefined);
  assertEquals(of("/llamas/health"), undefined);

  const stop = new AbortController();
  const request = withoutPrefix(
    new Request("http://host/a/b", { method: "POST", body: "text", signal: stop.signal }),
    "/a",
  )!;
  assertEquals([request.method, await request.text()], ["POST", "text"]);
  stop.abort();
  assertEquals(request.signal.aborted, true);
});
