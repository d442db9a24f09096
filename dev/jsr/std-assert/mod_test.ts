import * as a from "@std/assert";
import { assert, assertEquals, AssertionError, assertRejects, assertThrows } from "@std/assert";

Deno.test("assertEquals() compares structure", () => {
  assertEquals({ a: [1, { b: new Uint8Array([1, 2]) }], c: new Map([["x", 1n]]) }, {
    c: new Map([["x", 1n]]),
    a: [1, { b: new Uint8Array([1, 2]) }],
  });
  for (
    const [x, y] of [
      [1, 2],
      [{ a: 1 }, {}],
      [{ a: undefined }, {}],
      [[1], [1, 2]],
      [new Set([1]), new Set([2])],
      [
        new Uint8Array([1]),
        new Uint8Array([2]),
      ],
      ["1", 1],
      [new Error("a"), new Error("b")],
      [null, undefined],
    ]
  ) {
    assertThrows(() => assertEquals<unknown>(x, y), AssertionError, "not equal");
    a.assertNotEquals<unknown>(x, y);
  }
});

Deno.test("assertThrows() checks class and text", async () => {
  const error = assertThrows(() => JSON.parse("{"), SyntaxError);
  assert(error instanceof SyntaxError);
  assertThrows(() => assertThrows(() => {}), AssertionError, "Expected function to throw");
  assertThrows(() => assertThrows(() => JSON.parse("{"), RangeError), AssertionError, "RangeError");
  assertThrows(
    () =>
      assertThrows(
        () => {
          throw new Error("one");
        },
        Error,
        "two",
      ),
    AssertionError,
    "to include",
  );
  await assertRejects(() => Promise.reject(new TypeError("no")), TypeError, "no");
  await assertRejects(
    () => assertRejects(() => Promise.resolve()),
    AssertionError,
    "Expected function to reject",
  );
});

Deno.test("the other assertions fail when they should", () => {
  assertThrows(() => assert(0), AssertionError);
  assertThrows(() => a.assertFalse(1), AssertionError);
  assertThrows(() => a.assertExists(null), AssertionError);
  assertThrows(() => a.assertStringIncludes("abc", "x"), AssertionError);
  assertThrows(() => a.assertMatch("abc", /x/), AssertionError);
  assertThrows(() => a.assertInstanceOf({}, Map), AssertionError);
  assertThrows(() => a.assertAlmostEquals(1, 1.1), AssertionError);
  assertThrows(() => a.assertStrictEquals(0, -0), AssertionError);
  assertThrows(() => a.assertObjectMatch({ a: 1 }, { a: 2 }), AssertionError);
  assertThrows(() => a.assertGreater(1, 1), AssertionError);
  assertThrows(() => a.fail("x"), AssertionError, "Failed assertion: x");
  assertThrows(() => a.unreachable(), AssertionError);
  a.assertAlmostEquals(0.1 + 0.2, 0.3);
  a.assertObjectMatch({ a: { b: 1, c: 2 }, d: 3 }, { a: { b: 1 } });
  a.assertArrayIncludes([1, { x: 2 }], [{ x: 2 }]);
});
