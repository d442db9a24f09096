import { type SseEvent as ParsedEvent, SseParser } from "../../sse.js";

/** One server-sent event. */
export interface SseEvent {
  /** Its text, with the blank line after it. */
  readonly raw: string;
  /** Its data lines, joined. */
  readonly data: string;
}

/**
 * Cuts server-sent events apart. Comments and events without data are left out.
 *
 * @returns A transform from bytes to events; a last event without its blank line counts as whole.
 */
export function sseEvents(): TransformStream<Uint8Array, SseEvent> {
  const parser = new SseParser();
  const give = (
    events: ParsedEvent[],
    controller: TransformStreamDefaultController<SseEvent>,
  ) => {
    for (const { lines, data } of events) {
      if (data !== undefined) controller.enqueue({ raw: `${lines.join("\n")}\n\n`, data });
    }
  };
  return new TransformStream({
    transform: (bytes, controller) => give(parser.take(bytes), controller),
    flush: (controller) => give(parser.end(), controller),
  });
}
