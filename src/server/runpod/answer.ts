import type { AnswerForm } from "./job.ts";
import type { SseEvent } from "./sse_events.ts";

/** An answer that is an error, in the server's own form. */
export interface JobFailure {
  readonly code: number;
  readonly message: string;
  readonly type: string;
  readonly [detail: string]: unknown;
}

/** Turns what the server sends into what a job's caller expects, see {@linkcode AnswerForm}. */
export interface AnswerShape {
  /** Whether the host is told that the answer is a list of parts. */
  readonly hasParts: boolean;
  /** The output of an answer that is one JSON object. */
  whole(answer: unknown): unknown;
  /** One part of a stream. */
  part(events: readonly SseEvent[]): unknown;
  /** The output of a stream, from its parts. */
  all(parts: readonly unknown[]): unknown;
}

/**
 * The shape for a form.
 *
 * @param form The form.
 * @param isStream Whether the server answers with a stream.
 */
export function answerShape(form: AnswerForm, isStream: boolean): AnswerShape {
  if (form === "objects") {
    return {
      hasParts: isStream,
      whole: (answer) => answer,
      part: objects,
      all: (parts) => parts.flat(),
    };
  }
  if (form === "events") {
    return {
      hasParts: true,
      whole: (answer) => [answer],
      part: (events) => events.map((event) => event.raw).join(""),
      all: (parts) => parts,
    };
  }
  return {
    hasParts: true,
    whole: (answer) => [tokens([answer])],
    part: (events) => tokens(objects(events)),
    all: (parts) => parts,
  };
}

/**
 * The failure that an event of a stream tells, if it tells one: the server has no other way once it has begun.
 *
 * @param event The event.
 */
export function failureOf(event: SseEvent): JobFailure | undefined {
  const [value] = objects([event]);
  return failureIn(value);
}

/**
 * The failure in an answer's JSON.
 *
 * @param answer The answer.
 */
export function failureIn(answer: unknown): JobFailure | undefined {
  const error = field(answer, "error");
  if (typeof error !== "object" || error === null) return undefined;
  return {
    ...error,
    code: Number(field(error, "code") ?? 500),
    message: String(field(error, "message") ?? "the server failed"),
    type: String(field(error, "type") ?? "server_error"),
  };
}

function objects(events: readonly SseEvent[]): unknown[] {
  return events.filter(({ data }) => data !== "[DONE]").map(({ data }) => JSON.parse(data));
}

/** Answers or parts of one in vLLM's form, for each choice its pieces of text, and the plan that ran. */
function tokens(answers: readonly unknown[]): Record<string, unknown> {
  const pieces: string[][] = [[]];
  let usage: unknown;
  let rys: unknown;
  for (const answer of answers) {
    usage = field(answer, "usage") ?? usage;
    rys = field(answer, "rys") ?? rys;
    const choices = field(answer, "choices");
    for (const choice of Array.isArray(choices) ? choices : []) {
      const index = Number(field(choice, "index") ?? 0);
      const message = field(choice, "delta") ?? field(choice, "message");
      const text = field(choice, "text") ?? field(message, "content");
      while (pieces.length <= index) pieces.push([]);
      if (typeof text === "string" && text !== "") pieces[index]!.push(text);
    }
  }
  const output: Record<string, unknown> = { choices: pieces.map((list) => ({ tokens: list })) };
  if (usage !== undefined && usage !== null) {
    output["usage"] = {
      input: field(usage, "prompt_tokens"),
      output: field(usage, "completion_tokens"),
    };
  }
  if (rys !== undefined) output["rys"] = rys;
  return output;
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
