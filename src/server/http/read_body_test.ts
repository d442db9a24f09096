import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { ApiError, ClientGone } from "./api_error.ts";
import { BodyBudget, readJson } from "./read_body.ts";

const request = (body: BodyInit) => new Request("http://localhost/", { method: "POST", body });

Deno.test("readJson() reads an object, and replaces bytes that are not UTF-8", async () => {
  assertEquals(await readJson(request('{"a":[1]}'), 100, 1), { a: [1] });
  const bytes = new TextEncoder().encode('{"a":"?"}');
  bytes[6] = 0xff;
  assertEquals(await readJson(request(bytes), 100, 1), { a: "\ufffd" });
});

Deno.test("readJson() says what is wrong, and quotes nothing of the body", async () => {
  for (
    const [text, message] of [
      ["", "The body is not JSON: it ends too early"],
      ['{"secret', "The body is not JSON: it cannot be parsed at position 8 (line 1 column 9)"],
      ["{a", "The body is not JSON: it cannot be parsed at position 1 (line 1 column 2)"],
      ["[]", "The body must be a JSON object, not a list"],
      ["null", "The body must be a JSON object, not null"],
      ["5", "The body must be a JSON object, not a number"],
    ] as const
  ) {
    const error = await assertRejects(() => readJson(request(text), 100, 1), ApiError);
    assertEquals([error.status, error.message], [400, message]);
  }
});

Deno.test("readJson() tells a body that was cut from one that is wrong", async () => {
  const cut = new ReadableStream({
    start(controller) {
      controller.error(new Error("reset"));
    },
  });
  await assertRejects(() => readJson(request(cut), 100, 1), ClientGone);
});

Deno.test("BodyBudget refuses what there is no room for until some is given back", async () => {
  const budget = new BodyBudget(10);
  const take = (bytes: number) => budget.take(bytes);
  await readJson(request('{"a":1}'), 100, 1, take);
  const error = await assertRejects(() => readJson(request('{"a":1}'), 100, 1, take), ApiError);
  assertEquals([error.status, error.more.headers], [503, { "retry-after": "5" }]);
  budget.give(7);
  assertThrows(() => budget.take(11), ApiError);
  budget.take(10);
});
