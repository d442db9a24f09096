/** What has happened since the server began. */
export interface ServerCounts {
  /** Requests that came. */
  requests: number;
  /** Those that were refused with 503. */
  refused: number;
  /** Those that ended with an error of the server's. */
  failed: number;
  /** Those whose client went away. */
  cancelled: number;
  /** Contexts made. */
  contextsMade: number;
  /** Contexts freed for others. */
  contextsFreed: number;
  /** Times that the engine ended and was loaded again. */
  reloads: number;
}

/** Counts of a server to which nothing has happened yet. */
export function serverCounts(): ServerCounts {
  return {
    requests: 0,
    refused: 0,
    failed: 0,
    cancelled: 0,
    contextsMade: 0,
    contextsFreed: 0,
    reloads: 0,
  };
}
