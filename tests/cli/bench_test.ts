import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { json, MODEL, program } from "./_program.ts";

const quick = ["bench", "-m", MODEL, "-p", "16", "-n", "4", "-r", "2", "--quiet"];

Deno.test("bench measures none and each plan", async () => {
  const { results } = await json([
    ...quick,
    "--repeat-layers",
    "33,34",
    "--repeat-layers",
    "20,30",
  ]);
  assertEquals(
    results.map((row) => `${row.plan.spec} ${row.test}`),
    ["none pp16", "none tg4", "33,34 pp16", "33,34 tg4", "20,30 pp16", "20,30 tg4"],
  );
  for (const row of results) {
    assertEquals(row.samples_ts.length, 2);
    assert(row.avg_ts > 0 && row.ratio > 0);
  }
  assertEquals([results[0]?.ratio, results[1]?.ratio], [1, 1]);
});

Deno.test("bench prints a table", async () => {
  const { code, out } = await program([...quick, "-n", "0", "-p", "8,16"]);
  assertEquals(code, 0);
  assertStringIncludes(out, "| none |     40 |  pp8 |");
  assertStringIncludes(out, "| none |     40 | pp16 |");
  assertEquals(out.match(/ ± /g)?.length, 2);
  // One sample has no spread.
  const one = await program([...quick, "-n", "0", "-r", "1"]);
  assertEquals([one.code, one.out.includes("±")], [0, false], one.out);
});

Deno.test("bench refuses what cannot be measured", async () => {
  for (const wrong of [["-p", "0", "-n", "0"], ["-n", "1"], ["-p", "x"], ["-r", "0"]]) {
    assertEquals((await program(["bench", "-m", MODEL, ...wrong])).code, 2, wrong.join(" "));
  }
});
