import type { ByteSource } from "./byte_source.ts";
import { GgufError } from "./gguf_error.ts";

/** Bytes of a block: what one request asks for at least. */
const BLOCK_BYTES = 1 << 20;
/** Blocks that are kept. */
const MAX_BLOCKS = 8;
/** Largest file that is taken whole from a server that ignores ranges. */
const MAX_WHOLE_BYTES = 8 << 20;
/** Requests for the same bytes. */
const ATTEMPTS = 4;
/** How long a server may be silent, in milliseconds. */
const PATIENCE_MS = 30_000;
/** The longest pause between two attempts that a server may ask for, in milliseconds. */
const MAX_PAUSE_MS = 10_000;
/** Answers after which another attempt makes sense. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Options for {@linkcode openUrl}. */
export interface OpenUrlOptions {
  /** The name for messages. Default: the URL without user, query and fragment, which may hold secrets. */
  name?: string | undefined;
  /** Headers of each request, such as `authorization`; `fetch` sends that to no other host. */
  headers?: HeadersInit | undefined;
  /** Stops reading; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** The pause before a second attempt, in milliseconds; each further one is twice as long. Default 250. */
  pauseMs?: number | undefined;
}

/** A file on a server, of which parts are read. */
export interface UrlSource extends ByteSource {
  /** The name for messages. */
  readonly name: string;
  /** The server's mark for this version of the file, if it has one. */
  readonly etag: string | undefined;
  /** Bytes received so far. */
  readonly received: number;
  /** Reads exactly `length` bytes from `offset`. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** An attempt failed in a way that another may not. */
class Passing {
  constructor(readonly problem: string, readonly waitMs = 0, readonly cause?: unknown) {}
}

/**
 * Opens a file on a server, to read parts of it. Nothing but those parts is fetched, in blocks of a mebibyte or more.
 *
 * @param url The file, `http:` or `https:`.
 * @param options Headers, a signal, a name for messages.
 * @returns The file as a source for {@linkcode readHeader}.
 * @throws {GgufError} If the server does not answer, refuses, or does not serve parts of files; later also if the file
 * changes while it is read.
 *
 * @example
 * ```ts
 * import { openUrl } from "@rys/edge/gguf";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () =>
 *   new Response("GG", { status: 206, headers: { "content-range": "bytes 0-1/2" } }));
 * const source = await openUrl(`http://127.0.0.1:${server.addr.port}/model.gguf`);
 * assertEquals([source.size, await source.read(0, 2)], [2, new Uint8Array([71, 71])]);
 * ```
 */
export async function openUrl(url: string | URL, options: OpenUrlOptions = {}): Promise<UrlSource> {
  const address = new URL(url);
  if (!/^https?:$/.test(address.protocol)) {
    throw new TypeError(`Cannot read ${address.protocol}//...: the URL must be http: or https:`);
  }
  const name = options.name ?? `${address.protocol}//${address.host}${address.pathname}`;
  address.hash = "";
  const file = new RemoteFile(address, name, options);
  await file.open();
  return file;
}

class RemoteFile implements UrlSource {
  size = 0;
  etag: string | undefined;
  received = 0;
  /** By number; the one used last comes last. */
  readonly #blocks = new Map<number, Uint8Array<ArrayBuffer>>();
  /** The file, where the server sent all of it. */
  #whole: Uint8Array<ArrayBuffer> | undefined;

  constructor(readonly url: URL, readonly name: string, readonly options: OpenUrlOptions) {}

  /** Reads the first block, and with it learns the file's size. */
  async open(): Promise<void> {
    const bytes = await this.#fetch(0, BLOCK_BYTES, true);
    if (this.#whole === undefined) this.#keep(0, bytes);
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const end = offset + length;
    if (!Number.isSafeInteger(offset) || !(length >= 0) || offset < 0 || end > this.size) {
      throw new GgufError(`bytes ${offset} to ${end} are not in the file`, {
        file: this.name,
        offset,
        limit: this.size,
      });
    }
    if (this.#whole !== undefined) return this.#whole.slice(offset, end);
    const bytes = new Uint8Array(length);
    const last = Math.ceil(end / BLOCK_BYTES);
    for (let block = Math.floor(offset / BLOCK_BYTES); block < last;) {
      const start = block * BLOCK_BYTES;
      const kept = this.#blocks.get(block);
      let part = kept;
      if (part === undefined) {
        // All that are missing in a row, by one request.
        let next = block + 1;
        while (next < last && !this.#blocks.has(next)) next++;
        part = await this.#fetch(start, Math.min(next * BLOCK_BYTES, this.size));
        for (let i = block; i < next; i++) {
          const at = i * BLOCK_BYTES - start;
          this.#keep(i, next - block === 1 ? part : part.slice(at, at + BLOCK_BYTES));
        }
        block = next;
      } else {
        this.#keep(block++, part);
      }
      const from = Math.max(offset, start);
      bytes.set(
        part.subarray(from - start, Math.min(end, start + part.length) - start),
        from - offset,
      );
    }
    return bytes;
  }

  #keep(block: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#blocks.delete(block);
    this.#blocks.set(block, bytes);
    if (this.#blocks.size > MAX_BLOCKS) this.#blocks.delete(this.#blocks.keys().next().value!);
  }

  #fail(problem: string, offset: number, cause?: unknown): never {
    throw new GgufError(problem, { file: this.name, offset, cause });
  }

  /** Fetches bytes `start` to `end`, with further attempts where that may help. */
  async #fetch(start: number, end: number, isFirst = false): Promise<Uint8Array<ArrayBuffer>> {
    const { signal, pauseMs = 250 } = this.options;
    for (let attempt = 1;; attempt++) {
      signal?.throwIfAborted();
      try {
        return await this.#attempt(start, end, isFirst);
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof Passing)) throw error;
        if (attempt === ATTEMPTS) {
          this.#fail(`${error.problem}, ${ATTEMPTS} times in a row`, start, error.cause);
        }
        const wait = Math.max(error.waitMs, pauseMs * 2 ** (attempt - 1));
        await new Promise<void>((resolve) => {
          const done = () => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", done);
            resolve();
          };
          const timer = setTimeout(done, Math.min(wait, MAX_PAUSE_MS));
          signal?.addEventListener("abort", done);
        });
      }
    }
  }

  async #attempt(start: number, end: number, isFirst: boolean): Promise<Uint8Array<ArrayBuffer>> {
    const { fetch = globalThis.fetch, signal } = this.options;
    const stop = new AbortController();
    const abort = () => stop.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    let timer = setTimeout(() => stop.abort(), PATIENCE_MS);
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), PATIENCE_MS);
    };
    let response: Response | undefined;
    try {
      const headers = new Headers(this.options.headers);
      headers.set("range", `bytes=${start}-${end - 1}`);
      headers.set("accept-encoding", "identity"); // else the range would be one of compressed bytes
      response = await fetch(this.url, { headers, signal: stop.signal });
      alive();
      return await this.#receive(response, start, end, isFirst, alive);
    } catch (error) {
      if (error instanceof GgufError || error instanceof Passing) throw error;
      if (error instanceof Error && /NotCapable|PermissionDenied/.test(error.name)) {
        this.#fail(`Deno may not connect to ${this.url.host} (--allow-net)`, start, error);
      }
      if (stop.signal.aborted) {
        throw new Passing(`the server was silent for ${PATIENCE_MS / 1000} s`, 0, error);
      }
      const why = error instanceof Error ? error.message : String(error);
      throw new Passing(`the connection failed: ${this.#clean(why)}`, 0, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      // What is not read is not wanted.
      if (response?.body && !response.bodyUsed) await response.body.cancel().catch(() => {});
    }
  }

  /** A message without the URL's query, which may hold a secret. */
  #clean(message: string): string {
    return message.replaceAll(this.url.href, this.name);
  }

  async #receive(
    response: Response,
    start: number,
    end: number,
    isFirst: boolean,
    alive: () => void,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { status } = response;
    const range = response.headers.get("content-range") ?? "";
    if (PASSING.has(status)) {
      const seconds = Number(response.headers.get("retry-after") ?? 0);
      throw new Passing(
        `the server answers ${said(response)}`,
        Number.isFinite(seconds) ? 1000 * seconds : 0,
      );
    }
    if (status === 416 && isFirst && /^bytes \*\/0$/.test(range)) {
      return this.#whole = new Uint8Array(0);
    }
    if (status === 200) return await this.#takeWhole(response, start, isFirst, alive);
    if (status !== 206) this.#fail(`the server answers ${said(response)}${advice(status)}`, start);
    const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(range);
    if (!match || Number(match[1]) !== start) {
      this.#fail(
        `the server answers with ${
          range === "" ? "a part that it does not name" : JSON.stringify(range)
        }, not with bytes from ${start}`,
        start,
      );
    }
    if (match[3] === "*") this.#fail("the server does not say how large the file is", start);
    const size = Number(match[3]);
    if (!Number.isSafeInteger(size)) this.#fail(`its size is ${match[3]} bytes`, start);
    this.#sameFile(response, size, start, isFirst);
    const length = Math.min(end, size) - start;
    if (Number(match[2]) - start + 1 !== length) {
      throw new Passing(`the server sent ${JSON.stringify(range)} for ${length} bytes at ${start}`);
    }
    return await this.#body(response, length, start, alive);
  }

  /** The size and the mark of the first answer hold for all. */
  #sameFile(response: Response, size: number, start: number, isFirst: boolean): void {
    const etag = response.headers.get("etag") ?? undefined;
    if (isFirst) {
      this.size = size;
      this.etag = etag;
    } else if (size !== this.size) {
      this.#fail(`it changed while it was read: ${size} bytes, ${this.size} before`, start);
    } else if (etag !== this.etag) {
      this.#fail(`it changed while it was read: ETag ${etag}, ${this.etag} before`, start);
    }
  }

  /** A server that ignores the range sends the whole file: fine if that is small. */
  async #takeWhole(
    response: Response,
    start: number,
    isFirst: boolean,
    alive: () => void,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const text = response.headers.get("content-length");
    if (/^text\/html\b/i.test(response.headers.get("content-type") ?? "")) {
      this.#fail("the server answers with an HTML page, not a model", start);
    }
    if (!isFirst) this.#fail("the server no longer sends parts of the file", start);
    if (text === null || !(Number(text) <= MAX_WHOLE_BYTES)) {
      const all = text === null ? "" : ` of ${text} bytes`;
      this.#fail(
        `the server sends the whole file${all} where a part was asked for; download it and name the file`,
        start,
      );
    }
    this.#sameFile(response, Number(text), start, isFirst);
    return this.#whole = await this.#body(response, Number(text), start, alive);
  }

  /** Takes exactly `length` bytes, whatever the server sends. */
  async #body(
    response: Response,
    length: number,
    start: number,
    alive: () => void,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(length);
    let done = 0;
    for await (const chunk of response.body ?? []) {
      alive();
      this.received += chunk.length;
      if (done + chunk.length > length) {
        this.#fail(`the server sent more than the ${length} bytes it announced`, start + length);
      }
      bytes.set(chunk, done);
      done += chunk.length;
    }
    if (done < length) {
      throw new Passing(`the connection ended after ${done} of ${length} bytes`);
    }
    return bytes;
  }
}

function said({ status, statusText }: Response): string {
  return statusText === "" ? String(status) : `${status} ${statusText}`;
}

function advice(status: number): string {
  if (status === 401 || status === 403) return ": it wants a token, or the address has expired";
  if (status === 404 || status === 410) return ": there is no such file";
  return "";
}
