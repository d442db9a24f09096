/** A JSON object, of which nothing is known yet. */
export type JsonObject = Record<string, unknown>;

/**
 * Whether a value is an object, and not a list.
 *
 * @param value Any value.
 */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
