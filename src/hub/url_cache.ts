import { absent } from "./cache.ts";
import { isInside } from "./model_name.ts";
import type { HubSettings } from "./settings.ts";

/** What is kept of a file that was fetched from a URL. */
export interface UrlFacts {
  /** Where it is from. */
  url: string;
  /** Its version there; "" if the server does not say. */
  etag: string;
  /** Bytes. */
  size: number;
  /** SHA-256 of what was fetched, in hexadecimal digits. */
  sha256: string;
}

/** The name of the file with {@linkcode UrlFacts} beside each fetched one. */
export const FACTS = ".rys-file.json";

/** A model from a URL that is in the cache. */
export interface UrlModel {
  /** Its files on this machine, in order. */
  paths: string[];
  /** What is known of each. */
  facts: UrlFacts[];
}

/**
 * Where the file of a URL is kept: in a folder of the model's, so that shards stand side by side.
 *
 * @param urls The model's files.
 * @param index Which.
 * @param settings Where the cache is.
 */
export async function urlPath(
  urls: readonly URL[],
  index: number,
  settings: HubSettings,
): Promise<string> {
  const first = urls[0]!;
  const bytes = new TextEncoder().encode(first.href);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const id = [...digest.subarray(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const last = lastPart(urls[index]!);
  const name = isInside(last) && !last.includes("/") ? last : "model.gguf";
  const host = first.host.replaceAll(/[^\w.-]/g, "_");
  return `${settings.urlDir}/${host}/${id}/${name}`;
}

/** The last part of a URL's path, as text. */
export function lastPart(url: URL): string {
  const part = url.pathname.replace(/^.*\//, "");
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Finds the files of URLs in the cache.
 *
 * @param urls The model's files.
 * @param settings Where the cache is.
 * @returns undefined if they are not all there.
 */
export async function findUrlModel(
  urls: readonly URL[],
  settings: HubSettings,
): Promise<UrlModel | undefined> {
  const paths: string[] = [];
  const facts: UrlFacts[] = [];
  for (const index of urls.keys()) {
    const path = await urlPath(urls, index, settings);
    const fact = await readFacts(path);
    const size = (await Deno.stat(path).catch(absent))?.size;
    if (fact === undefined || size !== fact.size || fact.url !== urls[index]!.href) {
      return undefined;
    }
    paths.push(path);
    facts.push(fact);
  }
  return { paths, facts };
}

/** What is known of a fetched file; undefined if there is no such file or it is damaged. */
export async function readFacts(path: string): Promise<UrlFacts | undefined> {
  const text = await Deno.readTextFile(path + FACTS).catch(absent);
  if (text === undefined) return undefined;
  try {
    const { url, etag, size, sha256 } = JSON.parse(text);
    const isSound = [url, etag, sha256].every((one) => typeof one === "string") &&
      Number.isSafeInteger(size);
    return isSound ? { url, etag, size, sha256 } : undefined;
  } catch {
    return undefined;
  }
}
