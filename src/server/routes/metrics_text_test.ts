import { assertEquals } from "@std/assert";
import { metricsText } from "./metrics_text.ts";

Deno.test("metricsText() puts samples of all contexts under one heading, with the plan as a label", () => {
  const zero = {
    requests: 3,
    refused: 0,
    failed: 0,
    cancelled: 0,
    contextsMade: 0,
    contextsFreed: 0,
    reloads: 0,
  };
  const text = '# HELP a:b What.\n# TYPE a:b counter\na:b 5\nc{x="1"} 2\n';
  const lines = metricsText(
    zero,
    { queued: 7, running: 0, contexts: 2, contextBytes: 0, ready: 1 },
    [{ labels: { plan: "none" }, text }, { labels: { plan: 'q"\\' }, text }],
  ).split("\n");
  assertEquals(lines.slice(lines.indexOf("# HELP a:b What.")), [
    "# HELP a:b What.",
    "# TYPE a:b counter",
    'a:b{plan="none"} 5',
    'a:b{plan="q\\"\\\\"} 5',
    'c{x="1",plan="none"} 2',
    'c{x="1",plan="q\\"\\\\"} 2',
    "",
  ]);
  assertEquals(lines.includes("rys_requests_total 3"), true);
  assertEquals(lines.includes("rys_queue_depth 7"), true);
});
