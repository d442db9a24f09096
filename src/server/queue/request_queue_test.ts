import { assertEquals, assertRejects } from "@std/assert";
import { ApiError } from "../http/api_error.ts";
import { RequestQueue } from "./request_queue.ts";

interface Wish {
  name: string;
  slot: boolean;
}

/** A queue whose places are given by name. */
function queueOf(options: { maxQueue?: number; nParallel?: number } = {}) {
  const free = new Set<string>();
  const queue: RequestQueue<Wish, string> = new RequestQueue(
    { maxQueue: 2, nParallel: 1, ...options },
    () => queue.serve(({ name }) => free.delete(name) ? name : undefined),
  );
  const give = (name: string) => {
    free.add(name);
    queue.serve((wish) => free.delete(wish.name) ? wish.name : undefined);
  };
  const enter = (name: string, slot = true, signal?: AbortSignal) =>
    queue.enter({ name, slot }, signal);
  return { queue, free, give, enter };
}

Deno.test("RequestQueue lets out who can have a place, in the order in which they came", async () => {
  const { queue, free, give, enter } = queueOf();
  free.add("a");
  assertEquals(await enter("a"), "a");
  const order: number[] = [];
  const waiting = [enter("a").then(() => order.push(1)), enter("a").then(() => order.push(2))];
  assertEquals([queue.length, queue.count(({ name }) => name === "a")], [2, 2]);
  give("a");
  await waiting[0];
  assertEquals(order, [1]);
  give("a");
  await waiting[1];
  assertEquals([order, queue.length], [[1, 2], 0]);
});

Deno.test("RequestQueue refuses more than may wait, and says when to come again", async () => {
  const { queue, give, enter } = queueOf({ maxQueue: 1, nParallel: 2 });
  const first = enter("a");
  const retryAfter = async () => {
    const error = await assertRejects(() => enter("b"), ApiError);
    assertEquals(error.status, 503);
    return error.more.headers?.["retry-after"];
  };
  assertEquals(await retryAfter(), "1");
  for (let i = 0; i < 50; i++) queue.ran(10);
  assertEquals(await retryAfter(), "10"); // two ahead of it, two at once, ten seconds each
  for (let i = 0; i < 50; i++) queue.ran(1000);
  assertEquals(await retryAfter(), "120");
  const without = enter("c", false); // what needs no slot is not counted
  assertEquals(queue.length, 1);
  give("a");
  give("c");
  assertEquals(await Promise.all([first, without]), ["a", "c"]);
});

Deno.test("RequestQueue forgets who gives up; with a place already, one has it", async () => {
  const { queue, give, enter } = queueOf();
  const gone = new AbortController();
  const first = assertRejects(() => enter("a", true, gone.signal), Error, "enough");
  const second = enter("b", true, gone.signal);
  give("b");
  gone.abort(new Error("enough"));
  await first;
  assertEquals([await second, queue.length], ["b", 0]);
});

Deno.test("RequestQueue refuses those of a wish, and all when it is closed", async () => {
  const { queue, enter } = queueOf();
  const a = assertRejects(() => enter("a"), Error, "no a");
  const b = assertRejects(() => enter("b"), Error, "closed");
  queue.refuse(new Error("no a"), ({ name }) => name === "a");
  await a;
  assertEquals(queue.length, 1);
  queue.close(new Error("closed"));
  await b;
  await assertRejects(() => enter("c"), Error, "closed");
});
