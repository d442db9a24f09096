// llama.cpp's test-backend-ops on the GPU against its CPU reference: a part that has every operation on every type.
// RYS_OPS_SEED chooses another part. The whole set: deno task test:gpu.

import { assert, assertEquals } from "@std/assert";
import { KNOWN_FAILURES } from "./known.ts";
import { gpuTest } from "./_gpu.ts";
import { choosePart, groupOf, type OpCase, runCases, supportedCases } from "./ops.ts";

Deno.test("a part has every group, moves with the seed and prefers small cases", () => {
  const cases: OpCase[] = [];
  for (const type of ["f32", "q4_0", "q6_K"]) {
    for (let k = 1; k <= 40; k++) {
      cases.push({ op: "MUL_MAT", vars: `type_a=${type},type_b=f32,k=${k}` });
    }
    cases.push({ op: "GET_ROWS", vars: `type=${type},n=256` });
  }
  cases.push({ op: "GET_ROWS", vars: "type=f32,ne=[4096,4096,1,1]" });
  const part = choosePart(cases, 1);
  assertEquals(new Set(part.map(groupOf)), new Set(cases.map(groupOf)));
  assertEquals(part.length, 6);
  assert(!part.some((c) => c.vars.includes("4096")));
  assertEquals(choosePart(cases, 1), part);
  assert(JSON.stringify(choosePart(cases, 2)) !== JSON.stringify(part));
});

gpuTest("test-backend-ops: every operation on every type, GPU against CPU", async () => {
  const seed = Number(Deno.env.get("RYS_OPS_SEED") ?? 1);
  const all = await supportedCases();
  assert(typeof all !== "string", String(all));
  const known = (c: OpCase) => KNOWN_FAILURES.find((k) => k.op === c.op && k.vars.test(c.vars));
  const part = choosePart(all.filter((c) => !known(c)), seed);
  // one case of each kind that is known to fail: it still must
  const failing = KNOWN_FAILURES.map((k) => all.find((c) => c.op === k.op && k.vars.test(c.vars)));
  assertEquals(failing.filter((c) => c === undefined), [], "a known failure matches no case");
  const results = await runCases([...part, ...failing as OpCase[]]);
  // What the CPU reference lacks says nothing: another case of its group then.
  const missing = (of: OpCase[]) => {
    const ran = new Set(results.map(groupOf));
    return of.filter((c) => !ran.has(groupOf(c)));
  };
  const lacking = new Set(missing(part).map(groupOf));
  if (lacking.size > 0) {
    const others = all.filter((c) => lacking.has(groupOf(c)) && !known(c) && !part.includes(c));
    results.push(...await runCases(choosePart(others, seed, 12)));
  }
  const wrong = results.filter((r) => r.ok === Boolean(known(r))).map((r) => r.line);
  assertEquals(
    wrong,
    [],
    `seed ${seed}: ${wrong.length} of ${results.length} cases are not as expected`,
  );
  // the packed integer products, which the backend uses on GPUs of some vendors only
  const packed = all.filter((c) =>
    c.op === "MUL_MAT" && /type_a=(q4_0|q4_1|q8_0|q2_K|q4_K),type_b=f32/.test(c.vars) &&
    /n=[1-4],/.test(c.vars)
  );
  const packedPart = choosePart(packed, seed, 2);
  assertEquals(packedPart.length, 10);
  const asNvidia = await runCases(packedPart, { gpu: { mode: "required", vendor: "nvidia" } });
  assertEquals(
    asNvidia.filter((r) => !r.ok).map((r) => r.line),
    [],
    `seed ${seed}, packed products`,
  );
  assertEquals(asNvidia.length, 10);
  const missed = [...new Set(missing(part).map(groupOf))];
  assertEquals(missed, [], `seed ${seed}: groups that did not run`);
});
