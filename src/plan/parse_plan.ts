import { quote } from "./_text.ts";
import { checkPlan, type Position } from "./_check_plan.ts";
import { known } from "./_known.ts";
import type { LayerRun, ParsePlanOptions, Plan } from "./types.ts";

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

  number(what: string, hint = ""): { value: number; at: number } {
    this.skipSpaces();
    const at = this.pos;
    while (/^[0-9]$/.test(this.text[this.pos] ?? "")) this.pos++;
    if (this.pos === at) this.expected(what, hint);
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
    const isTuple = scan.accept("(");
    const start = scan.number("a layer index");
    let inclusive = false;
    if (scan.accept("..")) inclusive = true;
    else if (!scan.accept(",") && !scan.accept("-")) scan.expected("',', '-' or '..'");
    const end = scan.number("a layer index");
    if (isTuple && !scan.accept(")")) scan.expected("')'");
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
    const end = scan.accept("..")
      ? scan.number("a layer index", "; the last layer has to be named")
      : start;
    entries.push({ repeatStart: start.value, repeatEnd: end.value + 1, repeatCount: 1 });
    positions.push({ start: start.at, end: end.at, count: end.at, inclusive: true });
    if (scan.done) return { entries, positions };
  } while (scan.accept(","));
  return scan.expected("'..', ',' or the end");
}

/** ExLlamaV3's layer map: ranges with a comma between them, which no list of blocks has. */
const LAYER_MAP = /^[ \t]*\d+[ \t]*\.\.[ \t]*\d+[ \t]*,/;

/** RYS's baseline: a block of no layers. */
const BASELINE =
  /^[ \t]*(?:blocks:)?[ \t]*(?:0[ \t]*,[ \t]*0|\([ \t]*0[ \t]*,[ \t]*0[ \t]*\))[ \t]*$/;

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
 * As others write it: `(26,34)` is `26,34` and `0,0` is `none` (RYS); `0..33,33..63`, ranges with a comma between them,
 * is a path (ExLlamaV3's layer map).
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
  if (BASELINE.test(spec)) return known({ kind: "none", spec }, []);
  if (scan.accept("none")) {
    if (!scan.done) scan.expected("the end");
    return known({ kind: "none", spec }, []);
  }
  if (scan.accept("layers:") || LAYER_MAP.test(spec)) {
    const { entries, positions } = parsePath(scan);
    // Checked before it is expanded: the text decides how much that would be.
    checkPlan({ kind: "path", spec, entries, positions }, options);
    const layers: number[] = [];
    for (const { repeatStart, repeatEnd } of entries) {
      for (let il = repeatStart; il < repeatEnd; il++) layers.push(il);
    }
    return known({ kind: "path", spec, layers }, entries, positions);
  }
  scan.accept("blocks:");
  const { blocks, positions } = parseBlocks(scan);
  checkPlan({ kind: "spec", spec, entries: blocks, positions }, options);
  return known({ kind: "spec", spec, blocks }, blocks, positions);
}
