import { assertEquals, assertRejects } from "@std/assert";
import { Gate } from "./gate.ts";

Deno.test("Gate lets in as many as its limit, and the others in order", async () => {
  const gate = new Gate(2);
  assertEquals([gate.enter(), gate.enter()], [undefined, undefined]);
  const order: number[] = [];
  const waiting = [1, 2, 3].map((i) => gate.enter()!.then(() => order.push(i)));
  for (let i = 0; i < 3; i++) gate.leave();
  await Promise.all(waiting);
  assertEquals(order, [1, 2, 3]);
});

Deno.test("Gate takes one that gives up out of the line", async () => {
  const gate = new Gate(1);
  gate.enter();
  const cancel = new AbortController();
  const first = gate.enter(cancel.signal)!;
  const second = gate.enter()!;
  cancel.abort(new Error("enough"));
  await assertRejects(() => first, Error, "enough");
  gate.leave();
  await second;
  // The place of the one that gave up was not lost and not given twice.
  const third = gate.enter()!;
  gate.leave();
  await third;
  gate.leave();
  assertEquals(gate.enter(), undefined);
});

Deno.test("Gate keeps the line when one gives up who was let in a moment before", async () => {
  const gate = new Gate(1);
  gate.enter();
  const cancel = new AbortController();
  const first = gate.enter(cancel.signal)!;
  const second = gate.enter()!;
  gate.leave();
  cancel.abort(new Error("too late"));
  await first; // holds the place all the same
  gate.leave();
  await second;
});

Deno.test("Gate that is closed refuses those who wait and all later ones", async () => {
  const gate = new Gate(1);
  gate.enter();
  const waiting = gate.enter()!;
  gate.close(new Error("closed"));
  await assertRejects(() => waiting, Error, "closed");
  await assertRejects(() => gate.enter()!, Error, "closed");
});
