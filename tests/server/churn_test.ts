import { assert, assertEquals } from "@std/assert";
import { json, metric, send, test } from "./_server.ts";

const CLIENTS = 6;
const TURNS = 40;
const PLANS = ["none", "1,2", "5,7", "12,16", "20,22", "26,34", "33,35"];

const ask = (plan: string) => ({
  model: plan === "none" ? "demo" : `demo@${plan}`,
  prompt: "Once upon a time",
  max_tokens: 1,
  temperature: 0,
});

test("many clients rotate through more plans than there are contexts, and all are answered", {
  maxContexts: 2,
  maxQueue: 100,
}, async (server) => {
  const want = new Map<string, string>();
  for (const plan of PLANS) {
    want.set(plan, (await json(server, "/v1/completions", ask(plan))).choices[0].text);
  }
  let running = CLIENTS;
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let turn = 0; turn < TURNS; turn++) {
      const plan = PLANS[(turn + client) % PLANS.length]!;
      const { choices, rys } = await json(server, "/v1/completions", ask(plan));
      assertEquals([rys.plan, choices[0].text], [plan, want.get(plan)]);
    }
    running--;
  });
  const looks = ["/slots", "/metrics"].map(async (path) => {
    while (running > 0) {
      await new Promise((resolve) => setTimeout(resolve, 5)); // an answer without a context may come at once
      const response = await send(server, path);
      const text = await response.text();
      assertEquals(response.status, 200, text);
      if (path === "/metrics") continue;
      for (const slot of JSON.parse(text)) assert(PLANS.includes(slot.rys.plan));
    }
  });
  await Promise.all([...clients, ...looks]);
  assertEquals(await metric(server, "rys_reloads_total"), 0);
  assertEquals(await metric(server, "rys_requests_failed_total"), 0);
});
