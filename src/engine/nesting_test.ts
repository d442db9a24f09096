import { assert } from "@std/assert";
import { isNestedDeeper, MAX_NESTING } from "./nesting.ts";

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = i % 2 ? [value, 2] : { a: value, b: null };
  return value;
}

Deno.test("isNestedDeeper() counts objects and lists, and nothing else", () => {
  for (const limit of [0, 1, 2, 5, MAX_NESTING]) {
    assert(!isNestedDeeper(nested(limit), limit), `${limit}`);
    assert(isNestedDeeper(nested(limit + 1), limit), `${limit} + 1`);
  }
  assert(!isNestedDeeper("text", 0) && !isNestedDeeper(null, 0) && !isNestedDeeper(undefined, 0));
  assert(isNestedDeeper(nested(100_000)));
});
