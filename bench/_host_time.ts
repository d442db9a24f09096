/** What was measured since the device was asked for. */
export interface HostTime {
  /** Milliseconds in the executor, waiting included. */
  executorMs: number;
  /** Milliseconds of them in which it waited for results or submitted to an adapter. */
  waitMs: number;
  /** The operating system's number of the thread; 0 where unknown. */
  thread: number;
}

/** Where {@linkcode HostTime} answers any message. */
export const HOST_TIME = "rys-host-time";
