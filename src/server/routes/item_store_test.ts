import { assertEquals, assertThrows } from "@std/assert";
import { ApiError } from "../http/api_error.ts";
import { ItemStore } from "./item_store.ts";

const message = (id: string, text: string) => ({ type: "message", id, role: "assistant", text });
const reference = (id: string) => ({ type: "item_reference", id });

Deno.test("ItemStore puts items in the place of references", () => {
  const store = new ItemStore();
  const one = message("msg_1", "one");
  store.keep([one, { type: "reasoning", id: "rs_1", summary: [] }]);
  const user = { role: "user", content: "Hello" };
  assertEquals(store.resolve([user, reference("msg_1"), { id: "rs_1" }, one]), [
    user,
    one,
    { type: "reasoning", id: "rs_1", summary: [] },
    one,
  ]);
  assertEquals(store.resolve("Hello"), "Hello");
  assertEquals(store.resolve(undefined), undefined);
});

Deno.test("ItemStore says which item it does not have", () => {
  const store = new ItemStore();
  assertThrows(() => store.resolve([reference("msg_1")]), ApiError, `"input[0]" refers to`);
  store.keep("nothing");
  store.keep([7, { id: 7 }]);
  assertThrows(() => store.resolve([{ role: "user" }, { id: "x" }]), ApiError, `"input[1]"`);
});

Deno.test("ItemStore lets the oldest go, and never holds more than it may", () => {
  const size = 2 * JSON.stringify(message("msg_0", "text")).length;
  const store = new ItemStore(2 * size);
  for (let i = 0; i < 3; i++) store.keep([message(`msg_${i}`, "text")]);
  assertThrows(() => store.resolve([reference("msg_0")]), ApiError);
  assertEquals(store.resolve([reference("msg_1"), reference("msg_2")]), [
    message("msg_1", "text"),
    message("msg_2", "text"),
  ]);
  store.keep([message("msg_1", "text")]); // again: it is the newest now
  store.keep([message("msg_3", "text")]);
  assertThrows(() => store.resolve([reference("msg_2")]), ApiError);
  store.resolve([reference("msg_1"), reference("msg_3")]);
  store.keep([message("msg_4", "x".repeat(2 * size))]);
  assertThrows(() => store.resolve([reference("msg_4")]), ApiError);
});
