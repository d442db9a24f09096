import { quote } from "./_text.ts";
import { checkPlan } from "./_check_plan.ts";
import type { LayerRun, Plan } from "./types.ts";

/** Options for {@linkcode parsePlan}. */
export interface ParsePlanOptions {
  /** Layers the model has; without it, only what no model could run is refused. */
  nLayer?: number;
  /** Next-token (MTP) layers that come after those. */
  nextn?: number;
}

/** A parsed plan and where each of its blocks or path entries begins in the text. */
export interface LocatedPlan {
  plan: Plan;
  positions: Position[];
}

/** Where in the text a block's or an entry's parts stand. */
export interface Position {
  start: number;
  end: number;
  count: number;
  /** The text names the last layer, not the one after it. */
  inclusive?: boolean;
}

const U32_MAX = 0xffff_ffff;

/** Walks over a layer spec. Positions count UTF-16 units from 0, as JavaScript's own messages do. */
class Scanner {
  pos = 0;
  /** The token before `pos`, for messages. */
  last = "";

  constructor(readonly text: string) {}

  skipSpaces(): void {
    while (this.text[this.pos] === " " || this.text[this.pos] === "\t") this.pos++;
  }

  get done(): boolean {
    this.skipSpaces();
    return this.pos >= this.text.length;
  }

  accept(token: string): boolean {
    this.skipSpaces();
    if (!this.text.startsWith(token, this.pos)) return false;
    this.pos += token.length;
    this.last = token;
    return true;
  }

  expected(what: string, hint = ""): never {
    this.skipSpaces();
    const point = this.text.codePointAt(this.pos);
    const found = point === undefined
      ? ""
      : `, found ${JSON.stringify(String.fromCodePoint(point))}`;
    const after = this.last === "" ? "" : ` after '${this.last}'`;
    throw new SyntaxError(
      `Cannot parse layer spec ${
        quote(this.text)
      }: expected ${what}${after} at position ${this.pos}${found}${hint}`,
    );
  }

  number(what: string): { value: number; at: number } {
    this.skipSpaces();
    const at = this.pos;
    while (/^[0-9]$/.test(this.text[this.pos] ?? "")) this.pos++;
    if (this.pos === at) this.expected(what);
    const digits = this.text.slice(at, this.pos);
    const value = Number(digits);
    if (value > U32_MAX) {
      throw new RangeError(
        `Cannot use layer spec ${quote(this.text)}: ${
          quote(digits, 24)
        } at position ${at} is too large a number`,
      );
    }
    this.last = digits.length > 24 ? "…" : digits;
    return { value, at };
  }
}

function parseBlocks(scan: Scanner): { blocks: LayerRun[]; positions: Position[] } {
  const blocks: LayerRun[] = [];
  const positions: Position[] = [];
  do {
    const start = scan.number("a layer index");
    let inclusive = false;
    if (scan.accept("..")) inclusive = true;
    else if (!scan.accept(",") && !scan.accept("-")) scan.expected("',', '-' or '..'");
    const end = scan.number("a layer index");
    let count = { value: 1, at: end.at };
    if (scan.accept("x")) count = scan.number("a repeat count");
    blocks.push({
      repeatStart: start.value,
      repeatEnd: end.value + (inclusive ? 1 : 0),
      repeatCount: count.value + 1,
    });
    positions.push({ start: start.at, end: end.at, count: count.at, inclusive });
    if (scan.done) return { blocks, positions };
  } while (scan.accept(";"));
  const isPath = scan.text[scan.pos] === ",";
  return scan.expected(
    "'x', ';' or the end",
    isPath ? '; a list of layers is written "layers:0..33,33,34..63"' : "",
  );
}

function parsePath(scan: Scanner): { entries: LayerRun[]; positions: Position[] } {
  const entries: LayerRun[] = [];
  const positions: Position[] = [];
  do {
    const start = scan.number("a layer index");
    const end = scan.accept("..") ? scan.number("a layer index") : start;
    entries.push({ repeatStart: start.value, repeatEnd: end.value + 1, repeatCount: 1 });
    positions.push({ start: start.at, end: end.at, count: end.at, inclusive: true });
    if (scan.done) return { entries, positions };
  } while (scan.accept(","));
  return scan.expected("'..', ',' or the end");
}

/** {@linkcode parsePlan}, keeping the positions. */
export function locatePlan(spec: string, options: ParsePlanOptions = {}): LocatedPlan {
  if (typeof spec !== "string") {
    throw new TypeError(`A layer spec must be text, not ${typeof spec}`);
  }
  const scan = new Scanner(spec);
  if (scan.done) {
    throw new SyntaxError(
      `Cannot parse layer spec ${
        quote(spec)
      }: expected a layer index at position 0, but it is empty; write "none" for the model's own layers`,
    );
  }
  if (scan.accept("none")) {
    if (!scan.done) scan.expected("the end");
    return { plan: { kind: "none", spec }, positions: [] };
  }
  if (scan.accept("layers:")) {
    const { entries, positions } = parsePath(scan);
    // Checked before it is expanded: the text decides how much that would be.
    checkPlan({ kind: "path", spec, entries }, positions, options);
    const layers: number[] = [];
    for (const { repeatStart, repeatEnd } of entries) {
      for (let il = repeatStart; il < repeatEnd; il++) layers.push(il);
    }
    return { plan: { kind: "path", spec, layers }, positions };
  }
  scan.accept("blocks:");
  const { blocks, positions } = parseBlocks(scan);
  checkPlan({ kind: "spec", spec, entries: blocks }, positions, options);
  return { plan: { kind: "spec", spec, blocks }, positions };
}

/**
 * Reads a layer plan from text.
 *
 * The grammar (spaces are allowed between its parts):
 *
 * - `26,34` or `26-34`: layers 26..33 run once more (half-open); `26..33` says the same (inclusive);
 * - `26,34x2`: two times more;
 * - `43,45;28,34`: several blocks, applied one after another; `blocks:43,45;28,34` is the same;
 * - `layers:0..33,33,34..63`: the very path, ranges inclusive;
 * - `none`: the model's own layers.
 *
 * @param spec The text.
 * @param options What is known of the model.
 * @returns The plan; its `spec` is the text as it was given.
 * @throws {SyntaxError} If the text is not in the grammar; the message says where and what was expected.
 * @throws {RangeError} If a layer or a count is out of range for the model, or for any model.
 *
 * @example
 * ```ts
 * import { parsePlan } from "@rys/edge/plan";
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(parsePlan("26,34", { nLayer: 64 }), {
 *   kind: "spec",
 *   spec: "26,34",
 *   blocks: [{ repeatStart: 26, repeatEnd: 34, repeatCount: 2 }],
 * });
 * ```
 */
export function parsePlan(spec: string, options: ParsePlanOptions = {}): Plan {
  return locatePlan(spec, options).plan;
}
