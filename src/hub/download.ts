import { diskError } from "./disk_error.ts";
import { backoffMs, pause, reason, Retryable } from "./http.ts";
import { HubError } from "./hub_error.ts";
import type { PartFile, Range } from "./part_file.ts";
import { Address, type RemoteFile } from "./remote_file.ts";
import type { HubSettings } from "./settings.ts";

/** Least and most bytes of one request. */
const MIN_PIECE = 1 << 20;
const MAX_PIECE = 32 << 20;
/** Failures in a row, with no byte between them, after which fetching ends. */
const MAX_FAILURES = 6;
/** How long a connection may be silent, in milliseconds. */
const SILENCE_MS = 30_000;
/** How often what is there is written down, in milliseconds. */
const SAVE_MS = 1000;

/** The server sends the whole file, whatever part is asked for. */
class WholeOnly extends Error {}

/**
 * Fetches what is missing of a file, in parts and over several connections. Broken connections are made again, for as
 * long as bytes arrive between them. What was fetched is kept whatever happens.
 *
 * @param file The file.
 * @param part Where it goes.
 * @param settings Connections, signal.
 * @param onBytes Told how many bytes are there.
 * @throws {HubError} If the network stays down, the disk is full, or the file has changed.
 */
export async function download(
  file: RemoteFile,
  part: PartFile,
  settings: HubSettings,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, ...settings.signal ? [settings.signal] : []]);
  const saving = setInterval(() => part.save().catch((error) => stop.abort(error)), SAVE_MS);
  const job = new Job(file, part, settings, signal, onBytes);
  try {
    try {
      await job.parts(stop);
    } catch (error) {
      if (!(error instanceof WholeOnly)) throw error;
      await job.whole(settings.signal);
    }
  } finally {
    clearInterval(saving);
    await part.save();
  }
}

/** One file that is being fetched. */
class Job {
  readonly #file: RemoteFile;
  readonly #part: PartFile;
  readonly #settings: HubSettings;
  readonly #signal: AbortSignal;
  readonly #onBytes: (bytes: number) => void;
  readonly #address: Address;

  constructor(
    file: RemoteFile,
    part: PartFile,
    settings: HubSettings,
    signal: AbortSignal,
    onBytes: (bytes: number) => void,
  ) {
    this.#file = file;
    this.#part = part;
    this.#settings = settings;
    this.#signal = signal;
    this.#onBytes = onBytes;
    this.#address = new Address(file, settings);
  }

  /** Fetches the missing parts; the first answer shows whether the server sends parts at all. */
  async parts(stop: AbortController): Promise<void> {
    const { connections } = this.#settings;
    const piece = Math.ceil(this.#file.size / connections / 4);
    const queue = this.#part.missing(Math.min(Math.max(piece, MIN_PIECE), MAX_PIECE));
    this.#onBytes(this.#part.bytes);
    let opened = () => {};
    const first = new Promise<void>((resolve) => opened = resolve);
    const worker = async (index: number): Promise<void> => {
      if (index > 0) await first;
      try {
        for (let range = queue.shift(); range; range = queue.shift()) {
          this.#signal.throwIfAborted();
          await this.#piece(range, opened);
        }
      } catch (error) {
        stop.abort(error); // the others have no reason to go on
        throw this.#signal.reason;
      } finally {
        opened();
      }
    };
    const workers = Array.from(
      { length: Math.min(connections, queue.length) },
      (_, i) => worker(i),
    );
    const failed = (await Promise.allSettled(workers)).find(({ status }) => status === "rejected");
    if (failed !== undefined) throw this.#signal.reason;
    this.#signal.throwIfAborted();
  }

  /** Fetches one range, again and again from where it broke off. */
  async #piece([start, end]: Range, onOpen: () => void): Promise<void> {
    let at = start;
    let failures = 0;
    while (at < end) {
      try {
        await this.#request([at, end], this.#signal, (response) => {
          if (response.status === 200 && (at > 0 || end < this.#file.size)) throw new WholeOnly();
          onOpen();
        }, (from, to) => {
          this.#part.mark(from, to);
          failures = 0;
          at = to;
        });
      } catch (error) {
        await this.#afterFailure(error, failures++, this.#signal);
      }
    }
  }

  /** Fetches the whole file, from its beginning each time that it breaks off. */
  async whole(signal: AbortSignal | undefined): Promise<void> {
    const { size } = this.#file;
    await this.#part.discard();
    let farthest = 0;
    let failures = 0;
    for (let at = 0; at < size;) {
      at = 0;
      await this.#part.discard();
      try {
        await this.#request([0, size], signal, () => {}, (from, to) => {
          this.#part.mark(from, to);
          at = to;
          if (at > farthest) failures = 0;
          farthest = Math.max(farthest, at);
        });
      } catch (error) {
        await this.#afterFailure(error, failures++, signal);
      }
    }
  }

  /** Waits before a further attempt, or ends it after too many without a byte between them. */
  async #afterFailure(
    error: unknown,
    failures: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    signal?.throwIfAborted();
    if (!(error instanceof Retryable)) throw error;
    if (failures >= MAX_FAILURES) {
      throw new HubError(
        "network",
        `${error.error.message}; what was fetched is kept, and the next time goes on from there`,
        { cause: error.error },
      );
    }
    await pause(error.afterMs ?? backoffMs(failures, this.#settings), signal);
  }

  /** One request, whose bytes go to their place in the file. */
  async #request(
    [start, end]: Range,
    outer: AbortSignal | undefined,
    onAnswer: (response: Response) => void,
    onWritten: (from: number, to: number) => void,
  ): Promise<void> {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), SILENCE_MS);
    const awake = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENCE_MS);
    };
    const { name } = this.#file.about;
    try {
      const signal = AbortSignal.any([silent.signal, ...outer ? [outer] : []]);
      const response = await this.#address.fetch(start, end, signal);
      try {
        onAnswer(response);
      } catch (error) {
        await response.body?.cancel();
        throw error;
      }
      using file = await this.#open(start);
      let at = start;
      for await (const chunk of response.body ?? []) {
        awake();
        const bytes = chunk.subarray(0, end - at);
        await this.#write(file, bytes);
        onWritten(at, at + bytes.length);
        at += bytes.length;
        this.#onBytes(this.#part.bytes);
        if (at === end) break;
      }
      if (at < end) throw new Error(`${end - at} bytes are missing`);
    } catch (error) {
      outer?.throwIfAborted();
      const isOurs = [HubError, Retryable, WholeOnly].some((one) => error instanceof one);
      if (isOurs) throw error;
      const why = silent.signal.aborted ? `silence for ${SILENCE_MS / 1000} s` : reason(error);
      throw new Retryable(
        new HubError("network", `${name}: the connection broke: ${why}`, { cause: error }),
      );
    } finally {
      clearTimeout(timer);
    }
  }

  async #open(at: number): Promise<Deno.FsFile> {
    const { path } = this.#part;
    try {
      const file = await Deno.open(path, { create: true, write: true });
      await file.seek(at, Deno.SeekMode.Start);
      return file;
    } catch (error) {
      throw diskError(path, error);
    }
  }

  async #write(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
    try {
      while (bytes.length > 0) bytes = bytes.subarray(await file.write(bytes));
    } catch (error) {
      throw diskError(this.#part.path, error);
    }
  }
}
