import { RunpodApi } from "./api.ts";
import { answerShape, failureIn, failureOf, type JobFailure } from "./answer.ts";
import { pause, retryAfterMs } from "./backoff.ts";
import { type Job, JobInputError, type JobRequest, jobRequest } from "./job.ts";
import { Parts } from "./parts.ts";
import type { RunpodSettings } from "./settings.ts";
import { sseEvents } from "./sse_events.ts";
import { type RunpodTiming, TIMING } from "./timing.ts";
import { Trouble } from "./trouble.ts";

/** Options of {@linkcode startRunpodQueue}. */
export interface RunpodQueueOptions {
  /** Where the queue is, see {@linkcode runpodSettings}. */
  settings: RunpodSettings;
  /** Answers a request, as a server's `fetch` does. */
  fetch: (request: Request) => Response | Promise<Response>;
  /** Jobs that run at once. Default 1. */
  slots?: number | undefined;
  /** The key that `fetch` asks for, if it asks for one. */
  apiKey?: string | undefined;
  /** Called with a line for people, when something happens. */
  log?: ((line: string) => void) | undefined;
  /** Milliseconds that running jobs get to end after {@linkcode RunpodQueue.stop}. Default 7000. */
  graceMs?: number | undefined;
  /** How often and how long things are tried; for hosts that differ from Runpod's. */
  timing?: Partial<RunpodTiming> | undefined;
}

/** What a queue worker did. */
export interface QueueReport {
  /** Jobs taken. */
  taken: number;
  /** Jobs answered. */
  completed: number;
  /** Jobs whose answer was an error. */
  failed: number;
  /** Jobs that the host stopped. */
  cancelled: number;
  /** Jobs that had to end because the worker did. */
  returned: number;
  /** Results that the host did not take. */
  undelivered: number;
}

/** A running queue worker. */
export interface RunpodQueue {
  /** Takes no more jobs; those that run get `graceMs`, then are given back. */
  stop(): void;
  /** Settles when it has stopped and every result is sent. */
  readonly done: Promise<QueueReport>;
}

/** After the grace time, results get this long to be sent. */
const FAREWELL_MS = 2000;
/** A full server is asked again this often before the job fails. */
const SERVER_ATTEMPTS = 20;

/**
 * Takes jobs from the queue of a Runpod endpoint and answers them, until it is stopped.
 *
 * @param options The queue, the server, how many jobs at once.
 * @returns The worker, at work.
 * @throws {RangeError} If `slots` is not a positive whole number.
 */
export function startRunpodQueue(options: RunpodQueueOptions): RunpodQueue {
  const slots = options.slots ?? 1;
  if (!Number.isInteger(slots) || slots < 1) {
    throw new RangeError(`slots must be a whole number from 1, not ${slots}`);
  }
  const worker = new PullWorker(options, slots);
  return { stop: () => worker.stop(), done: worker.run() };
}

/**
 * Tells the host that this worker cannot work, e.g. because its model cannot be loaded. It never throws and takes two
 * seconds at most.
 *
 * @param settings The host.
 * @param check What failed, in a word.
 * @param reason Why.
 */
export async function reportUnhealthy(
  settings: RunpodSettings,
  check: string,
  reason: string,
): Promise<void> {
  if (settings.pingUrl === undefined) return;
  await new RunpodApi(settings).unhealthy(check, reason, AbortSignal.timeout(FAREWELL_MS));
}

/** Why a running job ends early. */
class Ended extends Error {
  constructor(readonly by: "host" | "worker") {
    super(by === "host" ? "stopped by the host" : "the worker is stopping");
  }
}

interface Running {
  readonly abort: AbortController;
  readonly finished: Promise<void>;
}

type Outcome = { output: unknown; hasParts: boolean } | { failure: JobFailure };

class PullWorker {
  readonly #options: RunpodQueueOptions;
  readonly #slots: number;
  readonly #api: RunpodApi;
  readonly #timing: RunpodTiming;
  readonly #running = new Map<string, Running>();
  /** Aborted by {@linkcode PullWorker.stop}. */
  readonly #stopping = new AbortController();
  /** Aborted when the last job is over. */
  readonly #over = new AbortController();
  /** Aborted when there is no time left to send results. */
  readonly #farewell = new AbortController();
  readonly #report: QueueReport = {
    taken: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    returned: 0,
    undelivered: 0,
  };

  constructor(options: RunpodQueueOptions, slots: number) {
    this.#options = options;
    this.#slots = slots;
    this.#api = new RunpodApi(options.settings);
    this.#timing = { ...TIMING, ...options.timing };
  }

  stop(): void {
    this.#stopping.abort();
  }

  async run(): Promise<QueueReport> {
    const { settings } = this.#options;
    this.#log(`taking jobs as ${settings.workerId}, ${this.#slots} at once`);
    const beside = [
      ...(settings.pingUrl === undefined ? [] : [this.#pingLoop()]),
      ...(settings.stopUrl === undefined ? [] : [this.#stopLoop()]),
    ];
    await this.#takeLoop();
    await this.#drain();
    this.#over.abort();
    await Promise.all(beside);
    return { ...this.#report };
  }

  async #takeLoop(): Promise<void> {
    const { signal } = this.#stopping;
    const { idleMs, pollMs } = this.#timing;
    const trouble = new Trouble(this.#timing, "cannot take jobs", (line) => this.#log(line));
    const stopped = new Promise<void>((resolve) =>
      signal.addEventListener("abort", () => resolve())
    );
    while (!signal.aborted) {
      const free = this.#slots - this.#running.size;
      if (free <= 0) {
        await Promise.race([stopped, ...this.#finished()]);
        continue;
      }
      const start = performance.now();
      const limit = AbortSignal.timeout(pollMs);
      const asked = await this.#api.take(
        free,
        this.#running.size > 0,
        AbortSignal.any([signal, limit]),
      );
      // A request that was held open to its end is not a failure.
      const isIdle = asked.kind === "nothing" || limit.aborted;
      if (asked.kind === "ok") {
        trouble.over();
        for (const fault of asked.value.faults) this.#log(`the host sent ${fault}`);
        for (const job of asked.value.jobs) this.#begin(job);
        if (asked.value.jobs.length > 0) continue;
      } else if (!isIdle && !signal.aborted) {
        await pause(trouble.wait(asked), signal);
        continue;
      }
      trouble.over();
      await pause(idleMs - (performance.now() - start), signal);
    }
  }

  async #stopLoop(): Promise<void> {
    const { signal } = this.#over;
    const { idleMs, pollMs } = this.#timing;
    const trouble = new Trouble(
      this.#timing,
      "cannot ask which jobs to stop",
      (line) => this.#log(line),
    );
    while (!signal.aborted) {
      const start = performance.now();
      const limit = AbortSignal.timeout(pollMs);
      const asked = await this.#api.stops(AbortSignal.any([signal, limit]));
      if (asked.kind === "ok") {
        trouble.over();
        for (const id of asked.value) this.#running.get(id)?.abort.abort(new Ended("host"));
      } else if (asked.kind !== "nothing" && !limit.aborted && !signal.aborted) {
        await pause(trouble.wait(asked), signal);
        continue;
      }
      await pause(idleMs - (performance.now() - start), signal);
    }
  }

  async #pingLoop(): Promise<void> {
    const { signal } = this.#over;
    const { pingIntervalMs } = this.#options.settings;
    let isLost = false;
    while (!signal.aborted) {
      const start = performance.now();
      const limit = AbortSignal.timeout(2 * pingIntervalMs);
      const asked = await this.#api.ping(
        [...this.#running.keys()],
        AbortSignal.any([signal, limit]),
      );
      const isFailure = asked.kind === "later" || asked.kind === "refused";
      if (isFailure !== isLost && !signal.aborted) {
        isLost = isFailure;
        this.#log(isFailure ? `heartbeat failed: ${asked.why}` : "heartbeat works again");
      }
      await pause(pingIntervalMs - (performance.now() - start), signal);
    }
  }

  /** Lets running jobs end, gives back what is left, and waits until all results are sent. */
  async #drain(): Promise<void> {
    if (this.#running.size > 0) this.#log(`stopping; ${this.#running.size} jobs get to end`);
    const ended = new AbortController();
    const finished = Promise.all(this.#finished()).then(() => ended.abort());
    await pause(this.#options.graceMs ?? 7000, ended.signal);
    for (const { abort } of this.#running.values()) abort.abort(new Ended("worker"));
    await pause(FAREWELL_MS, ended.signal);
    this.#farewell.abort();
    await finished;
  }

  #finished(): Promise<void>[] {
    return [...this.#running.values()].map(({ finished }) => finished);
  }

  #begin(job: Job): void {
    if (this.#running.has(job.id)) {
      this.#log(`job ${job.id} came twice; it runs already`);
      return;
    }
    this.#report.taken++;
    const abort = new AbortController();
    const finished = this.#run(job, abort.signal).finally(() => this.#running.delete(job.id));
    this.#running.set(job.id, { abort, finished });
  }

  /** Answers a job. It never rejects. */
  async #run(job: Job, signal: AbortSignal): Promise<void> {
    const start = performance.now();
    let outcome: Outcome;
    try {
      outcome = await this.#answer(job, signal);
      signal.throwIfAborted();
    } catch (error) {
      const why = signal.aborted ? signal.reason : error;
      if (why instanceof Ended && why.by === "host") {
        // The host has written the job off; an answer would be one too many.
        this.#report.cancelled++;
        this.#log(`job ${job.id} was stopped by the host`);
        return;
      }
      outcome = { failure: failureFrom(why) };
    }
    const isReturned = signal.aborted;
    if (isReturned) this.#report.returned++;
    else if ("failure" in outcome) this.#report.failed++;
    else this.#report.completed++;
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    const how = isReturned ? "given back" : "failure" in outcome ? "failed" : "answered";
    this.#log(`job ${job.id} ${how} after ${seconds} s`);
    await this.#send(job.id, outcome);
  }

  async #answer(job: Job, signal: AbortSignal): Promise<Outcome> {
    const request = jobRequest(job.input);
    const response = await this.#ask(request, signal);
    const isStream = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
    const shape = answerShape(request.form, isStream);
    const parts = new Parts(this.#api, job.id, this.#options.settings, this.#timing, signal);
    if (response.ok && isStream && response.body !== null) {
      let failure: JobFailure | undefined;
      for await (const event of response.body.pipeThrough(sseEvents(), { signal })) {
        failure ??= failureOf(event);
        if (failure === undefined) parts.add(event, shape.part);
      }
      await parts.end(shape.part);
      if (failure !== undefined) return { failure };
      return { output: shape.all(parts.made), hasParts: shape.hasParts };
    }
    const text = await response.text();
    const answer = parseJson(text);
    if (!response.ok) {
      const failure = failureIn(answer) ??
        { code: response.status, message: text.slice(0, 500), type: "server_error" };
      return { failure };
    }
    if (answer === undefined) {
      return {
        failure: { code: 500, message: "the server sent no JSON", type: "server_error" },
      };
    }
    const output = shape.whole(answer);
    if (shape.hasParts) {
      parts.give((output as unknown[])[0]);
      await parts.end(shape.part);
    }
    return { output, hasParts: shape.hasParts };
  }

  /** Asks the server; a full one is asked again. */
  async #ask(request: JobRequest, signal: AbortSignal): Promise<Response> {
    const { apiKey, fetch } = this.#options;
    const headers = new Headers();
    if (request.body !== undefined) headers.set("content-type", "application/json");
    if (apiKey !== undefined) headers.set("authorization", `Bearer ${apiKey}`);
    for (let attempt = 1;; attempt++) {
      const response = await fetch(
        new Request(`http://worker${request.path}`, {
          method: request.method,
          headers,
          body: request.body === undefined ? null : JSON.stringify(request.body),
          signal,
        }),
      );
      const wait = retryAfterMs(response.headers.get("retry-after"), Date.now());
      if (response.status !== 503 || wait === undefined || attempt >= SERVER_ATTEMPTS) {
        return response;
      }
      await response.body?.cancel();
      await pause(Math.min(wait, this.#timing.maxRetryMs), signal);
      signal.throwIfAborted();
    }
  }

  async #send(jobId: string, outcome: Outcome): Promise<void> {
    let result = "failure" in outcome
      ? { error: JSON.stringify(outcome.failure) }
      : { output: outcome.output };
    const hasParts = "hasParts" in outcome && outcome.hasParts;
    const { attempts } = this.#timing;
    const trouble = new Trouble(
      this.#timing,
      `cannot send the result of job ${jobId}`,
      (line) => this.#log(line),
    );
    const { signal } = this.#farewell;
    for (let attempt = 1; attempt <= attempts && !signal.aborted; attempt++) {
      const asked = await this.#api.done(jobId, result, hasParts, signal);
      if (asked.kind === "ok" || asked.kind === "nothing") return;
      if (asked.kind === "refused" && asked.status === 413 && "output" in result) {
        result = {
          error: JSON.stringify(
            {
              code: 413,
              message: "the answer is larger than the host takes; ask for fewer tokens",
              type: "answer_too_large",
            } satisfies JobFailure,
          ),
        };
        continue;
      }
      const wait = trouble.wait(asked);
      if (asked.kind === "refused") break;
      await pause(wait, signal);
    }
    this.#report.undelivered++;
    this.#log(`the result of job ${jobId} was not delivered`);
  }

  #log(line: string): void {
    this.#options.log?.(`runpod queue: ${line}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function failureFrom(error: unknown): JobFailure {
  if (error instanceof JobInputError) {
    return { code: 400, message: error.message, type: "invalid_request_error" };
  }
  if (error instanceof Ended) {
    return {
      code: 503,
      message: "the worker had to stop before the answer was complete; the job can be sent again",
      type: "worker_stopped",
    };
  }
  return {
    code: 500,
    message: error instanceof Error ? error.message : String(error),
    type: "server_error",
  };
}
