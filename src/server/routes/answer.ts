import type { EffectivePlan } from "../../engine/mod.ts";
import { planHashHex } from "../../plan/mod.ts";
import { VERSION } from "../version.ts";
import { shortSpec } from "../plans/short_spec.ts";
import { withoutPlaces } from "../http/api_error.ts";
import { isObject, type JsonObject as Json } from "../../json.ts";
import { type SseEvent, SseParser } from "../../sse.js";

/** What an answer says of the plan that ran. */
export interface Ran {
  /** Name of the model in the answer. */
  name: string;
  /** The answer's `rys` object. */
  rys: {
    /** The plan as the request wrote it. */
    plan: string;
    /** Layers of the model. */
    n_layer: number;
    /** Layers that ran. */
    n_layer_eff: number;
    /** Hash of the layers in their order. */
    plan_hash: string;
    /** Warnings of what tends to make a model worse. */
    advisories: readonly string[];
    /** Seed of the sampler. */
    seed?: number;
    /** What the request or its answer leaves to be desired. */
    warnings?: string[];
  };
  /** `system_fingerprint`. */
  fingerprint: string;
  /** What an OpenAI response repeats of its request; of such a request only. */
  fields?: Record<string, unknown>;
  /** Takes the output of such a response when it is whole. */
  keep?: (output: unknown) => void;
}

/**
 * What answers to a request say of its plan.
 *
 * @param name Name of the model in them.
 * @param plan The plan.
 * @param seed Seed of the sampler, where there is one.
 * @param warnings What of the request was not honoured.
 */
export function ran(
  name: string,
  plan: EffectivePlan,
  seed?: number,
  warnings: string[] = [],
): Ran {
  const planHash = planHashHex(plan.layers);
  return {
    name,
    rys: {
      plan: plan.spec,
      n_layer: plan.nLayer,
      n_layer_eff: plan.nLayerEff,
      plan_hash: planHash,
      advisories: plan.advisories,
      ...seed === undefined ? {} : { seed },
      ...warnings.length === 0 ? {} : { warnings },
    },
    fingerprint: `rys-edge-${VERSION} ${shortSpec(plan)}`,
  };
}

/**
 * Writes into a whole answer what ran.
 *
 * @param answer The parsed body, which is changed.
 * @param what What ran.
 */
export function markAnswer(answer: unknown, what: Ran): void {
  for (const one of Array.isArray(answer) ? answer : [answer]) {
    if (!isObject(one)) continue;
    mark(one, what);
    markPlan(one, what);
  }
}

/** Says which plan ran, beside warnings that the engine gives. */
function markPlan(object: Json, { rys }: Ran): void {
  const own = isObject(object.rys) && Array.isArray(object.rys.warnings) ? object.rys.warnings : [];
  const warnings = [...rys.warnings ?? [], ...own];
  object.rys = warnings.length === 0 ? rys : { ...rys, warnings };
}

/** Sets names that upstream has filled in with its own. */
function mark(object: Json, what: Ran): void {
  if (typeof object.model === "string") object.model = what.name;
  if ("system_fingerprint" in object) object.system_fingerprint = what.fingerprint;
  if (object.object === "response" && what.fields) {
    for (const [name, value] of Object.entries(what.fields)) object[name] ??= value;
    if (object.status !== "in_progress") what.keep?.(object.output);
  }
  if (object.type === "message") nameStop(object);
  if (object.type === "message_delta" && isObject(object.delta)) nameStop(object.delta);
  if (isObject(object.__verbose)) mark(object.__verbose, what);
  if (isObject(object.generation_settings)) delete object.generation_settings.lora_path;
}

/** Anthropic's reason for an end by a stop string; upstream gives the string, and the reason of an ordinary end. */
function nameStop(message: Json): void {
  if (typeof message.stop_sequence === "string" && message.stop_reason === "end_turn") {
    message.stop_reason = "stop_sequence";
  }
}

/** Whether an event of a stream ends it, or one of its choices. */
function isLast(event: Json): boolean {
  const { choices } = event;
  return event.stop === true || "timings" in event || event.type === "message_delta" ||
    (Array.isArray(choices) &&
      (choices.length === 0 || choices.some((c) => isObject(c) && c.finish_reason != null)));
}

function markEvent(event: Json, what: Ran): void {
  mark(event, what);
  for (const name of ["response", "message"]) { // OpenAI's responses and Anthropic's messages
    const inner = event[name];
    if (isObject(inner)) {
      mark(inner, what);
      markPlan(inner, what);
    }
  }
  if (isObject(event.error)) cleanError(event.error);
  else if (isLast(event)) markPlan(event, what);
}

/** Takes places of source code and files out of an error of upstream's. */
export function cleanError(error: Json): void {
  if (typeof error.message === "string") error.message = withoutPlaces(error.message);
}

/**
 * Writes into the events of a stream what ran.
 *
 * @param what What ran.
 * @returns Takes the next bytes and gives them back changed; without bytes, the rest.
 */
export function eventMarker(
  what: Ran,
): (bytes?: Uint8Array) => Uint8Array<ArrayBuffer> {
  const parser = new SseParser();
  const encoder = new TextEncoder();
  let number = 0;
  /** An error has the number that is next in its stream; whoever makes it does not know it. */
  const count = (event: Json) => {
    if (typeof event.sequence_number === "number") number = event.sequence_number + 1;
    else if (what.fields && event.type === "error") event.sequence_number = number++;
  };
  return (bytes) => {
    const events = bytes === undefined ? parser.end() : parser.take(bytes);
    return encoder.encode(
      events.map((event) => `${markLines(event, what, count).join("\n")}\n\n`).join(""),
    );
  };
}

/** The lines of an event, its data marked where it is JSON. */
function markLines({ lines, data }: SseEvent, what: Ran, count: (event: Json) => void): string[] {
  if (data === undefined || data === "[DONE]") return lines;
  let object: unknown;
  try {
    object = JSON.parse(data);
  } catch {
    return lines;
  }
  // A stream of several prompts in upstream's own form has lists as well.
  for (const one of Array.isArray(object) ? object : [object]) {
    if (!isObject(one)) continue;
    markEvent(one, what);
    count(one);
  }
  const others = lines.filter((line) => !/^data(?::|$)/.test(line));
  return [...others, `data: ${JSON.stringify(object)}`];
}
