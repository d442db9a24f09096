/** What went wrong, for a program to tell apart. */
export type HubErrorKind =
  /** There is no such repository, revision or file, or no model in it fits. */
  | "not_found"
  /** A token is missing, wrong, or has no access. */
  | "denied"
  /** The network, or the server. */
  | "network"
  /** It is not in the cache, and the network may not be used. */
  | "offline"
  /** Deno may not read, write or connect there. */
  | "permission"
  /** Another process is fetching it. */
  | "busy"
  /** The disk is full, or cannot be written. */
  | "disk"
  /** The file changed while it was read. */
  | "changed"
  /** The bytes are not those that the hub promised. */
  | "checksum";

/**
 * A model could not be had by its name. The message is one line: the name, what was wrong, and what helps.
 *
 * @example
 * ```ts
 * import { HubError } from "@rys/edge";
 * import { assertEquals } from "@std/assert";
 *
 * const error = new HubError("not_found", "hf:a/b: there is no such repository");
 * assertEquals([error.kind, error.message], ["not_found", "hf:a/b: there is no such repository"]);
 * ```
 */
export class HubError extends Error {
  /** The class's name. */
  override readonly name = "HubError";

  /**
   * Makes the error.
   *
   * @param kind What went wrong.
   * @param message One line for the user.
   * @param options `cause`: the error behind this one.
   */
  constructor(readonly kind: HubErrorKind, message: string, options?: ErrorOptions) {
    super(message.replace(/\s*[\r\n]+\s*/g, " "), options);
  }
}
