import { unicodeWidth } from "@std/cli/unicode-width";

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * Text in pieces that each look like one character.
 *
 * @param text The text.
 */
export function graphemes(text: string): string[] {
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/**
 * Columns that one of {@linkcode graphemes} takes in a terminal.
 *
 * @param grapheme The piece of text.
 */
export function columns(grapheme: string): number {
  if (grapheme.includes("\ufe0f")) return 2; // shown as an emoji
  // Several code points drawn as one, such as a family emoji, take no more room than one of them.
  return Math.min(2, unicodeWidth(grapheme));
}
