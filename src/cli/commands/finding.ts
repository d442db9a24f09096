/** One thing that was looked at. */
export interface Finding {
  /** Its name. */
  name: string;
  /** What was found, in words. */
  value: string;
  /** Whether it is all right; absent where it is only information. */
  ok?: boolean;
  /** Whether nothing works without it. */
  needed?: boolean;
  /** What helps. */
  fix?: string;
}
