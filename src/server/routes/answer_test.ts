import { assertEquals } from "@std/assert";
import { expandPlan } from "../../plan/mod.ts";
import { eventMarker, markAnswer, ran } from "./answer.ts";

const WHAT = ran("demo@1,2", expandPlan("1,2", 4), 7);

Deno.test("ran() names the plan, and long ones by their hash", () => {
  assertEquals(WHAT.rys.n_layer_eff, 5);
  assertEquals(WHAT.fingerprint.endsWith(" 1,2"), true);
  const long = expandPlan(Array(40).fill("1,2").join(";"), 4);
  assertEquals(ran("x", long).fingerprint.endsWith(` ${ran("x", long).rys.plan_hash}`), true);
});

Deno.test("markAnswer() says what ran, in objects and lists", () => {
  const one: Record<string, unknown> = { model: "x", system_fingerprint: "b1", n: 1 };
  markAnswer(one, WHAT);
  assertEquals(one, {
    model: "demo@1,2",
    system_fingerprint: WHAT.fingerprint,
    n: 1,
    rys: WHAT.rys,
  });
  const list: Record<string, unknown>[] = [{ model: "x" }, {}];
  markAnswer(list, WHAT);
  assertEquals(list.map(({ rys }) => rys), [WHAT.rys, WHAT.rys]);
});

Deno.test("eventMarker() marks whole events, however their bytes come", () => {
  const stream = [
    `data: ${
      JSON.stringify({
        model: "x",
        system_fingerprint: "b",
        choices: [{ finish_reason: null, delta: { content: 'é"system_fingerprint":"no"\n' } }],
      })
    }\n\n`,
    ":\n\n",
    `event: message_start\ndata: ${
      JSON.stringify({ type: "message_start", message: { model: "x" } })
    }\n\n`,
    `data: ${JSON.stringify({ model: "x", choices: [{ finish_reason: "stop" }] })}\n\n`,
    "data: [DONE]\n\n",
  ].join("");
  const bytes = new TextEncoder().encode(stream);
  for (const step of [1, 7, bytes.length]) {
    const mark = eventMarker(WHAT);
    let out = "";
    for (let i = 0; i < bytes.length; i += step) {
      out += new TextDecoder().decode(mark(bytes.subarray(i, i + step)));
    }
    out += new TextDecoder().decode(mark());
    const parts = out.split("\n\n");
    const first = JSON.parse(parts[0]!.slice(6));
    assertEquals([first.model, first.system_fingerprint, first.rys], [
      "demo@1,2",
      WHAT.fingerprint,
      undefined,
    ]);
    assertEquals(first.choices[0].delta.content, 'é"system_fingerprint":"no"\n');
    assertEquals(parts[1], ":");
    assertEquals(JSON.parse(parts[2]!.split("data: ")[1]!).message.rys, WHAT.rys);
    assertEquals(JSON.parse(parts[3]!.slice(6)).rys, WHAT.rys);
    assertEquals(parts.slice(4), ["data: [DONE]", ""]);
  }
});
