import type { ByteSource } from "../gguf/byte_source.ts";
import {
  type AskedFor,
  follow,
  type Followed,
  reason,
  refusal,
  Retryable,
  retrying,
  shown,
} from "./http.ts";
import { HubError } from "./hub_error.ts";
import { type FileHash, fileHash } from "./repository.ts";
import { type HubOptions, type HubSettings, hubSettings } from "./settings.ts";

/** A file that is elsewhere. */
export interface RemoteFile {
  /** Its name, the last part of its path. */
  name: string;
  /** Where it is; for the hub, the address that redirects to the bytes, at one commit. */
  url: URL;
  /** Bytes. */
  size: number;
  /** What its bytes must hash to, if the server says so. */
  hash: FileHash | undefined;
  /** What the server tells its versions apart by. */
  etag: string | undefined;
  /** For messages about it. */
  about: AskedFor;
}

/** What a server says of a file. */
export interface Probe {
  /** Bytes in all. */
  size: number;
  /** What it tells versions apart by; undefined if it says nothing. */
  etag: string | undefined;
  /** The hash, if the server gives one. */
  hash: FileHash | undefined;
  /** Whether it sends parts of the file. */
  hasRanges: boolean;
}

/**
 * Asks a server for a file's size and version, by reading its first byte.
 *
 * @param url Where.
 * @param about For messages.
 * @param settings Endpoint, token.
 * @throws {HubError} If there is no such file or the server does not say how long it is.
 */
export function probeFile(url: URL, about: AskedFor, settings: HubSettings): Promise<Probe> {
  return retrying(settings, async () => {
    const followed = await follow(url, { headers: rangeHeaders(0, 1) }, settings);
    const { response, hub } = followed;
    if (response.status === 416) {
      throw new HubError("not_found", `${about.name}: the file at ${shown(url)} is empty`);
    }
    if (!response.ok) throw await refusal(followed, about, settings);
    await response.body?.cancel();
    const linked = hub.get("x-linked-etag");
    const range = contentRange(response);
    const length = response.status === 206
      ? range?.size
      : Number(response.headers.get("content-length") ?? NaN);
    const size = Number(hub.get("x-linked-size") ?? length ?? NaN);
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new HubError(
        "network",
        `${about.name}: ${shown(followed.url)} does not say how long it is`,
      );
    }
    const etag = linked ?? response.headers.get("etag") ?? undefined;
    return {
      size,
      etag: etag?.replace(/^W\//, ""),
      hash: fileHash(linked),
      hasRanges: response.status === 206,
    };
  });
}

/** The headers that ask for bytes from `start` to before `end`, as they are and not compressed. */
export function rangeHeaders(start: number, end: number): Record<string, string> {
  return { "range": `bytes=${start}-${end - 1}`, "accept-encoding": "identity" };
}

/** What part of which size an answer says it is; undefined if it says nothing that can be read. */
export function contentRange(
  response: Response,
): { start: number; end: number; size: number | undefined } | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "");
  if (!match) return undefined;
  return {
    start: Number(match[1]),
    end: Number(match[2]) + 1,
    size: match[3] === "*" ? undefined : Number(match[3]),
  };
}

/**
 * Finds out where the bytes of a file are, and keeps the address while it is valid: the hub redirects to one that is
 * signed and expires.
 */
export class Address {
  #direct: { url: URL; etag: string | null } | undefined;

  /**
   * @param file The file.
   * @param settings Endpoint, token.
   */
  constructor(readonly file: RemoteFile, readonly settings: HubSettings) {}

  /**
   * Asks for a part of the file.
   *
   * @param start First byte.
   * @param end Byte after the last.
   * @param signal Ends it.
   * @returns The answer, with status 200 (all of the file) or 206 (the part).
   * @throws {Retryable} If the network or the server fails.
   * @throws {HubError} If it is refused, or the file is another by now.
   */
  fetch(start: number, end: number, signal?: AbortSignal): Promise<Response> {
    return this.#ask(this.#direct, start, end, signal);
  }

  async #ask(
    known: { url: URL; etag: string | null } | undefined,
    start: number,
    end: number,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const { file, settings } = this;
    const init = { headers: rangeHeaders(start, end), ...signal ? { signal } : {} };
    const followed = await follow(known?.url ?? file.url, init, settings);
    const { response, url } = followed;
    if (!response.ok) {
      if (known !== undefined && response.status < 500 && response.status !== 429) {
        // The signature has expired, or the file has moved: the hub says where it is now.
        await response.body?.cancel();
        if (this.#direct === known) this.#direct = undefined;
        return await this.#ask(undefined, start, end, signal);
      }
      if (response.status === 416) {
        await response.body?.cancel();
        throw this.#changed(`it has no bytes ${start} to ${end - 1}`);
      }
      throw await refusal(followed, file.about, settings);
    }
    try {
      this.#check(followed, start, known?.etag);
    } catch (error) {
      await response.body?.cancel();
      this.#direct = undefined;
      throw error;
    }
    this.#direct ??= { url, etag: response.headers.get("etag") };
    return response;
  }

  /** Refuses an answer from another version of the file. */
  #check({ response, hub }: Followed, start: number, etag: string | null | undefined): void {
    const { file } = this;
    const linked = fileHash(hub.get("x-linked-etag"));
    if (linked !== undefined && file.hash !== undefined && linked.hex !== file.hash.hex) {
      throw this.#changed("the hub has another hash for it");
    }
    const now = response.headers.get("etag");
    const before = file.hash === undefined ? file.etag : etag;
    const bare = (tag: string) => tag.replace(/^W\//, "");
    if (before && now !== null && bare(now) !== bare(before) && linked === undefined) {
      throw this.#changed(`its etag was ${before} and is ${now}`);
    }
    if (response.status === 200) {
      const length = response.headers.get("content-length");
      if (length !== null && Number(length) !== file.size) {
        throw this.#changed(`it has ${length} bytes, not ${file.size}`);
      }
      return;
    }
    const range = contentRange(response);
    if (response.status !== 206 || range === undefined || range.start !== start) {
      throw new Retryable(
        new HubError(
          "network",
          `${file.about.name}: asked for bytes from ${start} on, the server sends status ${response.status} and content-range ${
            response.headers.get("content-range") ?? "(none)"
          }`,
        ),
      );
    }
    if (range.size !== undefined && range.size !== file.size) {
      throw this.#changed(`it has ${range.size} bytes, not ${file.size}`);
    }
  }

  #changed(how: string): HubError {
    return new HubError(
      "changed",
      `${this.file.about.name}: ${this.file.name} has changed on the server: ${how}; try again`,
    );
  }
}

/**
 * Opens a remote file for reading parts of it, as `readHeader()` does: a few MB of a file of many GB. Reads follow the
 * hub's redirects, use its token, ask again when a signed address has expired, and fail if the file has changed.
 *
 * @param file What `resolveModel()` gave.
 * @param options Token, signal.
 * @returns Its bytes, each read being one request; nothing needs to be closed.
 *
 * @example
 * ```ts ignore
 * import { openRemote, readHeader, resolveModel } from "@rys/edge";
 *
 * const model = await resolveModel("hf:Qwen/Qwen3-0.6B-GGUF:Q8_0");
 * const source = model.kind === "remote" ? openRemote(model.files[0]!) : model.paths[0]!;
 * console.log((await readHeader(source)).architecture);
 * ```
 */
export function openRemote(file: RemoteFile, options: HubOptions = {}): ByteSource {
  const settings = hubSettings(options);
  const address = new Address(file, settings);
  return {
    size: file.size,
    name: file.about.name,
    read: (offset, length) =>
      retrying(settings, async () => {
        const end = Math.min(offset + length, file.size);
        if (end <= offset) return new Uint8Array();
        const response = await address.fetch(offset, end);
        if (response.status === 200 && offset > 0) {
          await response.body?.cancel();
          throw new HubError(
            "network",
            `${file.about.name}: the server cannot send parts of a file, so its header cannot be read before all of it is fetched`,
          );
        }
        return await take(response, end - offset, file);
      }),
  };
}

/** The first bytes of a body. */
async function take(response: Response, length: number, file: RemoteFile): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let at = 0;
  try {
    for await (const part of response.body ?? []) {
      const piece = part.subarray(0, length - at);
      bytes.set(piece, at);
      at += piece.length;
      if (at === length) break; // cancels what else the server sends
    }
  } catch (error) {
    throw new Retryable(
      new HubError("network", `${file.about.name}: the connection broke: ${reason(error)}`),
    );
  }
  if (at < length) {
    throw new Retryable(
      new HubError("network", `${file.about.name}: the server sent ${at} bytes of ${length}`),
    );
  }
  return bytes;
}
