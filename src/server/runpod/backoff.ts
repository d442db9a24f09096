/** How long to wait between attempts. */
export interface Backoff {
  /** Milliseconds before the second attempt. */
  readonly firstMs: number;
  /** Milliseconds that no wait exceeds. */
  readonly maxMs: number;
}

/**
 * The wait after a failed attempt: twice as long each time, and up to a half shorter by chance, so that many workers
 * that failed together do not come back together.
 *
 * @param backoff Its limits.
 * @param failures How many attempts have failed in a row, from 1.
 * @param random A number in 0..1.
 * @returns Milliseconds.
 */
export function backoffMs(backoff: Backoff, failures: number, random: number): number {
  const full = Math.min(backoff.firstMs * 2 ** (failures - 1), backoff.maxMs);
  return full * (1 - random / 2);
}

/**
 * Reads a `Retry-After` header.
 *
 * @param value Seconds or a date.
 * @param now The time, in milliseconds since 1970.
 * @returns Milliseconds to wait, or undefined where it says nothing.
 */
export function retryAfterMs(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\s*\d+(\.\d+)?\s*$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/**
 * Waits.
 *
 * @param ms How long; what is not above 0 is no time at all.
 * @param signal Ends the wait early.
 */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, ms));
    signal.addEventListener("abort", end);
  });
}
