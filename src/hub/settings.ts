import { environment } from "../environment.ts";
import { HubError } from "./hub_error.ts";
import { HUB } from "./model_name.ts";

/** How models are found and fetched. What is not given is read from the hub's usual variables and files. */
export interface HubOptions {
  /** Address of the hub or of a mirror. Default: `HF_ENDPOINT`, else `https://huggingface.co`. */
  endpoint?: string | undefined;
  /**
   * Access token. Default: `HF_TOKEN`, else the file that `hf auth login` writes; `""`: none.
   * It is sent to the endpoint alone.
   */
  token?: string | undefined;
  /** The cache that all programs of the hub share. Default: `HF_HUB_CACHE`, `HF_HOME/hub`, `~/.cache/huggingface/hub`. */
  cacheDir?: string | undefined;
  /** Use what is in the cache, and no network. Default: whether `HF_HUB_OFFLINE` or `LLAMA_ARG_OFFLINE` is set. */
  offline?: boolean | undefined;
  /** Stops it; what was fetched stays, and the next time goes on from there. */
  signal?: AbortSignal | undefined;
  /** Told how far it is, often. */
  onProgress?: ((progress: HubProgress) => void) | undefined;
  /** Told what a user may want to know, one line each. */
  onNote?: ((line: string) => void) | undefined;
  /** Connections that fetch one file, 1 to 32. Default 8. */
  connections?: number | undefined;
  /** How long to wait before trying again, the first time, in milliseconds; each further time twice as long. Default 250. */
  retryMs?: number | undefined;
}

/** How far the fetching of a model is. */
export interface HubProgress {
  /** What is done: bytes are fetched, or checked, or another process fetches them. */
  doing: "fetching" | "checking" | "waiting";
  /** The file, by the last part of its name. */
  file: string;
  /** Number of the file, from 1. */
  number: number;
  /** Files of the model. */
  count: number;
  /** Bytes of the file that are there. */
  bytes: number;
  /** Bytes of the file. */
  size: number;
}

/** {@linkcode HubOptions}, all decided. */
export interface HubSettings {
  /** Without a slash at its end. */
  endpoint: string;
  token: string | undefined;
  /** Where the token is from, for messages. */
  tokenFrom: string;
  cacheDir: string;
  /** Where models from other servers are kept. */
  urlDir: string;
  offline: boolean;
  signal: AbortSignal | undefined;
  onProgress: (progress: HubProgress) => void;
  onNote: (line: string) => void;
  connections: number;
  retryMs: number;
}

/** Connections that fetch one file. */
const CONNECTIONS = 8;
/** Milliseconds before the first retry. */
const RETRY_MS = 250;

/**
 * Decides the options: what is given, else variables of the environment, else files.
 *
 * @param options What is given.
 * @throws {TypeError | RangeError} If one is wrong.
 * @throws {HubError} If it cannot be told where the cache is.
 */
export function hubSettings(options: HubOptions = {}): HubSettings {
  const { connections = CONNECTIONS, retryMs = RETRY_MS } = options;
  if (!Number.isInteger(connections) || connections < 1 || connections > 32) {
    throw new RangeError(`connections must be a whole number from 1 to 32, not ${connections}`);
  }
  if (!(retryMs >= 0 && retryMs <= 60_000)) {
    throw new RangeError(`retryMs must be from 0 to 60000 milliseconds, not ${retryMs}`);
  }
  const { token, from } = options.token !== undefined
    ? { token: options.token, from: "the token that was given" }
    : findToken();
  if (token !== undefined && token !== "" && !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError(`${from} has characters that no token has`);
  }
  return {
    endpoint: endpointOf(
      options.endpoint ?? environment("MODEL_ENDPOINT") ?? environment("HF_ENDPOINT") ?? HUB,
    ),
    token: token || undefined,
    tokenFrom: from,
    cacheDir: options.cacheDir ?? cacheDir(),
    urlDir: options.cacheDir === undefined ? `${cacheHome()}/rys-edge/models` : options.cacheDir,
    offline: options.offline ??
      (isSet("HF_HUB_OFFLINE") || isSet("LLAMA_ARG_OFFLINE")),
    signal: options.signal,
    onProgress: options.onProgress ?? (() => {}),
    onNote: options.onNote ?? (() => {}),
    connections,
    retryMs,
  };
}

function endpointOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `HF_ENDPOINT must be a URL such as https://huggingface.co, not ${JSON.stringify(text)}`,
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

function isSet(name: string): boolean {
  return /^(?:1|on|true|yes|enabled)$/i.test(environment(name) ?? "");
}

/** The cache's place, by the rules of the hub's own programs and llama.cpp. */
function cacheDir(): string {
  const given = environment("LLAMA_CACHE") ?? environment("HF_HUB_CACHE") ??
    environment("HUGGINGFACE_HUB_CACHE");
  return given ?? `${hubHome()}/hub`;
}

function hubHome(): string {
  return environment("HF_HOME") ?? `${cacheHome()}/huggingface`;
}

function cacheHome(): string {
  const given = environment("XDG_CACHE_HOME");
  if (given !== undefined) return given;
  const variable = Deno.build.os === "windows" ? "USERPROFILE" : "HOME";
  // Asks where Deno asks; the other variables count as not set where they may not be read.
  const { state } = Deno.permissions.requestSync({ name: "env", variable });
  const home = state === "granted" ? Deno.env.get(variable) : undefined;
  if (!home) {
    throw new HubError(
      "permission",
      `it cannot be told where models are kept: ${variable} is not set or may not be read; run Deno with --allow-env, or set HF_HUB_CACHE`,
    );
  }
  return `${home}/.cache`;
}

function findToken(): { token: string | undefined; from: string } {
  for (const name of ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]) {
    const token = environment(name)?.trim();
    if (token) return { token, from: name };
  }
  const given = environment("HF_TOKEN_PATH");
  const path = given ?? `${hubHome()}/token`;
  try {
    const token = Deno.readTextFileSync(path).trim();
    if (token !== "") return { token, from: path };
  } catch (error) {
    // Where no file is named, there need not be one.
    if (given !== undefined) {
      throw new HubError(
        "permission",
        `HF_TOKEN_PATH=${path} cannot be read: ${error instanceof Error ? error.message : error}`,
      );
    }
  }
  return { token: undefined, from: "" };
}
