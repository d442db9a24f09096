const PLAIN: Readonly<Record<string, number>> = {
  n: 10,
  r: 13,
  t: 9,
  "'": 39,
  '"': 34,
  "\\": 92,
};

/**
 * Reads the escapes in a command line's text as llama.cpp does: `\n`, `\r`, `\t`, `\'`, `\"`, `\\`, and `\x` with two
 * digits for a byte. Anything else stays as it is.
 *
 * @param text The text.
 */
export function unescapeText(text: string): string {
  if (!text.includes("\\")) return text;
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\") {
      const next = text[i + 1] ?? "";
      const plain = PLAIN[next];
      const hex = /^x([0-9a-fA-F]{2})/.exec(text.slice(i + 1, i + 4))?.[1];
      if (plain !== undefined || hex !== undefined) {
        bytes.push(plain ?? parseInt(hex!, 16));
        i += hex === undefined ? 1 : 3;
        continue;
      }
    }
    const point = String.fromCodePoint(text.codePointAt(i)!);
    bytes.push(...encoder.encode(point));
    i += point.length - 1;
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}
