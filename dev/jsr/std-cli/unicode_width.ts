/**
 * Stand-in for `@std/cli/unicode-width`.
 *
 * @module
 */

/** Ranges of characters that take two columns in a terminal. */
const WIDE: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x115f],
  [0x231a, 0x231b],
  [0x23e9, 0x23ec],
  [0x25fd, 0x25fe],
  [0x2614, 0x2615],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f004, 0x1f004],
  [0x1f0cf, 0x1f0cf],
  [0x1f18e, 0x1f19a],
  [0x1f200, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f7e0, 0x1f7eb],
  [0x1f900, 0x1f9ff],
  [0x1fa70, 0x1faff],
  [0x20000, 0x3fffd],
];

/**
 * Columns that a text takes in a terminal, the sum of those of its characters. Control characters and what joins the
 * character before it take none.
 *
 * @param str The text.
 * @returns The number of columns.
 */
export function unicodeWidth(str: string): number {
  let width = 0;
  for (const char of str) width += charWidth(char);
  return width;
}

function charWidth(char: string): number {
  const point = char.codePointAt(0)!;
  if (point < 0x20 || (point >= 0x7f && point < 0xa0)) return 0;
  if (point < 0x300) return 1;
  // A flag is made of two letters, which are one column wide each.
  if (point >= 0x1f1e6 && point <= 0x1f1ff) return 1;
  if (/^[\p{Mn}\p{Me}\p{Cf}]$/u.test(char)) return 0;
  return WIDE.some(([first, last]) => point >= first && point <= last) ? 2 : 1;
}
