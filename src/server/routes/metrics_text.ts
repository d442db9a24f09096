import type { ServerCounts } from "../life/server_counts.ts";

/** Numbers of the moment. */
export interface ServerGauges {
  /** Requests that wait. */
  queued: number;
  /** Requests that run. */
  running: number;
  /** Contexts. */
  contexts: number;
  /** Bytes of their caches and scratch. */
  contextBytes: number;
  /** 1 when the model is there. */
  ready: number;
}

/**
 * Metrics in Prometheus's text form: the server's own, and upstream's of each context with the plan as a label.
 *
 * @param counts What has happened.
 * @param gauges What is.
 * @param contexts Upstream's text of each context.
 */
export function metricsText(
  counts: ServerCounts,
  gauges: ServerGauges,
  contexts: { labels: Record<string, string>; text: string }[],
): string {
  const own: [name: string, type: string, help: string, value: number][] = [
    ["requests_total", "counter", "Requests that came.", counts.requests],
    [
      "requests_refused_total",
      "counter",
      "Requests refused with 503, to be tried again.",
      counts.refused,
    ],
    ["requests_failed_total", "counter", "Requests that ended in a server error.", counts.failed],
    ["requests_cancelled_total", "counter", "Requests whose client left.", counts.cancelled],
    ["contexts_made_total", "counter", "Contexts made.", counts.contextsMade],
    ["contexts_freed_total", "counter", "Contexts freed.", counts.contextsFreed],
    ["reloads_total", "counter", "Times the model was loaded again.", counts.reloads],
    ["queue_depth", "gauge", "Requests that wait for their turn.", gauges.queued],
    ["requests_running", "gauge", "Requests that run.", gauges.running],
    ["contexts", "gauge", "Contexts, each with its plan.", gauges.contexts],
    ["context_bytes", "gauge", "Bytes of the contexts' caches and scratch.", gauges.contextBytes],
    ["ready", "gauge", "Whether the model is loaded.", gauges.ready],
  ];
  const lines = own.flatMap(([name, type, help, value]) => [
    `# HELP rys_${name} ${help}`,
    `# TYPE rys_${name} ${type}`,
    `rys_${name} ${value}`,
  ]);
  // Every sample of a metric stands under its one heading.
  const heads = new Map<string, string[]>();
  const samples = new Map<string, string[]>();
  for (const { labels, text } of contexts) {
    const label = Object.entries(labels).map(([k, v]) => `${k}="${escapeLabel(v)}"`).join(",");
    for (const line of text.split("\n")) {
      const head = /^# (?:HELP|TYPE) (\S+)/.exec(line);
      if (head) {
        const list = heads.get(head[1]!) ?? [];
        if (!list.includes(line)) list.push(line);
        heads.set(head[1]!, list);
        continue;
      }
      const sample = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (.+)$/.exec(line);
      if (!sample) continue;
      const [, name, more, value] = sample as unknown as [string, string, string?, string?];
      const all = more ? `${more},${label}` : label;
      const list = samples.get(name) ?? [];
      list.push(`${name}{${all}} ${value}`);
      samples.set(name, list);
    }
  }
  for (const [name, list] of samples) lines.push(...heads.get(name) ?? [], ...list);
  return lines.join("\n") + "\n";
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
