import { ApiError } from "../http/api_error.ts";
import { isObject, type JsonObject as Json } from "../../json.ts";

/** Bytes of items, about: the oldest go when there are more. */
const MAX_BYTES = 8 << 20;

/**
 * Items of the last responses, by their ids. Clients (the AI SDK, unless told `store: false`) send an answer back as a
 * reference to its item.
 */
export class ItemStore {
  readonly #items = new Map<string, { item: Json; bytes: number }>();
  readonly #maxBytes: number;
  #bytes = 0;

  /** @param maxBytes What the items may take. */
  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Keeps the items of a response's output. */
  keep(output: unknown): void {
    if (!Array.isArray(output)) return;
    for (const item of output) {
      if (!isObject(item) || typeof item.id !== "string") continue;
      const bytes = 2 * JSON.stringify(item).length;
      if (bytes > this.#maxBytes) continue;
      this.#drop(item.id);
      this.#items.set(item.id, { item, bytes });
      this.#bytes += bytes;
    }
    for (const id of this.#items.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#drop(id);
    }
  }

  #drop(id: string): void {
    this.#bytes -= this.#items.get(id)?.bytes ?? 0;
    this.#items.delete(id);
  }

  /**
   * Puts items in the place of references to them.
   *
   * @param input A request's `input`.
   * @returns The same, or a list without references.
   * @throws {ApiError} 400 if an item is not there.
   */
  resolve(input: unknown): unknown {
    if (!Array.isArray(input)) return input;
    return input.map((item, i) => {
      if (!isObject(item) || typeof item.id !== "string") return item;
      const isBare = (item.type === undefined || item.type === null) && !("role" in item);
      if (item.type !== "item_reference" && !isBare) return item;
      const kept = this.#items.get(item.id);
      if (kept) return kept.item;
      const id = JSON.stringify(item.id.slice(0, 100));
      throw new ApiError(
        400,
        `"input[${i}]" refers to the item ${id}, which this server does not have, or not any more: ` +
          `send the item itself (the AI SDK does with store: false)`,
        { fields: { param: `input[${i}]` } },
      );
    });
  }
}
