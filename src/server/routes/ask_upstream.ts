import type { CheckedBody } from "../checks/check_request.ts";
import { json } from "../http/json.ts";
import type { NamedPlan } from "../plans/plan_choice.ts";
import type { Call } from "./call.ts";
import { upstreamError } from "./upstream_error.ts";

/**
 * Asks upstream something that takes no slot.
 *
 * @param call The request.
 * @param named The plan whose context is asked.
 * @param path What to ask for, as upstream calls it.
 * @param body The body; a GET without one.
 * @param change Makes the answer of upstream's, which it may change; the same, if it returns nothing.
 */
export async function askUpstream(
  { active, life }: Call,
  named: NamedPlan,
  path: string,
  body?: CheckedBody,
  change: (answer: unknown) => unknown = () => undefined,
): Promise<Response> {
  const context = await active.enter(life.need().pool, "text", named.plan, false);
  const { status, body: bytes } = await context.request(path, body, { signal: active.signal });
  const answer = JSON.parse(new TextDecoder().decode(bytes));
  if (status !== 200) return upstreamError(answer, status, path, body);
  return json(change(answer) ?? answer);
}
