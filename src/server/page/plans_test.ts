import { assertEquals } from "@std/assert";
import { expandPlan, planAdvisories, planToJson } from "../../plan/mod.ts";
import { blocksOf, edgeOf, freeLayer, range, specOf, timesOf, withBlock } from "./plans.js";

const plan = (spec: string, nLayer = 40) => planToJson(expandPlan(spec, nLayer));

Deno.test("specOf() writes blocks that the parser reads back as the same blocks", () => {
  const cases = [
    [],
    [{ start: 26, end: 34, count: 2 }],
    [{ start: 7, end: 8, count: 5 }],
    [{ start: 3, end: 5, count: 2 }, { start: 5, end: 9, count: 3 }],
    [{ start: 0, end: 40, count: 2 }],
    [{ start: 0, end: 1, count: 2 }, { start: 20, end: 21, count: 4 }, {
      start: 39,
      end: 40,
      count: 2,
    }],
  ];
  for (const blocks of cases) assertEquals(blocksOf(plan(specOf(blocks))), blocks, specOf(blocks));
});

Deno.test("specOf() writes the short form where a block runs once more", () => {
  assertEquals(specOf([{ start: 26, end: 34, count: 2 }]), "26,34");
  assertEquals(specOf([{ start: 26, end: 34, count: 4 }]), "26-34x3");
  assertEquals(specOf([]), "none");
});

Deno.test("blocksOf() gives null for plans that are not blocks in place", () => {
  for (const spec of ["layers:0..9,20..39", "layers:0..20,5..39,1", "layers:0..30"]) {
    assertEquals(blocksOf(plan(spec)), null, spec);
  }
});

Deno.test("timesOf() counts how often each layer runs", () => {
  const counts = (layers: number[]) =>
    Array.from({ length: 40 }, (_, il) => layers.filter((one) => one === il).length);
  for (const spec of ["none", "26,34", "8,12;10,14", "layers:0..9,20..39", "20-21x7"]) {
    assertEquals(timesOf(plan(spec)), counts(plan(spec).layers), spec);
  }
});

Deno.test("withBlock() drops what the new block overlaps", () => {
  const blocks = [{ start: 2, end: 5, count: 2 }, { start: 8, end: 10, count: 3 }];
  const put = (start: number, end: number) => withBlock(blocks, { start, end, count: 2 });
  assertEquals(put(5, 8).map(({ start }) => start), [2, 5, 8]);
  assertEquals(put(4, 6).map(({ start }) => start), [4, 8]);
  assertEquals(put(0, 40).map(({ start }) => start), [0]);
});

Deno.test("freeLayer() is in the middle of the longest free stretch", () => {
  assertEquals(freeLayer([], 40), 20);
  assertEquals(freeLayer([{ start: 0, end: 30, count: 2 }], 40), 35);
  assertEquals(freeLayer([{ start: 10, end: 40, count: 2 }], 40), 5);
  assertEquals(freeLayer([{ start: 0, end: 40, count: 2 }], 40), undefined);
  assertEquals(freeLayer([], 0), undefined);
});

Deno.test("range() is inclusive", () => {
  assertEquals([range(26, 34), range(7, 8)], ["26..33", "7"]);
});

Deno.test("edgeOf() is where the warnings begin", () => {
  for (const n of [16, 24, 40, 64, 128]) {
    const edge = edgeOf(n);
    const warns = (il: number) => planAdvisories(plan(`${il},${il + 1}`, n).layers, n).length > 0;
    assertEquals([warns(edge - 1), warns(edge)], [true, false], `${n}`);
    assertEquals([warns(n - edge - 1), warns(n - edge)], [false, true], `${n}`);
  }
});
