// @ts-check
// Server-sent events, read in one place: by the engine, the server, its queue worker and the web page. Plain JavaScript, as
// the page is served as it is.

/**
 * One event, or a block of comments.
 *
 * @typedef {object} SseEvent
 * @property {string[]} lines Its lines, as they came, without their ends.
 * @property {string | undefined} data Its data lines, joined; undefined where it has none.
 */

/**
 * Cuts a stream into events as the HTML standard has them: LF, CRLF and CR end a line, a blank line ends an event.
 */
export class SseParser {
  #decoder = new TextDecoder();
  /** A line that is not whole yet. */
  #rest = "";
  /** @type {string[]} */
  #lines = [];
  /** Whether the last text ended in CR: an LF after it belongs to it. */
  #afterCr = false;

  /**
   * Takes the next bytes.
   *
   * @param {Uint8Array} bytes
   * @returns {SseEvent[]} The events that became whole.
   */
  take(bytes) {
    return this.#read(this.#decoder.decode(bytes, { stream: true }));
  }

  /**
   * Takes the end of the stream.
   *
   * @returns {SseEvent[]} What was left without its blank line, as an event.
   */
  end() {
    const events = this.#read(this.#decoder.decode());
    if (this.#rest !== "") this.#lines.push(this.#rest);
    this.#rest = "";
    return [...events, ...this.#event()];
  }

  /**
   * @param {string} text
   * @returns {SseEvent[]}
   */
  #read(text) {
    if (text === "") return [];
    const from = this.#afterCr && text.startsWith("\n") ? 1 : 0;
    this.#afterCr = text.endsWith("\r");
    const lines = (this.#rest + text.slice(from)).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? "";
    /** @type {SseEvent[]} */
    const events = [];
    for (const line of lines) {
      if (line === "") events.push(...this.#event());
      else this.#lines.push(line);
    }
    return events;
  }

  /** @returns {SseEvent[]} */
  #event() {
    const lines = this.#lines;
    if (lines.length === 0) return [];
    this.#lines = [];
    const data = lines.filter((line) => line === "data" || line.startsWith("data:"))
      .map((line) => line.slice(5).replace(/^ /, ""));
    return [{ lines, data: data.length === 0 ? undefined : data.join("\n") }];
  }
}
