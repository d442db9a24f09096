// The part of YAML that merge recipes are written in: block and flow collections, plain and quoted scalars, comments.
// Anchors, tags, block scalars and multi-line scalars are refused, never guessed at.

interface Line {
  indent: number;
  text: string;
  no: number;
}

const MAX_DEPTH = 32;

/** Reads a YAML document of that part. */
export function parseYaml(source: string): unknown {
  const lines: Line[] = [];
  for (const [i, raw] of source.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/).entries()) {
    const text = stripComment(raw).trimEnd();
    if (text.trim() === "" || (lines.length === 0 && text === "---")) continue;
    if (text === "...") break;
    const indent = text.search(/[^ ]/);
    if (text[indent] === "\t") fault(i + 1, "a tab in the indentation");
    lines.push({ indent, text: text.slice(indent), no: i + 1 });
  }
  if (lines.length === 0) throw new SyntaxError("Cannot parse YAML: it is empty");
  const reader = new Reader(lines);
  const value = reader.block(0);
  const rest = reader.peek();
  if (rest) fault(rest.no, `unexpected ${JSON.stringify(rest.text.slice(0, 40))}`);
  return value;
}

function fault(no: number, what: string): never {
  throw new SyntaxError(`Cannot parse YAML: ${what} in line ${no}`);
}

function stripComment(line: string): string {
  let quoted = "";
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quoted) {
      if (c === "\\" && quoted === '"') i++;
      else if (c === quoted) quoted = "";
    } else if (
      (c === '"' || c === "'") && /(?:^|[\s\[{,:])$/.test(line.slice(Math.max(0, i - 1), i))
    ) quoted = c;
    else if (c === "#" && (i === 0 || /\s/.test(line[i - 1]!))) return line.slice(0, i);
  }
  return line;
}

class Reader {
  #at = 0;

  constructor(readonly lines: Line[]) {}

  peek(): Line | undefined {
    return this.lines[this.#at];
  }

  block(depth: number): unknown {
    const first = this.peek()!;
    if (depth > MAX_DEPTH) fault(first.no, "too deep a nesting");
    if (/^-(?: |$)/.test(first.text)) return this.sequence(first.indent, depth);
    if (splitKey(first) !== undefined) return this.mapping(first.indent, depth);
    this.#at++;
    return flow(first.text, first.no);
  }

  sequence(indent: number, depth: number): unknown[] {
    const items: unknown[] = [];
    for (
      let line = this.peek();
      line && line.indent === indent && /^-(?: |$)/.test(line.text);
      line = this.peek()
    ) {
      const skip = line.text.search(/[^- ]/) < 0 ? -1 : line.text.slice(1).search(/[^ ]/) + 1;
      if (skip > 0) {
        this.lines[this.#at] = { indent: indent + skip, text: line.text.slice(skip), no: line.no };
        items.push(this.block(depth + 1));
      } else {
        this.#at++;
        items.push(this.nested(indent, depth, false));
      }
    }
    return items;
  }

  mapping(indent: number, depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = Object.create(null);
    for (let line = this.peek(); line && line.indent === indent; line = this.peek()) {
      const entry = splitKey(line);
      if (entry === undefined) {
        fault(line.no, `expected "key: value", found ${JSON.stringify(line.text.slice(0, 40))}`);
      }
      const [key, rest] = entry;
      if (key in map) fault(line.no, `a second ${JSON.stringify(key)}`);
      this.#at++;
      map[key] = rest === "" ? this.nested(indent, depth, true) : flow(rest, line.no);
    }
    return map;
  }

  /** What stands below a key or a dash. A sequence may stand as far left as its key. */
  nested(indent: number, depth: number, ofKey: boolean): unknown {
    const next = this.peek();
    if (!next) return null;
    const isBelow = next.indent > indent ||
      (ofKey && next.indent === indent && /^-(?: |$)/.test(next.text));
    return isBelow ? this.block(depth + 1) : null;
  }
}

function splitKey({ text, no }: Line): [key: string, rest: string] | undefined {
  if (text[0] === "[" || text[0] === "{") return undefined;
  const quoted = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(?:\s+|$)/.exec(text);
  if (quoted) return [String(flow(quoted[1]!, no)), text.slice(quoted[0].length)];
  const plain = /^([^\s"'#\-][^#]*?)\s*:(?:\s+|$)/.exec(text);
  return plain ? [plain[1]!, text.slice(plain[0].length)] : undefined;
}

/** Reads a scalar or a flow collection that fills `text`. */
function flow(text: string, no: number): unknown {
  let at = 0;
  const spaces = () => {
    while (text[at] === " " || text[at] === "\t") at++;
  };
  const value = (inside: boolean, depth: number): unknown => {
    if (depth > MAX_DEPTH) fault(no, "too deep a nesting");
    spaces();
    const c = text[at];
    if (c === "[") {
      at++;
      const items: unknown[] = [];
      for (spaces(); text[at] !== "]"; spaces()) {
        items.push(value(true, depth + 1));
        spaces();
        if (text[at] === ",") at++;
        else if (text[at] !== "]") fault(no, "expected ',' or ']'");
      }
      at++;
      return items;
    }
    if (c === "{") {
      at++;
      const map: Record<string, unknown> = Object.create(null);
      for (spaces(); text[at] !== "}"; spaces()) {
        const key = String(value(true, depth + 1));
        spaces();
        if (text[at] !== ":") fault(no, "expected ':'");
        at++;
        map[key] = value(true, depth + 1);
        spaces();
        if (text[at] === ",") at++;
        else if (text[at] !== "}") fault(no, "expected ',' or '}'");
      }
      at++;
      return map;
    }
    if (c === '"' || c === "'") {
      const match = c === '"' ? /"((?:[^"\\]|\\.)*)"/y : /'((?:[^']|'')*)'/y;
      match.lastIndex = at;
      const found = match.exec(text);
      if (!found) fault(no, "a quoted text without an end");
      at = match.lastIndex;
      if (c === "'") return found[1]!.replaceAll("''", "'");
      try {
        return JSON.parse(found[0]) as unknown;
      } catch {
        fault(no, "an escape that is not JSON's");
      }
    }
    if (c === undefined || /[&*!|>%@`]/.test(c)) {
      fault(no, `no value that is supported: ${JSON.stringify(c ?? "")}`);
    }
    const plain = inside ? /(?:[^,\[\]{}:]|:(?=\S))+/y : /.+/y;
    plain.lastIndex = at;
    const found = plain.exec(text);
    if (!found) fault(no, `unexpected ${JSON.stringify(c)}`);
    at = plain.lastIndex;
    return scalar(found[0].trim());
  };
  const result = value(false, 0);
  spaces();
  if (at < text.length) fault(no, `unexpected ${JSON.stringify(text.slice(at, at + 40))}`);
  return result;
}

function scalar(text: string): unknown {
  if (/^(?:null|Null|NULL|~)$/.test(text)) return null;
  if (/^(?:true|True|TRUE)$/.test(text)) return true;
  if (/^(?:false|False|FALSE)$/.test(text)) return false;
  if (/^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/.test(text)) return Number(text);
  return text;
}
