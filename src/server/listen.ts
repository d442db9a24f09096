import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { lookup } from "node:dns/promises";
import { isIPv6 } from "node:net";
import { ApiError } from "./http/api_error.ts";
import { type ServeOptions, serverOptions } from "./options.ts";
import { createServer, type RysServer } from "./server.ts";

/** A server that listens. Made by {@linkcode serve}. */
export interface Serving extends AsyncDisposable {
  /** The server behind the socket. */
  readonly server: RysServer;
  /** Address that it listens on. */
  readonly hostname: string;
  /** Port that it listens on. */
  readonly port: number;
  /** Where a browser finds it. */
  readonly url: string;
  /**
   * Closes the server, see {@linkcode RysServer.close}, then the socket: until requests have ended or are stopped, further
   * ones are told so.
   */
  close(): Promise<void>;
}

/** Milliseconds that a request's line and headers may take; and a connection without a request. */
const HEADERS_MS = 10_000;
const KEEP_ALIVE_MS = 15_000;
/** How long the rest of a body is read that was refused, so that its sender sees the answer. */
const LINGER_MS = 5000;
/** Connections at once. */
const MAX_CONNECTIONS = 2048;
const MAX_HEADER_BYTES = 64 << 10;

/**
 * Listens for HTTP, and begins to load the model.
 *
 * @param options Where to listen, and the server's options.
 * @returns When it listens; the model loads meanwhile (`server.ready`).
 * @throws {Error} If it cannot listen there, e.g. as the port is taken or Deno does not let it.
 *
 * @example
 * ```ts
 * import { serve } from "@rys/edge/serve";
 * import { assertEquals } from "@std/assert";
 *
 * await using serving = await serve({ model: "models/demo.gguf", nCtx: 512, port: 0 });
 * await serving.server.ready;
 * const response = await fetch(`${serving.url}/v1/models`);
 * assertEquals((await response.json()).data[0].id, "demo");
 * ```
 */
export async function serve(options: ServeOptions): Promise<Serving> {
  const { host = "127.0.0.1", port = 8080, allowedHosts = [] } = options;
  const own = serverOptions(options);
  const guard = hostGuard(host, allowedHosts, (options.apiKeys ?? []).length > 0);
  const made: Made = { closing: false }; // a request may come before the server is made
  const http = createHttp({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: 0, // bodies are timed where they are read
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: 1000,
  }, (request, response) => void answer(made, guard, request, response));
  http.maxConnections = MAX_CONNECTIONS;
  http.on("clientError", (error: Error & { code?: string }, socket) => {
    if (!socket.writable) return void socket.destroy();
    const status = error.code === "ERR_HTTP_REQUEST_TIMEOUT"
      ? "408 Request Timeout"
      : error.code === "HPE_HEADER_OVERFLOW"
      ? "431 Request Header Fields Too Large"
      : "400 Bad Request";
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  });
  const bound = await bindable(host, port);
  await new Promise<void>((resolve, reject) => {
    http.once("error", (error) => reject(listenError(error, host, port)));
    http.listen({ host: bound, port, backlog: 512 }, () => resolve());
  });
  http.on("error", () => {}); // a connection that cannot be taken, e.g. as there are too many files, is its client's loss
  const server = made.server = createServer(own);
  const address = http.address() as { address: string; port: number };
  const shown = address.address === "0.0.0.0" || address.address === "::"
    ? "localhost"
    : address.address.includes(":")
    ? `[${address.address}]`
    : address.address;
  let closing: Promise<void> | undefined;
  const close = () =>
    closing ??= (async () => {
      made.closing = true;
      http.closeIdleConnections();
      await server.close();
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      http.closeAllConnections();
      await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 200))]);
    })();
  return {
    server,
    hostname: address.address,
    port: address.port,
    url: `http://${shown}:${address.port}`,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** What requests are handed to. */
interface Made {
  server?: RysServer;
  /** No connection is kept for another request. */
  closing: boolean;
}

/**
 * The address of a host, which Deno lets the program listen on. (Where it does not, listening would throw where nobody
 * catches it.)
 */
async function bindable(host: string, port: number): Promise<string> {
  const allow = async (name: string) => {
    const at = `${isIPv6(name) ? `[${name}]` : name}:${port}`;
    const { state } = await Deno.permissions.request({ name: "net", host: at });
    if (state === "granted") return;
    throw new Error(
      `Cannot listen on ${host}:${port}: Deno may not use the network; run it with --allow-net=${at}, or --allow-net`,
    );
  };
  if (/^[\d.]+$/.test(host) || isIPv6(host)) {
    await allow(host);
    return host;
  }
  await allow(host);
  const { address } = await lookup(host).catch((error) => {
    throw listenError(error, host, port);
  });
  await allow(address);
  return address;
}

function listenError(error: unknown, host: string, port: number): Error {
  const code = (error as { code?: string }).code;
  const why = code === "EADDRINUSE"
    ? "the port is taken; another one is chosen with --port N (0: any free one)"
    : code === "EACCES"
    ? "permission denied; ports below 1024 are often the administrator's"
    : ["EADDRNOTAVAIL", "ENOTFOUND", "EINVAL"].includes(code ?? "")
    ? "this machine has no such address"
    : (error as Error).message;
  return new Error(`Cannot listen on ${host}:${port}: ${why}`, { cause: error });
}

/**
 * Where a server of this machine alone asks for no key, a web page could reach it by a name of its own that leads here.
 *
 * @param host Address that is listened on.
 * @param allowed Further names.
 * @param hasKeys Whether a key is asked for.
 * @returns Checks a `Host` header.
 */
export function hostGuard(
  host: string,
  allowed: readonly string[],
  hasKeys: boolean,
): (header: string | undefined) => boolean {
  const isLoopback = /^(?:127\.\d+\.\d+\.\d+|::1|localhost)$/.test(host);
  if (!isLoopback || hasKeys) return () => true;
  const names = new Set(
    ["localhost", "127.0.0.1", "[::1]", host, ...allowed].map((name) => name.toLowerCase()),
  );
  return (header) => {
    if (header === undefined || header === "") return true; // no browser sends none
    const name = header.toLowerCase().replace(/:\d+$/, "");
    return names.has(name) || name.endsWith(".localhost");
  };
}

async function answer(
  made: Made,
  guard: (header: string | undefined) => boolean,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const { server } = made;
  const gone = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  incoming.on("error", () => gone.abort());
  outgoing.on("error", () => gone.abort());
  try {
    const response = /^(?:CONNECT|TRACE|TRACK)$/i.test(incoming.method ?? "")
      ? new Response(null, { status: 405, headers: { allow: "GET, HEAD, POST, OPTIONS" } })
      : !server
      ? new Response(null, { status: 503, headers: { "retry-after": "1" } })
      : guard(incoming.headers.host)
      ? await server.fetch(toRequest(incoming, gone.signal), {
        remoteAddr: incoming.socket.remoteAddress,
      })
      : Response.json({
        error: new ApiError(
          403,
          "This name is not the server's; its --allowed-host names further ones, and an --api-key lets all in",
        ).toJson(),
      }, { status: 403 });
    if (made.closing) response.headers.set("connection", "close");
    await send(response, incoming, outgoing, gone.signal);
  } catch {
    outgoing.destroy();
  }
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    try {
      headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
    } catch {
      // A header that is none says nothing.
    }
  }
  const method = incoming.method ?? "GET";
  const hasBody = method !== "GET" && method !== "HEAD" &&
    (headers.has("content-length") || headers.has("transfer-encoding"));
  return new Request(urlOf(incoming), {
    method,
    headers,
    signal,
    ...hasBody ? { body: bodyOf(incoming) } : {},
  });
}

/** What ends the reading of requests' bodies. */
const discards = new WeakMap<IncomingMessage, () => void>();

/** A request's body as a stream. (Deno 2.9's Readable.toWeb() throws out of an event where a body is cancelled.) */
function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isOpen = true;
  discards.set(incoming, () => isOpen = false);
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      incoming.pause();
      incoming.on("data", (chunk: Uint8Array<ArrayBuffer>) => {
        if (!isOpen) return;
        controller.enqueue(new Uint8Array(chunk));
        if ((controller.desiredSize ?? 0) <= 0) incoming.pause();
      });
      incoming.on("end", () => {
        if (!isOpen) return;
        isOpen = false;
        controller.close();
      });
      const cut = () => {
        if (!isOpen) return;
        isOpen = false;
        controller.error(new Error("the body was cut"));
      };
      incoming.on("error", cut);
      incoming.on("aborted", cut);
      incoming.on("close", cut);
    },
    pull() {
      incoming.resume();
    },
    cancel() {
      isOpen = false;
    },
  }, { highWaterMark: 4 });
}

/** Reads what is left of a request, and ends the connection where that takes long. */
function linger(incoming: IncomingMessage): void {
  if (incoming.complete) return;
  discards.get(incoming)?.(); // else a full stream would pause it again
  const timer = setTimeout(() => incoming.socket.destroy(), LINGER_MS);
  const done = () => clearTimeout(timer);
  incoming.once("end", done);
  incoming.once("close", done);
  incoming.resume();
}

function urlOf(incoming: IncomingMessage): string {
  const path = incoming.url ?? "/";
  try {
    return new URL(path.startsWith("/") ? `http://server${path}` : path).href;
  } catch {
    return "http://server/(bad)";
  }
}

async function send(
  response: Response,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  gone: AbortSignal,
): Promise<void> {
  outgoing.statusCode = response.status === 499 ? 400 : response.status;
  for (const [name, value] of response.headers) outgoing.setHeader(name, value);
  linger(incoming);
  const { body } = response;
  if (body === null) {
    outgoing.end();
    return;
  }
  if (incoming.method === "HEAD") {
    await body.cancel();
    outgoing.end();
    return;
  }
  const reader = body.getReader();
  const stop = () => void reader.cancel(gone.reason).catch(() => {});
  if (gone.aborted) return stop();
  gone.addEventListener("abort", stop, { once: true });
  outgoing.flushHeaders();
  for (;;) {
    const { value, done } = await reader.read();
    if (done || gone.aborted) break;
    if (!outgoing.write(value)) {
      await new Promise<void>((resolve) => {
        const go = () => {
          outgoing.off("drain", go);
          gone.removeEventListener("abort", go);
          resolve();
        };
        outgoing.once("drain", go);
        gone.addEventListener("abort", go, { once: true });
      });
    }
  }
  outgoing.end();
}
