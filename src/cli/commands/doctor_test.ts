import { assertEquals } from "@std/assert";
import { cacheFolder, wasmFeatures } from "./doctor.ts";

Deno.test("wasmFeatures() finds what the supported Deno has", () => {
  assertEquals(wasmFeatures(), {
    memory64: true,
    threads: true,
    SIMD: true,
    "relaxed SIMD": true,
    exceptions: true,
    JSPI: true,
  });
});

Deno.test({
  name: "cacheFolder() is in the cache's or the user's folder, or nowhere",
  ignore: Deno.build.os !== "linux",
  fn() {
    const at = (env: Record<string, string>) => cacheFolder((name) => env[name]);
    assertEquals(at({ HOME: "/h" }), { path: "/h/.cache/rys-edge" });
    assertEquals(at({ HOME: "/h", XDG_CACHE_HOME: "/c" }), { path: "/c/rys-edge" });
    assertEquals(at({}), { path: undefined, why: "none: HOME and XDG_CACHE_HOME are not set" });
  },
});
