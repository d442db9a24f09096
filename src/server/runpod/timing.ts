/** How long and how often things are tried, in milliseconds. */
export interface RunpodTiming {
  /** A request for jobs that the host holds open is given up after this. Default 90 s. */
  pollMs: number;
  /** Shortest time between two requests for jobs that bring none. Default 250. */
  idleMs: number;
  /** First wait after a failure; it doubles. Default 1 s. */
  retryMs: number;
  /** First wait after "too many requests" without a time; it doubles. Default 5 s. */
  busyMs: number;
  /** Longest wait. Default 30 s. */
  maxRetryMs: number;
  /** How often a result is sent at most. Default 10. */
  attempts: number;
}

/** The times of Runpod itself. */
export const TIMING: RunpodTiming = {
  pollMs: 90_000,
  idleMs: 250,
  retryMs: 1000,
  busyMs: 5000,
  maxRetryMs: 30_000,
  attempts: 10,
};
