import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * A request of Node's as the web has it.
 *
 * @param incoming Node's request.
 * @param signal Aborted when its client has gone.
 */
export function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    try {
      headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
    } catch {
      // A malformed header says nothing.
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

/** How long to read the rest of a body that was refused, so that its sender sees the answer, in milliseconds. */
const LINGER_MS = 5000;

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

/**
 * Sends an answer by Node's means, and reads what is left of the request.
 *
 * @param response The answer.
 * @param incoming Node's request.
 * @param outgoing Node's answer.
 * @param gone Aborted when the client has gone.
 */
export async function send(
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
