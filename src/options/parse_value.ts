import type { Option } from "./option.ts";

/** Words for a switch in an environment variable, as llama.cpp reads them. */
const SWITCH: Readonly<Record<string, boolean>> = {
  "1": true,
  "true": true,
  "on": true,
  "enabled": true,
  "0": false,
  "false": false,
  "off": false,
  "disabled": false,
};

/** `["a", "b", "c"]` as `a, b or c`. */
export const listed = (words: readonly string[]): string =>
  `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

/**
 * The value that a text stands for.
 *
 * @param option The option.
 * @param written The flag or variable that gave it, for messages.
 * @param text The text.
 * @returns A number in the library's unit, a boolean for a switch, else text.
 * @throws {TypeError} If it is not one of the option's values.
 */
export function parseValue(
  option: Option,
  written: string,
  text: string,
): boolean | number | string {
  const { kind, choices, words, value, unit = 1 } = option;
  if (kind === "switch") {
    const on = SWITCH[text];
    if (on === undefined) {
      throw new TypeError(`${written} must be on or off, not ${JSON.stringify(text)}`);
    }
    return on;
  }
  if (kind === "text") {
    const meant = words?.[text] ?? text;
    if (choices !== undefined && !choices.includes(meant)) {
      throw new TypeError(`${written} must be ${listed(choices)}, not ${JSON.stringify(text)}`);
    }
    const { form, parts } = option;
    if (form !== undefined && !form.test(text)) {
      throw new TypeError(`${written} must be ${value}, not ${JSON.stringify(text)}`);
    }
    if (parts !== undefined) {
      const [separator, known] = parts;
      const wrong = text.split(separator).find((part) => !known.includes(part));
      if (wrong !== undefined || text === "") {
        throw new TypeError(
          `${written}: ${JSON.stringify(wrong ?? text)} is not one of ${known.join(", ")}`,
        );
      }
    }
    if (text === "" && /^(?:FILE|MODEL)/.test(value ?? "")) {
      throw new TypeError(`${written} needs the name of a file, not ""`);
    }
    return meant;
  }
  const whole = kind === "integer";
  const isNumber = whole
    ? /^[+-]?\d+$/.test(text)
    : text.trim() !== "" && Number.isFinite(Number(text));
  const { min = -Infinity, max = Infinity } = option;
  const n = Number(text);
  if (isNumber && n >= min && n <= max) return n * unit;
  const isOpen = max === Infinity || max === 2 ** 31 - 1;
  const range = isNumber && n > max && isOpen
    ? ` up to ${max}`
    : !isOpen
    ? ` in ${min}..${max}`
    : min !== -Infinity && min !== -(2 ** 31)
    ? ` from ${min}`
    : "";
  throw new TypeError(
    `${written} must be a ${whole ? "whole number" : "number"}${range}, not ${
      JSON.stringify(text)
    }`,
  );
}

/**
 * An option's value in the environment.
 *
 * @param option The option.
 * @param env Looks up a variable.
 * @returns The variable's name and value; undefined if none is set.
 */
export function variableOf(
  { env: names = [], off }: Option,
  env: (name: string) => string | undefined,
): { name: string; text: string } | undefined {
  for (const name of [names].flat()) {
    // For a switch that can be off, llama.cpp reads a second variable, which switches it off whatever its value.
    const no = name.replace("LLAMA_ARG_", "LLAMA_ARG_NO_");
    if (off !== undefined && no !== name && env(no) !== undefined) return { name: no, text: "off" };
    const text = env(name);
    if (text !== undefined) return { name, text };
  }
  return undefined;
}

/** The texts that can follow a flag that may stand alone. */
export function textsOf({ choices = [], words = {} }: Option): string[] {
  return [...choices, ...Object.keys(words)];
}
