import { json } from "../http/json.ts";
import type { LifeCycle } from "../life/life_cycle.ts";

/** Whether the server can answer; a request of the method HEAD has no body for it. */
export function health(life: LifeCycle, { method }: Request): Response {
  const error = life.refusal();
  if (method === "HEAD") return new Response(null, { status: error?.status ?? 200 });
  if (!error) return json({ status: "ok" });
  return json({ error: error.toJson() }, error.status, error.more.headers);
}

/** Runpod's way: 204 while it begins, 200 when it works. */
export function ping(life: LifeCycle): Response {
  const error = life.refusal();
  if (!error) return json({ status: "healthy" });
  if (life.state === "loading") return new Response(null, { status: 204 });
  return json({ error: error.toJson() }, error.status, error.more.headers);
}
