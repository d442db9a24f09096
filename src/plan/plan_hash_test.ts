import { assertEquals, assertThrows } from "@std/assert";
import { planHash, planHashHex } from "./plan_hash.ts";
import { expandPlan } from "./expand_plan.ts";

Deno.test("planHash() is 64-bit FNV-1a", () => {
  // The published test vectors of FNV-1a 64 that are four bytes long or empty.
  const fourBytes = (text: string) =>
    new DataView(new TextEncoder().encode(text).buffer).getUint32(0, true);
  assertEquals(planHashHex([]), "cbf29ce484222325");
  assertEquals(planHashHex([fourBytes("foob")]), "dd120e790c2512af");
  assertEquals(planHashHex([0]), "4d25767f9dce13f5");
});

Deno.test("planHash() tells plans apart", () => {
  const hashes = new Set<bigint>();
  for (let i = 0; i < 40; i++) {
    for (let j = i + 1; j <= 40; j++) hashes.add(planHash(expandPlan(`${i},${j}`, 40).layers));
  }
  assertEquals(hashes.size, 820);
});

Deno.test("planHash() refuses what is not a layer", () => {
  for (const il of [-1, 0.5, 2 ** 32, NaN]) assertThrows(() => planHash([il]), RangeError);
});
