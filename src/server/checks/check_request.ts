import { checkBody, checkTexts } from "../../engine/check_body.ts";
import type { JsonObject } from "../../json.ts";
import { checkFields } from "./check_fields.ts";
import { checkFormats } from "./check_formats.ts";
import { checkShape, chooseTool, leavesOutTools } from "./check_shape.ts";
import { unknownFields } from "./known_fields.ts";
import { schemaWarnings } from "./schema_warnings.ts";

declare const CHECKED: unique symbol;

/** A request's body as the engine gets it: checked, and never changed after. */
export type CheckedBody = Readonly<JsonObject> & { readonly [CHECKED]: true };

/** A body that has no fields. */
export const NO_FIELDS: CheckedBody = checked({});

/** What a request is checked against. */
export interface RequestFacts {
  /** Vocabulary of the model. */
  readonly nVocab: number;
  /** Numbers in an embedding. */
  readonly nEmbd: number;
  /** Slots of a context. */
  readonly nParallel: number;
  /** Whether the model's chat template has tools. */
  readonly hasTools: boolean;
}

/** A request that may run. */
export interface CheckedRequest {
  /** What the engine is given. */
  readonly body: CheckedBody;
  /** What of the request is not honoured. */
  readonly warnings: string[];
  /** Whether it has tools that the model's chat template has no place for. */
  readonly leavesOutTools: boolean;
}

/**
 * Checks a request and makes of it what upstream understands.
 *
 * @param path The route, as upstream calls it.
 * @param body The request's body, which stays as it is; without `repeat_layers`.
 * @param of What the route takes: texts to embed or to rank, or anything else.
 * @param facts What it is checked against.
 * @throws {ApiError | EngineError} 400, with the field and what it may be.
 */
export function checkRequest(
  path: string,
  body: JsonObject,
  of: "texts" | "any",
  facts: RequestFacts,
): CheckedRequest {
  if (of === "texts") checkTexts(body, facts);
  else checkBody(body, facts);
  checkShape(path, body);
  const honoured = checkFields(path, body, facts);
  checkFormats(path, honoured);
  const whole = { ...honoured, ...chooseTool(honoured) };
  const warnings = [...unknownFields(path, whole), ...schemaWarnings(whole)]; // a wrong schema is told first
  const leftOut = !facts.hasTools && leavesOutTools(path, whole);
  if (leftOut) warnings.push("tools are left out: the model's chat template has none");
  return {
    warnings,
    leavesOutTools: leftOut,
    body: checked(whole),
  };
}

/**
 * A body with the sampler's part as the engine gets it.
 *
 * @param body A body that was checked.
 * @param seed Seed of the sampler.
 * @param nVocab Vocabulary of the model: there are no more probabilities to tell.
 */
export function withSampling(body: CheckedBody, seed: number, nVocab: number): CheckedBody {
  const { n_probs: n } = body;
  return checked({
    ...body,
    seed,
    ...typeof n === "number" ? { n_probs: Math.min(n, nVocab) } : {},
  });
}

function checked(body: JsonObject): CheckedBody {
  return Object.freeze(body) as CheckedBody;
}
