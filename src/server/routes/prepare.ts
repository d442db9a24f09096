import type { JsonObject } from "../../json.ts";
import { type CheckedBody, checkRequest } from "../checks/check_request.ts";
import type { LoadedModel } from "../life/loaded_model.ts";
import type { NamedPlan } from "../plans/plan_choice.ts";
import { bodyOf, type Call } from "./call.ts";

/** A request whose body is read and checked, and whose plan is chosen. */
export interface Prepared {
  /** The model. */
  readonly loaded: LoadedModel;
  /** The body as it came. */
  readonly given: Readonly<JsonObject>;
  /** The plan. */
  readonly named: NamedPlan;
  /** What the engine is given. */
  readonly body: CheckedBody;
  /** What of the request is not honoured. */
  readonly warnings: string[];
}

/** Whether a route takes what OpenAI's `/v1/responses` takes. */
export const isResponses = (path: string): boolean => /\/responses(?:\/input_tokens)?$/.test(path);

/**
 * Reads a request's body, chooses its plan, and checks it.
 *
 * @param call The request.
 * @param of What the route takes: texts to embed or to rank, or anything else.
 * @throws {ApiError | EngineError} If something is wrong with it.
 */
export async function prepare(call: Call, of: "texts" | "any"): Promise<Prepared> {
  const { items, life, log, path, settings } = call;
  const given = await bodyOf(call);
  const loaded = life.need();
  const { repeat_layers: repeatLayers, ...rest } = given;
  const named = loaded.plans.choose(given.model, repeatLayers);
  const { nVocab, nEmbd } = loaded.model.info;
  const { body, warnings, leavesOutTools } = checkRequest(
    path,
    isResponses(path) ? { ...rest, input: items.resolve(rest.input) } : rest,
    of,
    { nVocab, nEmbd, nParallel: settings.nParallel, hasTools: loaded.hasTools },
  );
  if (leavesOutTools) {
    log.once("a request has tools; the model's chat template has none, so they are left out");
  }
  return { loaded, given, named, body, warnings };
}
