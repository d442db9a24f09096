/**
 * Stand-in for `@std/cli/parse-args`.
 *
 * @module
 */

/** What a call to {@linkcode parseArgs} may ask for. */
export interface ParseOptions<
  B extends string = string,
  S extends string = string,
  C extends string = string,
  N extends string = string,
  D extends Record<string, unknown> = Record<string, unknown>,
> {
  /** Put what follows a bare `--` in the result's `"--"` instead of `_`. */
  "--"?: boolean;
  /** Other names of an option. */
  alias?: Record<string, string | readonly string[]>;
  /** Options that take no value; `true` for every `--name` without `=`. */
  boolean?: boolean | B | readonly B[];
  /** Values of options that are not given. */
  default?: D;
  /** Everything after the first positional argument is positional. */
  stopEarly?: boolean;
  /** Options whose value stays text; `_` for the positional arguments. */
  string?: S | readonly S[];
  /** Options that may be given more than once, collected in an array. */
  collect?: C | readonly C[];
  /** Options that have a `--no-name` form. */
  negatable?: N | readonly N[];
  /** Called for an option that is not declared; false drops it. */
  unknown?: (arg: string, key?: string, value?: unknown) => unknown;
}

/** Types of the values that the declared options have. */
export type ParsedValues<
  B extends string,
  S extends string,
  C extends string,
  D extends Record<string, unknown>,
> =
  & { [K in Exclude<B, C | keyof D | "_">]: boolean }
  & { [K in Exclude<B & keyof D, C>]: boolean | D[K] }
  & { [K in Exclude<S, C | keyof D | "_">]?: string }
  & { [K in Exclude<S & keyof D, C>]: string | Widen<D[K]> }
  & { [K in Exclude<S & C, "_">]: string[] }
  & { [K in B & C]: boolean[] }
  & { [K in Exclude<C, B | S>]: unknown[] }
  & { [K in Exclude<keyof D, B | S | C>]: unknown };

type Widen<T> = T extends string ? string
  : T extends number ? number
  : T extends boolean ? boolean
  : T;

/** The result of {@linkcode parseArgs}. */
export type Args<T = Record<string, unknown>> = T & Record<string, unknown> & {
  /** Positional arguments. */
  _: Array<string | number>;
  /** What followed a bare `--`, if asked for. */
  "--"?: string[];
};

type Tree = { [name: string]: unknown };

const list = (x: unknown): string[] =>
  x === undefined || typeof x === "boolean" ? [] : typeof x === "string" ? [x] : [...x as string[]];

const looksNumeric = (x: string): boolean =>
  /^0x[0-9a-f]+$/i.test(x) || /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?$/i.test(x);

/**
 * Takes command-line arguments apart.
 *
 * @param args The arguments, by default none.
 * @param options What they mean.
 * @returns The options by name, and the positional arguments as `_`.
 */
export function parseArgs<
  const B extends string = never,
  const S extends string = never,
  const C extends string = never,
  const N extends string = never,
  const D extends Record<string, unknown> = Record<never, unknown>,
>(
  args: readonly string[],
  options: ParseOptions<B, S, C, N, D> = {},
): Args<ParsedValues<B, S, C, D>> {
  const allBoolean = options.boolean === true;
  const booleans = new Set(list(options.boolean));
  const strings = new Set(list(options.string));
  const collect = new Set(list(options.collect));
  const negatable = new Set(list(options.negatable));

  // Every name to all the names it goes by.
  const names = new Map<string, string[]>();
  for (const [name, other] of Object.entries(options.alias ?? {})) {
    const all = [name, ...list(other)];
    for (const one of all) names.set(one, [...new Set([...(names.get(one) ?? []), ...all])]);
  }
  const namesOf = (name: string): string[] => names.get(name) ?? [name];
  for (const set of [booleans, strings, collect, negatable]) {
    for (const name of [...set]) for (const one of namesOf(name)) set.add(one);
  }
  const defaults = new Map<string, unknown>(Object.entries(options.default ?? {}));
  const known = new Set([
    ...booleans,
    ...strings,
    ...collect,
    ...negatable,
    ...names.keys(),
    ...defaults.keys(),
  ]);

  const result: Tree = Object.create(null);
  const positional: Array<string | number> = [];
  const given = new Set<string>();

  const place = (path: string, value: unknown): void => {
    const parts = path.split(".");
    const last = parts.pop()!;
    let node = result;
    for (const part of parts) {
      const next = node[part];
      node = (typeof next === "object" && next !== null
        ? next
        : (node[part] = Object.create(null))) as Tree;
    }
    if (collect.has(path)) {
      const had = given.has(path) && Array.isArray(node[last]) ? node[last] as unknown[] : [];
      node[last] = [...had, value];
    } else {
      node[last] = value;
    }
  };
  const set = (name: string, value: unknown, arg?: string): void => {
    if (
      arg !== undefined && options.unknown && !known.has(name) && !(allBoolean && value === true)
    ) {
      if (options.unknown(arg, name, value) === false) return;
    }
    const typed = typeof value === "string" && !strings.has(name) && looksNumeric(value)
      ? Number(value)
      : value;
    for (const one of namesOf(name)) place(one, typed);
    for (const one of namesOf(name)) given.add(one);
  };
  const addPositional = (arg: string): void => {
    if (options.unknown && options.unknown(arg) === false) return;
    positional.push(!strings.has("_") && looksNumeric(arg) ? Number(arg) : arg);
  };
  const isBoolean = (name: string) => booleans.has(name);
  const asBoolean = (text: string) => text !== "false";

  let rest: string[] = [];
  const end = args.indexOf("--");
  const before = end < 0 ? [...args] : args.slice(0, end);
  if (end >= 0) rest = args.slice(end + 1);

  for (let i = 0; i < before.length; i++) {
    const arg = before[i]!;
    const next = before[i + 1];
    // The value of `name`, which may be the next argument.
    const take = (name: string): void => {
      if (isBoolean(name) || allBoolean && !strings.has(name)) {
        if (next === "true" || next === "false") {
          set(name, next === "true", arg);
          i++;
        } else set(name, true, arg);
      } else if (
        next !== undefined && !/^-/.test(next) || next !== undefined && looksNumeric(next)
      ) {
        set(name, next, arg);
        i++;
      } else set(name, strings.has(name) ? "" : true, arg);
    };
    if (arg.startsWith("--")) {
      const eq = arg.indexOf("=");
      const name = arg.slice(2, eq < 0 ? undefined : eq);
      if (eq >= 0) {
        const text = arg.slice(eq + 1);
        set(name, isBoolean(name) ? asBoolean(text) : text, arg);
      } else if (name.startsWith("no-") && negatable.has(name.slice(3))) {
        set(name.slice(3), false, arg);
      } else take(name);
    } else if (/^-[^-]/.test(arg) && !looksNumeric(arg)) {
      const letters = arg.slice(1);
      for (let k = 0; k < letters.length; k++) {
        const name = letters[k]!;
        const tail = letters.slice(k + 1);
        if (tail === "") take(name);
        else if (tail.startsWith("=")) {
          set(name, isBoolean(name) ? asBoolean(tail.slice(1)) : tail.slice(1), arg);
          break;
        } else if (
          !isBoolean(name) && (looksNumeric(tail) || strings.has(name) || /^\W/.test(tail))
        ) {
          set(name, tail, arg);
          break;
        } else set(name, strings.has(name) ? "" : true, arg);
      }
    } else {
      addPositional(arg);
      if (options.stopEarly) {
        for (const later of before.slice(i + 1)) positional.push(later);
        break;
      }
    }
  }

  for (const [name, value] of defaults) {
    if (given.has(name)) continue;
    const isList = collect.has(name);
    for (const one of namesOf(name)) {
      if (isList) {
        collect.delete(one);
        place(one, value);
      } else place(one, value);
      given.add(one);
    }
  }
  for (const name of booleans) {
    if (!given.has(name) && !collect.has(name)) place(name, false);
  }
  for (const name of collect) {
    if (!given.has(name)) {
      collect.delete(name);
      place(name, []);
    }
  }

  result["_"] = positional;
  if (options["--"]) result["--"] = [...rest];
  else for (const arg of rest) positional.push(arg);
  return result as Args<ParsedValues<B, S, C, D>>;
}
