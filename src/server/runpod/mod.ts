/**
 * The worker of a Runpod queue: takes jobs, answers them with a server, sends the results.
 *
 * @module
 */

export {
  type QueueReport,
  reportUnhealthy,
  type RunpodQueue,
  type RunpodQueueOptions,
  startRunpodQueue,
} from "./pull_worker.ts";
export { RUNPOD_VARIABLES, type RunpodSettings, runpodSettings } from "./settings.ts";
export type { RunpodTiming } from "./timing.ts";
