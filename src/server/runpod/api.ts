import { retryAfterMs } from "./backoff.ts";
import type { Job } from "./job.ts";
import type { RunpodSettings } from "./settings.ts";

/** The version of Runpod's own worker library whose messages these are; the host asks for it in heartbeats. */
export const RUNPOD_PROTOCOL = "1.12.0";

/** What came of asking the host for something. */
export type Asked<T> =
  /** It answered. */
  | { readonly kind: "ok"; readonly value: T }
  /** It has nothing at the moment. */
  | { readonly kind: "nothing" }
  /** Not now: too many requests, an error of its own, no connection. Asking again may help. */
  | { readonly kind: "later"; readonly why: string; readonly retryAfterMs: number | undefined }
  /** It refuses, and would again. */
  | { readonly kind: "refused"; readonly why: string; readonly status: number };

/** Jobs as they were taken. */
export interface Taken {
  readonly jobs: readonly Job[];
  /** What was wrong with others. */
  readonly faults: readonly string[];
}

/** The host's side of the queue. Nothing here throws for what the host does, and nothing tries twice. */
export class RunpodApi {
  readonly #settings: RunpodSettings;

  /** @param settings Where it is. */
  constructor(settings: RunpodSettings) {
    this.#settings = settings;
  }

  /**
   * Asks for jobs; the host may hold the request open until there is one.
   *
   * @param count How many at most.
   * @param isBusy Whether jobs are running here.
   * @param signal Gives up.
   */
  async take(count: number, isBusy: boolean, signal: AbortSignal): Promise<Asked<Taken>> {
    const { takeUrl } = this.#settings;
    const isBatch = count > 1 && takeUrl.includes("/job-take/");
    const url = withQuery(
      isBatch ? takeUrl.replace("/job-take/", "/job-take-batch/") : takeUrl,
      [...(isBatch ? [`batch_size=${count}`] : []), `job_in_progress=${isBusy ? 1 : 0}`],
    );
    const asked = await this.#ask(url, { signal });
    // 400 is what a worker gets that the host is about to put to sleep.
    if (asked.kind === "refused" && asked.status === 400) return { kind: "nothing" };
    if (asked.kind !== "ok") return asked;
    const value = json(asked.value);
    if (value === undefined) {
      return { kind: "later", why: "it sent no JSON", retryAfterMs: undefined };
    }
    return { kind: "ok", value: readJobs(value) };
  }

  /**
   * Asks which running jobs to stop; the host may hold the request open until there is one.
   *
   * @param signal Gives up.
   */
  async stops(signal: AbortSignal): Promise<Asked<readonly string[]>> {
    const asked = await this.#ask(this.#settings.stopUrl!, { signal });
    if (asked.kind !== "ok") return asked;
    const value = json(asked.value);
    const ids = typeof value === "object" && value !== null && "jobsToStop" in value
      ? value.jobsToStop
      : [];
    return {
      kind: "ok",
      value: Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : [],
    };
  }

  /**
   * Sends a part of an answer.
   *
   * @param jobId The job.
   * @param output The part.
   * @param signal Gives up.
   */
  part(jobId: string, output: unknown, signal: AbortSignal): Promise<Asked<string>> {
    const url = withQuery(this.#settings.streamUrl(jobId)!, ["isStream=false"]);
    return this.#post(url, jobId, { output }, signal);
  }

  /**
   * Sends a job's result.
   *
   * @param jobId The job.
   * @param result Its output or error.
   * @param hasParts Whether the output is a list of parts.
   * @param signal Gives up.
   */
  done(
    jobId: string,
    result: Record<string, unknown>,
    hasParts: boolean,
    signal: AbortSignal,
  ): Promise<Asked<string>> {
    const url = withQuery(this.#settings.doneUrl(jobId), [`isStream=${hasParts}`]);
    return this.#post(url, jobId, result, signal);
  }

  /**
   * Says that this worker lives.
   *
   * @param jobIds The jobs it runs.
   * @param signal Gives up.
   */
  ping(jobIds: readonly string[], signal: AbortSignal): Promise<Asked<string>> {
    const ids = encodeURIComponent(jobIds.join(","));
    const query = [...(jobIds.length > 0 ? [`job_id=${ids}`] : []), VERSION];
    return this.#ask(withQuery(this.#settings.pingUrl!, query), { signal });
  }

  /**
   * Says that this worker cannot work.
   *
   * @param check What failed, in a word.
   * @param reason Why.
   * @param signal Gives up.
   */
  unhealthy(check: string, reason: string, signal: AbortSignal): Promise<Asked<string>> {
    const query = [
      "status=unhealthy",
      `check=${encodeURIComponent(check)}`,
      `reason=${encodeURIComponent([...reason].slice(0, 256).join(""))}`,
      VERSION,
    ];
    return this.#ask(withQuery(this.#settings.pingUrl!, query), { signal });
  }

  #post(
    url: string,
    jobId: string,
    body: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<Asked<string>> {
    return this.#ask(url, {
      method: "POST",
      // JSON under this type is what the host expects.
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        charset: "utf-8",
        "x-request-id": encodeURIComponent(jobId),
      },
      body: JSON.stringify(body),
      signal,
    });
  }

  async #ask(url: string, init: RequestInit): Promise<Asked<string>> {
    const headers = new Headers(init.headers);
    if (this.#settings.apiKey !== "") headers.set("authorization", this.#settings.apiKey);
    try {
      const response = await fetch(url, { ...init, headers });
      const text = await response.text();
      const { status } = response;
      if (status === 204) return { kind: "nothing" };
      if (response.ok) return { kind: "ok", value: text };
      if (status === 408 || status === 425 || status === 429 || status >= 500) {
        const wait = retryAfterMs(response.headers.get("retry-after"), Date.now());
        return { kind: "later", why: `status ${status}`, retryAfterMs: wait };
      }
      return { kind: "refused", why: `status ${status}`, status };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return { kind: "later", why, retryAfterMs: undefined };
    }
  }
}

const VERSION = `runpod_version=${RUNPOD_PROTOCOL}`;

function withQuery(url: string, query: readonly string[]): string {
  return `${url}${url.includes("?") ? "&" : "?"}${query.join("&")}`;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One job, or a list of them. */
function readJobs(value: unknown): Taken {
  const jobs: Job[] = [];
  const faults: string[] = [];
  for (const item of Array.isArray(value) ? value : [value]) {
    const id = typeof item === "object" && item !== null && "id" in item ? item.id : undefined;
    if (typeof id !== "string" || id === "") faults.push("a job without an id");
    else jobs.push({ id, input: item.input });
  }
  return { jobs, faults };
}
