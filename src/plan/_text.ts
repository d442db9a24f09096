/** `text` in quotes, cut where it is long: a message stays one readable line. */
export function quote(text: string, limit = 120): string {
  const points = [...text];
  return JSON.stringify(points.length > limit ? points.slice(0, limit).join("") + "…" : text);
}

/** `value` for a message. */
export function show(value: unknown): string {
  if (typeof value === "string") return quote(value, 40);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "object" && value !== null) {
    return Array.isArray(value) ? "an array" : "an object";
  }
  return String(value);
}

/** `value` as a layer number, or a TypeError that names it. */
export function layerNumber(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isInteger(value)) {
    throw new TypeError(`${what} must be a whole number, not ${show(value)}`);
  }
  return value;
}
