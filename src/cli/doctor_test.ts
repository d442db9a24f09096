import { assertEquals } from "@std/assert";
import { wasmFeatures } from "./doctor.ts";

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
