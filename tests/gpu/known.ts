/** A case that fails for a known reason. */
export interface KnownFailure {
  /** Operation. */
  op: string;
  /** Matches its parameters. */
  vars: RegExp;
  /** Why. */
  why: string;
}

/** Cases that the backend claims and gets wrong. Each is asserted to still fail. */
export const KNOWN_FAILURES: readonly KnownFailure[] = [];
