/** One server-sent event. */
export interface SseEvent {
  /** As it came, with the blank line after it. */
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
  const decoder = new TextDecoder();
  let rest = "";
  const take = (controller: TransformStreamDefaultController<SseEvent>, isEnd: boolean) => {
    const events = rest.split(/(?<=\r\n\r\n|\n\n)/);
    rest = isEnd || /\n\r?\n$/.test(events.at(-1)!) ? "" : events.pop()!;
    for (const text of events) {
      const data = text.split(/\r?\n/).filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).replace(/^ /, ""));
      if (data.length === 0) continue;
      const raw = /\n\r?\n$/.test(text) ? text : `${text.trimEnd()}\n\n`;
      controller.enqueue({ raw, data: data.join("\n") });
    }
  };
  return new TransformStream({
    transform(bytes, controller) {
      rest += decoder.decode(bytes, { stream: true });
      take(controller, false);
    },
    flush(controller) {
      rest += decoder.decode();
      if (rest !== "") take(controller, true);
    },
  });
}
