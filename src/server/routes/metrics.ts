import { askContexts } from "../plans/ask_contexts.ts";
import type { Call } from "./call.ts";
import { metricsText } from "./metrics_text.ts";

/** How long a context may take to say its numbers, in milliseconds. */
const METRICS_MS = 2000;

/** Numbers for Prometheus. */
export async function metrics({ active, counts, life }: Call): Promise<Response> {
  const { pool } = life.need();
  const contexts = [];
  for await (
    const { entry, text } of askContexts(pool.entries, "/metrics", active.signal, METRICS_MS)
  ) {
    contexts.push({ labels: { plan: entry.plan.spec, kind: entry.kind }, text });
  }
  const text = metricsText(counts, {
    queued: pool.queued,
    running: pool.running,
    contexts: pool.entries.length,
    contextBytes: pool.bytes,
    ready: life.state === "ready" ? 1 : 0,
  }, contexts);
  return new Response(text, { headers: { "content-type": "text/plain; version=0.0.4" } });
}
