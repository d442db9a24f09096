/** A model that cannot be exported, or an output that cannot be written; the message says why. */
export class ExportError extends Error {
  /** The name of the class. */
  override name = "ExportError";
}
