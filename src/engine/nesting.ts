/** Most levels of objects and lists in a request's body: upstream's code recurses into them. */
export const MAX_NESTING = 256;

/**
 * Whether a value has more levels of objects and lists than a limit; it is looked at no deeper than that.
 *
 * @param value The value.
 * @param limit The most levels that it may have.
 */
export function isNestedDeeper(value: unknown, limit = MAX_NESTING): boolean {
  const inside = (values: unknown[]) =>
    values.filter((one): one is object => typeof one === "object" && one !== null);
  let level = inside([value]);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === limit) return true;
    level = level.flatMap((one) => inside(Object.values(one)));
  }
  return false;
}
