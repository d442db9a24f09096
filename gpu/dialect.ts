/**
 * One WGSL source, two compilers. naga (Deno, Firefox) and Tint (Chromium) disagree on a few constructs that upstream's
 * shaders use; a table of rules turns what upstream emits into what the compiler at hand accepts. Lines keep their
 * numbers, so a compiler's message points into upstream's text.
 *
 * @module
 */

/** The WGSL compiler a source is meant for. */
export type WgslTarget = "naga" | "tint";

/** Options for {@linkcode adaptWgsl}. */
export interface AdaptWgslOptions {
  /**
   * Whether the compiler emits SPIR-V (Vulkan). The rules that work around naga's SPIR-V writer are left out if not.
   *
   * @default {true}
   */
  spirv?: boolean;
}

/** A lookup table that became a read-only storage buffer at `@group(1)`. */
export interface ShaderTable {
  /** Its `@binding`. */
  binding: number;
  /** Its name in the source. */
  name: string;
  /** Its values. */
  data: Uint32Array<ArrayBuffer>;
}

/** A source for a compiler, and what has to be bound for it. */
export interface AdaptedShader {
  /** WGSL text. */
  code: string;
  /** Tables at `@group(1)`, by binding. */
  tables: ShaderTable[];
}

/** One rewriting of WGSL text. */
export interface DialectRule {
  /** What it does, short. */
  name: string;
  /** Which fault of the compiler makes it necessary. */
  why: string;
  /** The compiler it is for. */
  target: WgslTarget;
  /** True if only naga's SPIR-V writer needs it. */
  spirvOnly?: boolean;
  /** Global pattern, matched against text without comments. */
  pattern: RegExp;
  /** As for `String.replace`. A function also gets the whole match, its groups, the offset and the text. */
  replacement: string | ((match: string, ...rest: (string | number | undefined)[]) => string);
  /** Function that the replacement calls; added once, at the end of the source. */
  helper?: string;
}

/** A construct that must not reach a compiler, since it would not answer with an error. */
export interface DialectRefusal {
  /** What is refused. */
  name: string;
  /** What the compiler would do with it. */
  why: string;
  /** The compiler it is for. */
  target: WgslTarget;
  /** Offset of the first such construct in text without comments, or -1. */
  find: (code: string) => number;
}

/** Thrown when a source holds what its compiler would crash on or silently get wrong. */
export class DialectError extends Error {
  /** The error's name. */
  override name = "DialectError";
}

const HALF2 = String.raw`(?:vec2\s*<\s*f16\s*>|vec2h)`;
const HALF4 = String.raw`(?:vec4\s*<\s*f16\s*>|vec4h)`;

/** All rewritings, in the order in which they are applied. */
export const DIALECT_RULES: readonly DialectRule[] = [
  {
    name: "no enable subgroups",
    why: "naga has the subgroup built-ins without it and rejects the line",
    target: "naga",
    pattern: /\benable\b([^;]*);/g,
    replacement: (_match, names) => {
      const kept = String(names).split(",").map((n) => n.trim()).filter((n) =>
        n && n !== "subgroups"
      );
      return kept.length ? `enable ${kept.join(", ")};` : "";
    },
  },
  {
    name: "no requires",
    why: "naga rejects features it does not name; a feature that is missing shows where it is used",
    target: "naga",
    pattern: /\brequires\b[^;]*;/g,
    replacement: "",
  },
  {
    name: "no diagnostic",
    why:
      "naga has no uniformity analysis to switch off and prints an error for a rule it does not know",
    target: "naga",
    pattern: /@?[ \t]*\bdiagnostic[ \t]*\([^()]*\)[ \t]*;?/g,
    replacement: "",
  },
  {
    name: "vec2<f16> from bits",
    why: "naga's bitcast to a vector of f16 has the wrong type, or compiles and gives wrong values",
    target: "naga",
    pattern: new RegExp(String.raw`\bbitcast\s*<\s*${HALF2}\s*>`, "g"),
    replacement: "rys_vec2h",
    helper: "fn rys_vec2h(bits: u32) -> vec2<f16> { return vec2<f16>(unpack2x16float(bits)); }",
  },
  {
    name: "vec4<f16> from bits",
    why: "as for vec2<f16>; this one compiles and gives wrong values",
    target: "naga",
    pattern: new RegExp(String.raw`\bbitcast\s*<\s*${HALF4}\s*>`, "g"),
    replacement: "rys_vec4h",
    helper:
      "fn rys_vec4h(bits: vec2<u32>) -> vec4<f16> { return vec4<f16>(vec4<f32>(unpack2x16float(bits.x), unpack2x16float(bits.y))); }",
  },
  {
    name: "bits from vec2<f16>",
    why: "naga's bitcast from a vector of f16 has the wrong type",
    target: "naga",
    pattern: new RegExp(
      String.raw`\bbitcast\s*<\s*u32\s*>(?=\s*\(\s*(?:${HALF2}|rys_vec2h)\s*\()`,
      "g",
    ),
    replacement: "rys_bits2h",
    helper: "fn rys_bits2h(v: vec2<f16>) -> u32 { return pack2x16float(vec2<f32>(v)); }",
  },
  {
    name: "subgroupElect",
    why: "naga lacks it; the first active invocation is the one with nothing before it",
    target: "naga",
    pattern: /\bsubgroupElect\s*\(\s*\)/g,
    replacement: "(subgroupExclusiveAdd(1u) == 0u)",
  },
  {
    name: "small lookup tables are private variables",
    why: "naga copies a constant array to a function variable at each indexed read",
    target: "naga",
    spirvOnly: true,
    pattern: /\bconst\s+(\w+)\s*(?::[^=;]*)?=\s*(array\s*<[^()]*>)\s*(?=\()/g,
    replacement: (match, ...rest) => {
      const [name, type, offset, code] = rest as [string, string, number, string];
      return depthAt(code, offset) === 0 ? `var<private> ${name}: ${type} = ${type}` : match;
    },
  },
  {
    name: "enable subgroups",
    why:
      "Tint wants the line wherever a subgroup built-in is used, and refuses uses that it cannot prove uniform",
    target: "tint",
    pattern:
      /^(?![\s\S]*\benable\b[^;]*\bsubgroups\b)(?=[\s\S]*(?:\bsubgroup(?!Matrix)[A-Z]\w*\s*\(|@builtin\s*\(\s*(?:subgroup_\w+|num_subgroups)\s*\)))/g,
    replacement: "diagnostic(off, subgroup_uniformity); enable subgroups; ",
  },
];

/** All refusals, tried after the rewritings. */
export const DIALECT_REFUSALS: readonly DialectRefusal[] = [
  {
    name: "bitcast to f16",
    why: "naga compiles it to wrong values; only vec2<f16> and vec4<f16> from u32 are rewritten",
    target: "naga",
    find: (code) => code.search(/\bbitcast\s*<[^()]*(?:\bf16\b|\bvec[234]h\b)[^()]*>/),
  },
  {
    name: "pointer to a part of a variable as an argument",
    why: "naga panics, which ends the process; only a whole variable can be passed",
    target: "naga",
    find: findPartPointer,
  },
];

/** Smaller tables stay in the shader. */
const MIN_TABLE = 64;

/**
 * Moves large tables of numbers out of a source. naga's SPIR-V writer copies a constant array at each read, or to each
 * invocation; a software adapter then compiles for minutes, and a real one runs out of registers.
 */
function takeTables(code: string): AdaptedShader {
  const tables: ShaderTable[] = [];
  const pattern =
    /\bconst\s+(\w+)\s*(?::[^=;]*)?=\s*array\s*<\s*u32\s*,\s*(\d+)u?\s*>\s*\(([\s0-9a-fA-Fxu,]*)\)\s*;/g;
  const adapted = code.replace(
    pattern,
    (match, name: string, n: string, list: string, at: number) => {
      const values = list.split(",").map((v) => v.trim()).filter((v) => v !== "")
        .map((v) => Number(v.replace(/u$/, "")));
      const whole = values.length === Number(n) && values.every(Number.isInteger);
      // One that nothing reads would not be part of the layout.
      const used = code.match(new RegExp(`\\b${name}\\b`, "g"))!.length > 1;
      if (!whole || !used || values.length < MIN_TABLE || depthAt(code, at) > 0) return match;
      const binding = tables.length;
      tables.push({ binding, name, data: Uint32Array.from(values) });
      const lines = match.replace(/[^\n]+/g, "");
      return `@group(1) @binding(${binding}) var<storage, read> ${name}: array<u32, ${n}>;${lines}`;
    },
  );
  return { code: adapted, tables };
}

/**
 * Turns a WGSL source as upstream emits it into one that a given compiler accepts and compiles correctly.
 *
 * @param source WGSL text.
 * @param target The compiler.
 * @param options Options.
 * @returns The text for that compiler, without comments, lines where they were, and the tables to bind for it.
 * @throws {DialectError} If the source holds what would crash the compiler or be compiled wrong.
 */
export function adaptShader(
  source: string,
  target: WgslTarget,
  options: AdaptWgslOptions = {},
): AdaptedShader {
  const code = blankComments(source);
  const moves = target === "naga" && (options.spirv ?? true);
  const { code: rest, tables } = moves ? takeTables(code) : { code, tables: [] };
  return { code: rewrite(rest, target, options), tables };
}

/**
 * The text of {@linkcode adaptShader} alone.
 *
 * @param source WGSL text.
 * @param target The compiler.
 * @param options Options.
 * @returns The text for that compiler, without comments, lines where they were.
 * @throws {DialectError} If the source holds what would crash the compiler or be compiled wrong.
 *
 * @example
 * ```ts
 * import { adaptWgsl } from "./dialect.ts";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(adaptWgsl("enable f16, subgroups;", "naga"), "enable f16;");
 * ```
 */
export function adaptWgsl(
  source: string,
  target: WgslTarget,
  options: AdaptWgslOptions = {},
): string {
  return adaptShader(source, target, options).code;
}

/** Applies the rules to text without comments. */
function rewrite(text: string, target: WgslTarget, options: AdaptWgslOptions): string {
  const { spirv = true } = options;
  let code = text;
  let helpers = "";
  for (const rule of DIALECT_RULES) {
    if (rule.target !== target || (rule.spirvOnly && !spirv)) continue;
    const adapted = typeof rule.replacement === "string"
      ? code.replace(rule.pattern, rule.replacement)
      : code.replace(rule.pattern, rule.replacement);
    if (adapted !== code && rule.helper) helpers += `\n${rule.helper}`;
    code = adapted;
  }
  for (const refusal of DIALECT_REFUSALS) {
    if (refusal.target !== target) continue;
    const at = refusal.find(code);
    if (at < 0) continue;
    const line = code.slice(0, at).split("\n").length;
    const text = code.split("\n")[line - 1]!.trim();
    throw new DialectError(
      `Cannot compile a shader with ${target}: ${refusal.name} at line ${line} ("${text}"): ${refusal.why}`,
    );
  }
  return helpers ? `${code.trimEnd()}${helpers}\n` : code;
}

/** Removes comments, but keeps newlines. */
function blankComments(source: string): string {
  const start = /\/\/[^\n]*|\/\*/g;
  let out = "";
  let from = 0;
  for (let match = start.exec(source); match; match = start.exec(source)) {
    out += source.slice(from, match.index) + " ";
    from = start.lastIndex;
    if (match[0] !== "/*") continue;
    // Block comments nest; one that never ends is the compiler's to report.
    const mark = /\/\*|\*\//g;
    mark.lastIndex = from;
    for (let depth = 1; depth > 0;) {
      const next = mark.exec(source);
      if (!next) return source;
      depth += next[0] === "/*" ? 1 : -1;
      from = mark.lastIndex;
    }
    out += source.slice(match.index, from).replace(/[^\n]+/g, "");
    start.lastIndex = from;
  }
  return out + source.slice(from);
}

/** How many braces are open at an offset of text without comments. */
function depthAt(code: string, offset: number): number {
  let depth = 0;
  for (let i = code.indexOf("{"); i >= 0 && i < offset;) {
    depth += code[i] === "{" ? 1 : -1;
    const open = code.indexOf("{", i + 1);
    const close = code.indexOf("}", i + 1);
    i = close < 0 || (open >= 0 && open < close) ? open : close;
  }
  return depth;
}

/** The arguments or parameters between the parenthesis at `open` and its partner. */
function splitArguments(code: string, open: number): { text: string; at: number }[] {
  const parts: { text: string; at: number }[] = [];
  let depth = 0;
  let from = open + 1;
  for (let i = open; i < code.length; i++) {
    const c = code[i]!;
    if (c === "(" || c === "[" || c === "{") depth++;
    const closes = c === ")" || c === "]" || c === "}";
    if (closes) depth--;
    if (depth === 0 || (depth === 1 && c === ",")) {
      parts.push({ text: code.slice(from, i).trim(), at: from });
      from = i + 1;
    }
    if (depth === 0) break;
  }
  return parts;
}

/** Finds a call that passes `&a[i]` or `&a.b` to one of the source's own functions. */
function findPartPointer(code: string): number {
  // Upstream's shaders pass no pointers at all today.
  if (!/\bptr\s*</.test(code)) return -1;
  const part = (text: string) => {
    const bare = text.replace(/^[&(*\s]+/, "");
    return /^[(\s]*&/.test(text) && /^\w+\s*\)*\s*[.\[]/.test(bare);
  };
  const takers = new Set<string>();
  for (const { 1: name, 2: params } of code.matchAll(/\bfn\s+(\w+)\s*\(([^{]*)/g)) {
    if (/\bptr\s*</.test(params!)) takers.add(name!);
  }
  const aliases = new Set<string>();
  for (
    const { 1: name, 2: value } of code.matchAll(/\blet\s+(\w+)\s*(?::[^=;]*)?=\s*([(\s]*&[^;]*);/g)
  ) {
    if (part(value!)) aliases.add(name!);
  }
  for (const match of code.matchAll(/(\bfn\s+)?\b(\w+)\s*\(/g)) {
    if (match[1] || !takers.has(match[2]!)) continue;
    for (const { text, at } of splitArguments(code, match.index + match[0].length - 1)) {
      if (part(text) || aliases.has(text)) return at;
    }
  }
  return -1;
}
