/** One thing that was looked at. */
export interface Finding {
  /** Its name. */
  name: string;
  /** What was found, in words. */
  value: string;
  /** Well or not; absent where it is only information. */
  ok?: boolean;
  /** Nothing works without it. */
  needed?: boolean;
  /** What helps. */
  fix?: string;
}
