import { json } from "../http/json.ts";
import { estimateFacts } from "./plan_facts.ts";
import type { Call } from "./call.ts";
import { serverFacts } from "./server_facts.ts";

/** What a plan is and costs. */
export function plan({ life, query }: Call): Response {
  const loaded = life.need();
  const spec = query.get("spec");
  const { plan } = loaded.plans.choose(
    query.get("model") ?? undefined,
    spec === "" ? null : spec,
  );
  return json(estimateFacts(loaded, plan));
}

/** What the server is and does. */
export function facts(call: Call): Response {
  return json(serverFacts(call));
}
