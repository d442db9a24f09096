// Grammars and schemas that may be wrong, or cost much; the same ones for the same seed.

type Random = () => number;

const pick = <T>(next: Random, list: readonly T[]): T => list[Math.floor(next() * list.length)]!;

const BOUNDS = [0, 1, 2, 3, 5, 17, 100, 1999, 2000, 2001, 65_536, 1e9] as const;

function repeat(next: Random): string {
  const a = pick(next, BOUNDS);
  const b = pick(next, BOUNDS);
  return pick(next, ["", "", "", "*", "+", "?", `{${a}}`, `{${a},}`, `{${a},${b}}`, `{,${b}}`]);
}

/** A GBNF grammar. */
export function randomGrammar(next: Random): string {
  const n = 1 + Math.floor(next() * 6);
  const rule = (i: number) => i === 0 ? "root" : `r${i}`;
  const term = (depth: number): string => {
    const kind = next();
    const one = kind < 0.3
      ? `"${"ab\\n\\x41é".slice(0, 1 + Math.floor(next() * 8)).replace(/\\x?4?$/, "")}"`
      : kind < 0.45
      ? pick(next, ["[a-z]", "[^a]", ".", "[]", "[a-]", "[\\x00-\\U0010FFFF]"])
      : kind < 0.75 || depth > 4
      ? rule(Math.floor(next() * (n + (next() < 0.03 ? 1 : 0))))
      : `(${sequence(depth + 1)})`;
    return one + repeat(next);
  };
  const sequence = (depth: number): string => {
    const alternatives = Array.from(
      { length: 1 + Math.floor(next() * 3) },
      () => Array.from({ length: Math.floor(next() * 4) }, () => term(depth)).join(" "),
    );
    return alternatives.join(" | ");
  };
  let text = Array.from({ length: n }, (_, i) => `${rule(i)} ::= ${sequence(0)}`)
    .join(pick(next, ["\n", "\r\n"]));
  if (next() < 0.15) { // broken somewhere
    const at = Math.floor(next() * text.length);
    text = text.slice(0, at) +
      pick(next, ["", "(", "[", '"', "{", "\\", "|", "\n", "<", "\uFEFF"]) +
      text.slice(at + 1);
  }
  return text;
}

const PATTERNS = [
  "a",
  "[a-c]",
  "\\d",
  "\\w",
  "\\s",
  ".",
  "[^x]",
  "\\\\",
  '"',
  "é",
  "(?=a)",
  "\\b",
  "[",
  ")",
];

function randomPattern(next: Random): string {
  const part = (depth: number): string => {
    const one = next() < 0.25 && depth < 4
      ? `(${part(depth + 1)}${pick(next, ["|", ""])}${part(depth + 1)})`
      : pick(next, PATTERNS);
    return one + repeat(next);
  };
  const body = Array.from({ length: 1 + Math.floor(next() * 4) }, () => part(0)).join("");
  return pick(next, ["^", ""]) + body + pick(next, ["$", ""]);
}

/** A JSON schema. */
export function randomSchema(next: Random): Record<string, unknown> {
  const names = ["a", "b", "a b", "a-b", "x".repeat(300), 'q"', "]", ""];
  const bound = () => pick(next, [...BOUNDS, -1, 1.5, 1e30, -1e30]);
  const some = (chance: number, fields: () => Record<string, unknown>) =>
    next() < chance ? fields() : {};
  const make = (depth: number): Record<string, unknown> => {
    const kind = next();
    const inner = () => make(depth + 1);
    const list = () => Array.from({ length: 1 + Math.floor(next() * 3) }, inner);
    if (depth > 6 || kind < 0.1) return { type: pick(next, ["null", "boolean", "number", "any"]) };
    if (kind < 0.25) {
      return {
        type: "string",
        ...some(0.4, () => ({ pattern: randomPattern(next) })),
        ...some(0.4, () => ({ minLength: bound() })),
        ...some(0.4, () => ({ maxLength: bound() })),
        ...some(0.2, () => ({ format: pick(next, ["date", "uuid", "email"]) })),
      };
    }
    if (kind < 0.35) {
      return {
        type: "integer",
        ...some(0.5, () => ({ minimum: bound() })),
        ...some(0.5, () => ({ maximum: bound() })),
        ...some(0.2, () => ({ exclusiveMinimum: bound() })),
      };
    }
    if (kind < 0.5) {
      return {
        type: pick<unknown>(next, ["array", ["array", "array", "null"]]),
        items: next() < 0.2 ? list() : inner(),
        ...some(0.4, () => ({ minItems: bound() })),
        ...some(0.4, () => ({ maxItems: bound() })),
      };
    }
    if (kind < 0.6) return { $ref: `#/$defs/${pick(next, ["p", "q", "none"])}` };
    if (kind < 0.75) return { [pick(next, ["anyOf", "oneOf", "allOf"])]: list() };
    if (kind < 0.8) return { enum: [1, "x", null, { y: [] }] };
    const properties = Object.fromEntries(
      Array.from({ length: Math.floor(next() * 5) }, () => [pick(next, names), inner()]),
    );
    return {
      type: "object",
      properties,
      ...some(0.5, () => ({ required: Object.keys(properties).slice(0, 2) })),
      ...some(0.5, () => ({ additionalProperties: next() < 0.5 ? true : inner() })),
    };
  };
  return { ...make(0), $defs: { p: make(2), q: make(2) } };
}
