import { assertAlmostEquals, assertEquals } from "@std/assert";
import { likeliest } from "./logits.ts";

Deno.test("likeliest() orders by logit and normalises", () => {
  const top = likeliest(Float32Array.of(0, 3, 1, 3), 3);
  assertEquals(top.map((one) => one.id), [1, 3, 2]);
  const sum = likeliest(Float32Array.of(0, 3, 1, 3), 4)
    .reduce((total, one) => total + Math.exp(one.logprob), 0);
  assertAlmostEquals(sum, 1, 1e-6);
});

Deno.test("likeliest() stands logits far from 0", () => {
  assertAlmostEquals(likeliest(Float32Array.of(1000, -1000), 1)[0]!.logprob, 0, 1e-6);
  assertEquals(likeliest(Float32Array.of(1), 0), []);
});
