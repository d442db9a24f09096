/** What a {@linkcode GgufError} carries besides its message. */
export interface GgufErrorDetails {
  /** The file, as it was named. */
  file: string;
  /** Byte in the file where the fault is. */
  offset?: number | undefined;
  /** The field at that place. */
  field?: string | undefined;
  /** The limit that is exceeded. */
  limit?: number | undefined;
  /** What should be there. */
  expected?: string | undefined;
  /** The error behind this one. */
  cause?: unknown;
}

/**
 * A file is not a model that could be loaded. The message is one line with file, field, offset, and the limit passed or
 * what was expected.
 *
 * @example
 * ```ts
 * import { GgufError, readHeader } from "@rys/edge/gguf";
 * import { assertEquals, assertRejects } from "@std/assert";
 *
 * const page = new TextEncoder().encode("<!DOCTYPE html><title>Not found</title>");
 * const error = await assertRejects(() => readHeader(page, { name: "model.gguf" }), GgufError);
 * assertEquals(
 *   error.message,
 *   'model.gguf: it is an HTML page, not a model (magic at byte 0; expected "GGUF")',
 * );
 * ```
 */
export class GgufError extends Error {
  /** The class's name. */
  override readonly name = "GgufError";
  /** The file, as it was named. */
  readonly file: string;
  /** Byte in the file where the fault is, if there is one place. */
  readonly offset: number | undefined;
  /** The field at that place, if there is one place. */
  readonly field: string | undefined;
  /** The limit, if one is exceeded. */
  readonly limit: number | undefined;
  /** What should be there, if something else is. */
  readonly expected: string | undefined;

  /**
   * Makes the error.
   *
   * @param problem What is wrong, without file and place.
   * @param details File, place, and limit or what was expected.
   */
  constructor(problem: string, details: GgufErrorDetails) {
    const { file, offset, field, limit, expected, cause } = details;
    const at = offset === undefined ? "" : `${field === undefined ? "" : " "}at byte ${offset}`;
    const place = `${field ?? ""}${at}`;
    const where = [
      place,
      limit === undefined ? "" : `limit ${limit}`,
      expected === undefined ? "" : `expected ${expected}`,
    ].filter((s) => s !== "").join("; ");
    const text = `${file}: ${problem}${where === "" ? "" : ` (${where})`}`;
    super(text.replace(/[\r\n\t]+/g, " "), cause === undefined ? undefined : { cause });
    this.file = file;
    this.offset = offset;
    this.field = field;
    this.limit = limit;
    this.expected = expected;
  }
}
