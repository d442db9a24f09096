/** What a Runpod endpoint of the queue kind tells its workers through the environment. */
export interface RunpodSettings {
  /** This worker's name at the host. */
  readonly workerId: string;
  /** Sent as the `Authorization` header, as it is; "" for none. */
  readonly apiKey: string;
  /** Where jobs are taken. */
  readonly takeUrl: string;
  /** Where it is told which running jobs to stop, if the host has that. */
  readonly stopUrl: string | undefined;
  /** Where heartbeats go, if the host wants them. */
  readonly pingUrl: string | undefined;
  /** Milliseconds between two heartbeats. */
  readonly pingIntervalMs: number;
  /** Where the result of a job goes. */
  doneUrl(jobId: string): string;
  /** Where parts of an answer go while it is made, if the host takes them. */
  streamUrl(jobId: string): string | undefined;
}

/** The variables that {@linkcode runpodSettings} reads. */
export const RUNPOD_VARIABLES = [
  "RUNPOD_WEBHOOK_GET_JOB",
  "RUNPOD_WEBHOOK_POST_OUTPUT",
  "RUNPOD_WEBHOOK_POST_STREAM",
  "RUNPOD_WEBHOOK_PING",
  "RUNPOD_PING_INTERVAL",
  "RUNPOD_POD_ID",
  "RUNPOD_AI_API_KEY",
] as const;

const DEFAULT_PING_INTERVAL_MS = 10_000;
const LEAST_PING_INTERVAL_MS = 100;

/**
 * Reads what the host says about the queue.
 *
 * @param env Looks up an environment variable.
 * @returns The settings.
 * @throws {TypeError} If a variable that is needed is missing, or is not an address.
 *
 * @example The variables of an endpoint
 * ```ts
 * import { runpodSettings } from "@rys/edge/serve";
 * import { assertEquals } from "@std/assert";
 *
 * const variables: Record<string, string> = {
 *   RUNPOD_POD_ID: "w1",
 *   RUNPOD_WEBHOOK_GET_JOB: "https://host.example/job-take/$ID?gpu=A40",
 *   RUNPOD_WEBHOOK_POST_OUTPUT: "https://host.example/job-done/$RUNPOD_POD_ID/$ID?gpu=A40",
 * };
 * const settings = runpodSettings((name) => variables[name]);
 * assertEquals(settings.takeUrl, "https://host.example/job-take/w1?gpu=A40");
 * assertEquals(settings.doneUrl("job-7"), "https://host.example/job-done/w1/job-7?gpu=A40");
 * ```
 */
export function runpodSettings(env: (name: string) => string | undefined): RunpodSettings {
  const url = (name: typeof RUNPOD_VARIABLES[number]): string | undefined => {
    const value = env(name) ?? "";
    if (value === "") return undefined;
    const parsed = URL.canParse(value) ? new URL(value) : undefined;
    if (parsed?.protocol !== "http:" && parsed?.protocol !== "https:") {
      throw new TypeError(`${name} must be an http or https address, not ${JSON.stringify(value)}`);
    }
    return value;
  };
  const needed = (name: typeof RUNPOD_VARIABLES[number]): string => {
    const value = url(name);
    if (value !== undefined) return value;
    throw new TypeError(
      `${name} is not set: jobs of a queue are taken and answered at addresses that Runpod gives ` +
        `to the workers of a queue endpoint; elsewhere, and on a load-balancing endpoint, there is no queue`,
    );
  };
  const workerId = env("RUNPOD_POD_ID") || crypto.randomUUID();
  const worker = (text: string) => fill(text, "$RUNPOD_POD_ID", workerId);
  const take = fill(needed("RUNPOD_WEBHOOK_GET_JOB"), "$ID", workerId);
  const done = worker(needed("RUNPOD_WEBHOOK_POST_OUTPUT"));
  const stream = url("RUNPOD_WEBHOOK_POST_STREAM");
  const ping = url("RUNPOD_WEBHOOK_PING");
  const apiKey = env("RUNPOD_AI_API_KEY") ?? "";
  return {
    workerId,
    apiKey,
    takeUrl: worker(take),
    stopUrl: worker(take).includes("/job-take/")
      ? worker(take).replace("/job-take/", "/job-stop/")
      : undefined,
    // Without a key the host would only refuse them.
    pingUrl: ping === undefined || apiKey === "" ? undefined : worker(ping),
    pingIntervalMs: pingInterval(env("RUNPOD_PING_INTERVAL")),
    doneUrl: (jobId) => fill(done, "$ID", jobId),
    streamUrl: (jobId) => stream === undefined ? undefined : fill(worker(stream), "$ID", jobId),
  };
}

/** Puts a name into an address; what it contains stays one part of the path. */
function fill(address: string, placeholder: string, name: string): string {
  return address.replaceAll(placeholder, () => encodeURIComponent(name));
}

function pingInterval(text: string | undefined): number {
  if (text === undefined || text === "") return DEFAULT_PING_INTERVAL_MS;
  const ms = Number(text);
  if (!Number.isFinite(ms) || ms <= 0) {
    throw new TypeError(
      `RUNPOD_PING_INTERVAL must be a number of milliseconds, not ${JSON.stringify(text)}`,
    );
  }
  return Math.max(ms, LEAST_PING_INTERVAL_MS);
}
