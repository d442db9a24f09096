// The host's side of a Runpod queue on the loopback, as far as a worker sees it: job-take and job-take-batch (long
// polls), job-stop, job-done, job-stream, ping. It notes what a worker does against the rules in `violations`.

/** A job and what became of it. */
export interface JobRecord {
  id: string;
  input: unknown;
  status: "IN_QUEUE" | "IN_PROGRESS" | "COMPLETED" | "FAILED" | "CANCELLED";
  /** Outputs of the parts, in their order. */
  parts: unknown[];
  /** What the worker sent at the end. */
  result?: { output?: unknown; error?: string };
  /** `isStream` of the end. */
  hasParts?: boolean;
  /** How often it was handed out. */
  handedOut: number;
}

/** A heartbeat. */
export interface Ping {
  at: number;
  jobIds: string[];
  query: URLSearchParams;
}

/** Something that goes wrong on the host's side, once. */
export interface Fault {
  route: "job-take" | "job-stop" | "job-done" | "job-stream" | "ping";
  status: number;
  headers?: Record<string, string>;
}

const WORKER = "worker-1";
const KEY = "rp-key-of-the-worker";
const FORM = "application/x-www-form-urlencoded";

/** The host. */
export class ControlPlane implements AsyncDisposable {
  readonly jobs = new Map<string, JobRecord>();
  readonly pings: Ping[] = [];
  /** Requests for jobs: how many were asked for, and whether the worker called itself busy. */
  readonly takes: { at: number; count: number; isBusy: boolean }[] = [];
  readonly violations: string[] = [];
  /** Answered in place of the real thing, in their order. */
  readonly faults: Fault[] = [];
  /** Called when the worker has sent something. */
  #changed = Promise.withResolvers<void>();
  #stops: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #holdMs: number;
  readonly #close = new AbortController();

  /**
   * @param holdMs How long a request for jobs is held open.
   * @param port Where it listens; 0 takes a free port.
   */
  constructor(holdMs = 1000, port = 0) {
    this.#holdMs = holdMs;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port, onListen() {} },
      (request, info) => this.#answer(request, info),
    );
  }

  /** Where it listens. */
  get port(): number {
    return this.#server.addr.port;
  }

  /** The environment that the host gives to its worker. */
  get env(): Record<string, string> {
    const base = `http://127.0.0.1:${this.port}/v2/endpoint-1`;
    return {
      RUNPOD_POD_ID: WORKER,
      RUNPOD_AI_API_KEY: KEY,
      RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?gpu=NVIDIA%20A40`,
      RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID?gpu=NVIDIA%20A40`,
      RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID?gpu=NVIDIA%20A40`,
      RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID?gpu=NVIDIA%20A40`,
      RUNPOD_PING_INTERVAL: "200",
    };
  }

  /** A caller sends a job. */
  submit(input: unknown, id = `${crypto.randomUUID()}-u1`): string {
    this.jobs.set(id, { id, input, status: "IN_QUEUE", parts: [], handedOut: 0 });
    this.#notify();
    return id;
  }

  /** A caller cancels a job. */
  cancel(id: string): void {
    const job = this.jobs.get(id)!;
    if (job.status === "IN_PROGRESS") this.#stops.push(id);
    job.status = "CANCELLED";
    this.#notify();
  }

  /** Waits until something is so. */
  async until<T>(what: string, get: () => T | undefined | false, ms = 300_000): Promise<T> {
    const end = Date.now() + ms;
    for (;;) {
      const value = get();
      if (value !== undefined && value !== false) return value;
      if (Date.now() > end) {
        throw new Error(
          `not within ${ms} ms: ${what}; jobs: ${JSON.stringify([...this.jobs.values()])}`,
        );
      }
      await this.#change(100);
    }
  }

  /** Waits for a job's end. */
  ended(id: string): Promise<JobRecord> {
    return this.until(`the end of job ${id}`, () => {
      const job = this.jobs.get(id)!;
      return (job.status === "COMPLETED" || job.status === "FAILED") && job;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close.abort();
    this.#notify();
    await this.#server.shutdown();
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  async #change(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([
      this.#changed.promise,
      new Promise<void>((resolve) => timer = setTimeout(resolve, ms)),
    ]);
    clearTimeout(timer);
  }

  #wrong(what: string): Response {
    this.violations.push(what);
    return new Response(what, { status: 400 });
  }

  async #answer(request: Request, info: Deno.ServeHandlerInfo): Promise<Response> {
    const url = new URL(request.url);
    const match =
      /^\/v2\/endpoint-1\/(job-take|job-take-batch|job-stop|job-done|job-stream|ping)\/([^/]+)(?:\/([^/]+))?$/
        .exec(url.pathname);
    if (match === null) return this.#wrong(`no such route: ${request.method} ${url.pathname}`);
    const [, route, worker, job] = match as unknown as [string, string, string, string | undefined];
    const where = `${request.method} ${url.pathname}${url.search}`;
    if (worker !== WORKER) return this.#wrong(`${where}: not the worker's name`);
    if (request.headers.get("authorization") !== KEY) return this.#wrong(`${where}: wrong key`);
    if (url.searchParams.get("gpu") !== "NVIDIA A40") {
      return this.#wrong(`${where}: the address's own query is lost`);
    }
    const isPost = route === "job-done" || route === "job-stream";
    if (request.method !== (isPost ? "POST" : "GET")) return this.#wrong(`${where}: wrong method`);
    const fault = this.faults.findIndex((one) => one.route === route.replace("-batch", ""));
    if (fault >= 0) {
      const [{ status, headers = {} }] = this.faults.splice(fault, 1) as [Fault];
      if (route.startsWith("job-take")) this.#noteTake(url);
      await request.body?.cancel();
      return new Response(status === 204 ? null : "fault", { status, headers });
    }
    if (route === "job-take" || route === "job-take-batch") {
      return await this.#take(request, url, route === "job-take-batch", info);
    }
    if (route === "job-stop") return await this.#stop(request);
    if (route === "ping") return this.#ping(url, where);
    return await this.#post(request, url, route, decodeURIComponent(job ?? ""), where);
  }

  #noteTake(url: URL): void {
    this.takes.push({
      at: Date.now(),
      count: Number(url.searchParams.get("batch_size") ?? 1),
      isBusy: url.searchParams.get("job_in_progress") === "1",
    });
  }

  async #take(
    request: Request,
    url: URL,
    isBatch: boolean,
    info: Deno.ServeHandlerInfo,
  ): Promise<Response> {
    const where = `GET ${url.pathname}${url.search}`;
    const size = url.searchParams.get("batch_size");
    if (isBatch !== (size !== null)) return this.#wrong(`${where}: batch_size is for batches`);
    if (size !== null && !/^([2-9]|\d{2,})$/.test(size)) {
      return this.#wrong(`${where}: batch_size must be from 2`);
    }
    if (!/^[01]$/.test(url.searchParams.get("job_in_progress") ?? "")) {
      return this.#wrong(`${where}: job_in_progress must be 0 or 1`);
    }
    this.#noteTake(url);
    const end = Date.now() + this.#holdMs;
    while (Date.now() < end && !request.signal.aborted && !this.#close.signal.aborted) {
      const jobs = [...this.jobs.values()].filter((job) => job.status === "IN_QUEUE")
        .slice(0, Number(size ?? 1));
      if (jobs.length > 0) {
        for (const job of jobs) {
          job.status = "IN_PROGRESS";
          job.handedOut++;
        }
        // Who went away while the answer was on its way has no job.
        info.completed.catch(() => {
          for (const job of jobs) if (job.status === "IN_PROGRESS") job.status = "IN_QUEUE";
          this.#notify();
        });
        const sent = jobs.map(({ id, input }) => ({ id, input, webhook: null, batchId: null }));
        return Response.json(isBatch ? sent : sent[0]);
      }
      await this.#change(50);
    }
    return new Response(null, { status: 204 });
  }

  async #stop(request: Request): Promise<Response> {
    const end = Date.now() + this.#holdMs;
    while (Date.now() < end && !request.signal.aborted && !this.#close.signal.aborted) {
      if (this.#stops.length > 0) {
        const jobsToStop = this.#stops;
        this.#stops = [];
        return Response.json({ jobsToStop });
      }
      await this.#change(50);
    }
    return new Response(null, { status: 204 });
  }

  #ping(url: URL, where: string): Response {
    const jobIds = (url.searchParams.get("job_id") ?? "").split(",").filter((id) => id !== "");
    const unknown = jobIds.find((id) => !this.jobs.has(id));
    if (unknown !== undefined) return this.#wrong(`${where}: unknown job ${unknown}`);
    if (!/^\d+\.\d+\.\d+/.test(url.searchParams.get("runpod_version") ?? "")) {
      return this.#wrong(`${where}: no runpod_version`);
    }
    this.pings.push({ at: Date.now(), jobIds, query: url.searchParams });
    this.#notify();
    return new Response("ok");
  }

  async #post(
    request: Request,
    url: URL,
    route: string,
    id: string,
    where: string,
  ): Promise<Response> {
    const text = await request.text();
    const job = this.jobs.get(id);
    if (job === undefined) return this.#wrong(`${where}: unknown job`);
    if (request.headers.get("content-type") !== FORM) return this.#wrong(`${where}: not ${FORM}`);
    if (request.headers.get("x-request-id") !== id) return this.#wrong(`${where}: no X-Request-ID`);
    const isStream = url.searchParams.get("isStream");
    if (isStream !== "true" && isStream !== "false") return this.#wrong(`${where}: no isStream`);
    let body: Record<string, unknown>;
    try {
      body = JSON.parse(text);
    } catch {
      return this.#wrong(`${where}: no JSON: ${text.slice(0, 100)}`);
    }
    // A part may cross the order to stop; a result must not come after it.
    if (job.status !== "IN_PROGRESS" && !(route === "job-stream" && job.status === "CANCELLED")) {
      return this.#wrong(`${where}: the job is ${job.status}`);
    }
    if (route === "job-stream") {
      if (!("output" in body)) return this.#wrong(`${where}: a part without output`);
      job.parts.push(body["output"]);
    } else {
      if ("error" in body === "output" in body) {
        return this.#wrong(`${where}: a result has an output or an error`);
      }
      if ("error" in body && typeof body["error"] !== "string") {
        return this.#wrong(`${where}: an error is text`);
      }
      job.result = body;
      job.hasParts = isStream === "true";
      job.status = "error" in body ? "FAILED" : "COMPLETED";
    }
    this.#notify();
    return new Response("ok");
  }
}
