import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { ApiError } from "./http/api_error.ts";
import { bindable, listenError } from "./http/bindable.ts";
import { hostGuard } from "./http/host_guard.ts";
import { send, toRequest } from "./http/node_http.ts";
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
