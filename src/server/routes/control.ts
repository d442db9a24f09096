import { unavailable } from "../http/api_error.ts";
import { json } from "../http/json.ts";
import { bodyOf, type Call } from "./call.ts";
import { upstreamError } from "./upstream_error.ts";

/** Reaches a running chat by its id, whichever plan it runs on. */
export async function control(call: Call): Promise<Response> {
  const { active: { signal }, life, path } = call;
  const { repeat_layers: repeatLayers, ...body } = await bodyOf(call);
  const { model, plans, pool } = life.need();
  plans.choose(body.model, repeatLayers); // refuses what is not a plan
  let last: { answer: unknown; status: number } | undefined;
  for (const { kind, context } of pool.entries) {
    if (kind !== "text" || !context || context.disposed) continue;
    let said: Awaited<ReturnType<typeof context.request>>;
    try {
      said = await context.request(path, body, { signal });
    } catch (error) {
      if (model.disposed || !context.disposed) throw error;
      continue; // freed meanwhile: what it ran has ended
    }
    const { status } = said;
    last = { answer: JSON.parse(new TextDecoder().decode(said.body)), status };
    if (status === 200 && (last.answer as { success?: unknown }).success !== false) break;
  }
  if (!last) throw unavailable("Loading model", 2);
  return last.status === 200 ? json(last.answer) : upstreamError(last.answer, last.status, path);
}
