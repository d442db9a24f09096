import { HubError } from "./hub_error.ts";
import type { HubSettings } from "./settings.ts";

/** Redirects in a row. */
const MAX_REDIRECTS = 10;
/** How long a server may take to answer, in milliseconds. */
const ANSWER_MS = 30_000;
/** Times to ask again a server that is busy or failing. */
const RETRIES = 4;

/** An answer, and what the hub said on the way to it. */
export interface Followed {
  /** The answer; its status is not looked at. */
  response: Response;
  /** Where it came from. */
  url: URL;
  /** Headers of the hub's own answers, which redirect to where the bytes are. */
  hub: Headers;
}

/** A fault that may be gone the next time: the network's, or a server's that is busy. */
export class Retryable extends Error {
  /**
   * @param error What to throw when it does not go away.
   * @param afterMs When to try again, if the server says so.
   */
  constructor(readonly error: HubError, readonly afterMs?: number) {
    super(error.message);
  }
}

/**
 * Fetches, and follows redirects. The token goes to the endpoint alone: not to other hosts that it redirects to, and not
 * to links that its answers hold.
 *
 * @param url Where.
 * @param init Headers and so on; an `Authorization` in it is treated as the token.
 * @param settings Endpoint and token.
 * @throws {Retryable} If the server cannot be reached.
 * @throws {HubError} If Deno may not reach it, or it redirects for ever.
 */
export async function follow(
  url: URL,
  init: RequestInit,
  settings: HubSettings,
): Promise<Followed> {
  const home = new URL(settings.endpoint).origin;
  const hub = new Headers();
  for (let i = 0; i <= MAX_REDIRECTS; i++) {
    const headers = new Headers(init.headers);
    headers.delete("authorization");
    if (url.origin === home && settings.token !== undefined) {
      headers.set("authorization", `Bearer ${settings.token}`);
    }
    const response = await answer(url, { ...init, headers, redirect: "manual" }, settings);
    if (url.origin === home) {
      for (const [name, value] of response.headers) if (/^x-/.test(name)) hub.set(name, value);
    }
    const location = response.headers.get("location");
    if (response.status < 300 || response.status > 399 || location === null) {
      return { response, url, hub };
    }
    await response.body?.cancel();
    const next = URL.canParse(location, url) ? new URL(location, url) : undefined;
    if (next === undefined || !/^https?:$/.test(next.protocol)) {
      throw new HubError("network", `${shown(url)} redirects to ${JSON.stringify(location)}`);
    }
    if (url.protocol === "https:" && next.protocol === "http:") {
      throw new HubError(
        "network",
        `${shown(url)} redirects to ${shown(next)}, which is not encrypted`,
      );
    }
    url = next;
  }
  throw new HubError("network", `${shown(url)} redirects more than ${MAX_REDIRECTS} times`);
}

async function answer(url: URL, init: RequestInit, settings: HubSettings): Promise<Response> {
  const slow = new AbortController();
  const timer = setTimeout(() => slow.abort(), ANSWER_MS);
  const signals = [init.signal, settings.signal].filter((one) => one !== undefined && one !== null);
  try {
    return await fetch(url, { ...init, signal: AbortSignal.any([...signals, slow.signal]) });
  } catch (error) {
    for (const signal of signals) signal.throwIfAborted();
    if (error instanceof Deno.errors.NotCapable) {
      throw new HubError(
        "permission",
        `Deno may not reach ${url.host}; run it with --allow-net, or --allow-net=${url.host} and the hosts that it redirects to`,
        { cause: error },
      );
    }
    const why = slow.signal.aborted ? `no answer in ${ANSWER_MS / 1000} s` : reason(error);
    throw new Retryable(
      new HubError("network", `cannot reach ${url.host}: ${why}`, { cause: error }),
    );
  } finally {
    clearTimeout(timer);
  }
}

/** What a network error says, without the request around it. */
export function reason(error: unknown): string {
  let text = error instanceof Error ? error.message : String(error);
  while (error instanceof Error && error.cause instanceof Error) {
    error = error.cause;
    text = (error as Error).message;
  }
  return text.replace(/^.*?error sending request for url \([^)]*\):?\s*/s, "")
    .replace(/^.*?: (?=[^:]*\(os error)/s, "").replace(/ \(os error \d+\)/, "") || "it failed";
}

/** A URL for messages: without its query, where signatures are. */
export function shown(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

/**
 * Does something again while the network or a busy server is in its way, a few times and ever more slowly.
 *
 * @param settings The signal that ends it.
 * @param attempt What to do.
 * @throws {HubError} When it stays so.
 */
export async function retrying<T>(settings: HubSettings, attempt: () => Promise<T>): Promise<T> {
  for (let i = 0;; i++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Retryable)) throw error;
      if (i >= RETRIES) throw error.error;
      await pause(error.afterMs ?? backoffMs(i, settings), settings.signal);
    }
  }
}

/** How long to wait before a further attempt, the first being 0, in milliseconds. */
export function backoffMs(attempt: number, { retryMs }: HubSettings): number {
  return retryMs * Math.min(2 ** attempt, 32) * (0.75 + Math.random() / 2);
}

/** Waits; rejects when the signal fires. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** What was asked for, for messages. */
export interface AskedFor {
  /** The model, as it was named. */
  name: string;
  /** Its repository, if it is on the hub. */
  repo?: string;
  /** The revision. */
  revision?: string;
  /** The file. */
  file?: string;
}

/**
 * Turns an answer that is no success into an error that says what helps.
 *
 * @param followed The answer; its body is read or cancelled.
 * @param about The model.
 * @param settings The token, and where it is from.
 * @returns The error; {@linkcode Retryable} where trying again may help.
 */
export async function refusal(
  { response, url, hub }: Followed,
  about: AskedFor,
  settings: HubSettings,
): Promise<HubError | Retryable> {
  const { status } = response;
  const code = response.headers.get("x-error-code") ?? hub.get("x-error-code") ?? "";
  const said = response.headers.get("x-error-message") ?? await bodyMessage(response);
  await response.body?.cancel().catch(() => {});
  const text = said === "" ? "" : ` (${said})`;
  if (status === 408 || status === 429 || status >= 500) {
    const error = new HubError(
      "network",
      `${about.name}: ${url.host} answers ${status}${text}` +
        (status === 429 && settings.token === undefined
          ? "; with a token (HF_TOKEN) more requests are allowed"
          : "; try again later"),
    );
    return new Retryable(error, retryAfterMs(response));
  }
  const onHub = url.origin === new URL(settings.endpoint).origin && about.repo !== undefined;
  if (!onHub) {
    const kind = status === 404 || status === 410
      ? "not_found"
      : status === 401 || status === 403
      ? "denied"
      : "network";
    return new HubError(kind, `${about.name}: ${shown(url)} answers ${status}${text}`);
  }
  return hubRefusal(status, code, text, about, settings);
}

function hubRefusal(
  status: number,
  code: string,
  text: string,
  { name, repo, revision, file }: AskedFor,
  { endpoint, token, tokenFrom }: HubSettings,
): HubError {
  const page = `${endpoint}/${repo}`;
  const tokens = `${endpoint}/settings/tokens`;
  const give = `a token from ${tokens} in HF_TOKEN (or by "hf auth login")`;
  if (code === "GatedRepo" || /gated|restricted/i.test(text)) {
    return new HubError(
      "denied",
      token === undefined
        ? `${name}: its authors ask who uses it: accept their terms at ${page}, and give ${give}`
        : `${name}: the token (${tokenFrom}) has no access to this gated repository: accept its terms at ${page} with the token's account; ` +
          "a fine-grained token must also allow reading gated repositories",
    );
  }
  if (code === "RevisionNotFound") {
    return new HubError(
      "not_found",
      `${name}: ${repo} has no revision ${
        JSON.stringify(revision ?? "main")
      }; ${page} shows its branches and tags`,
    );
  }
  if (code === "EntryNotFound" || (status === 404 && file !== undefined && code === "")) {
    return new HubError(
      "not_found",
      `${name}: ${repo} has no file ${JSON.stringify(file ?? "")}; ${page}/tree/${
        revision ?? "main"
      } shows its files`,
    );
  }
  if (status === 401 && token !== undefined && code !== "RepoNotFound") {
    return new HubError(
      "denied",
      `${name}: the hub does not accept the token (${tokenFrom})${text}; ${tokens} shows which are valid`,
    );
  }
  if (status === 401 || status === 403 || status === 404) {
    const isThere = token === undefined
      ? `there is no public repository ${repo}; if it is private, give ${give}`
      : `there is no repository ${repo}, or the token (${tokenFrom}) has no access to it`;
    return new HubError(status === 404 ? "not_found" : "denied", `${name}: ${isThere}`);
  }
  return new HubError("network", `${name}: the hub answers ${status}${text}`);
}

/** The message in a JSON body of an error, if there is one. */
async function bodyMessage(response: Response): Promise<string> {
  if (!/^application\/json/.test(response.headers.get("content-type") ?? "")) return "";
  try {
    const { error, message } = await response.json();
    return [error, message].find((one) => typeof one === "string") ?? "";
  } catch {
    return "";
  }
}

/** The longest that a server may make us wait, in milliseconds. */
const MAX_WAIT_MS = 60_000;

function retryAfterMs(response: Response): number | undefined {
  const seconds = Number(response.headers.get("retry-after") ?? NaN);
  return Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds * 1000, MAX_WAIT_MS)
    : undefined;
}
