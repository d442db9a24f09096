import type { Option, Scope } from "./option.ts";
import { optionsOf } from "./table.ts";

/** Checks a whole number in an options object. */
export function wholeNumber(name: string, value: number, min: number, max = 2 ** 31 - 1): number {
  if (typeof value !== "number") {
    throw new TypeError(`${name} must be a number, not ${typeof value}`);
  }
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`${name} must be a whole number in ${min}..${max}, not ${value}`);
  }
  return value;
}

/** Checks a number in an options object. */
export function finiteNumber(name: string, value: number, min: number, max: number): number {
  if (typeof value !== "number") {
    throw new TypeError(`${name} must be a number, not ${typeof value}`);
  }
  if (!(value >= min && value <= max)) {
    throw new RangeError(`${name} must be a number in ${min}..${max}, not ${value}`);
  }
  return value;
}

/** Checks a word in an options object. */
export function oneOf<T extends string>(name: string, value: T, of: readonly T[]): T {
  if (!of.includes(value)) {
    throw new RangeError(`${name} must be one of ${of.join(", ")}, not ${JSON.stringify(value)}`);
  }
  return value;
}

/**
 * Checks the options of an object that the table describes in full.
 *
 * @param scope Whose options they are.
 * @param options The options.
 * @throws {TypeError | RangeError} If one has another type, or is out of its range.
 */
export function checkOptions(scope: Scope, options: object): void {
  for (const row of optionsOf(scope)) {
    const value = (options as Record<string, unknown>)[row.id];
    if (value !== undefined && !row.own) checkOption(row, value);
  }
}

function checkOption(
  { id, kind, min = 0, least = min, max = Infinity, choices }: Option,
  value: unknown,
): void {
  switch (kind) {
    case "integer":
      wholeNumber(id, value as number, least, max);
      return;
    case "number":
      finiteNumber(id, value as number, least, max);
      return;
    case "switch":
      if (typeof value !== "boolean") throw new TypeError(`${id} must be true or false`);
      return;
    case "text":
      if (choices !== undefined) oneOf(id, value as string, choices);
      else if (typeof value !== "string") throw new TypeError(`${id} must be a string`);
  }
}
