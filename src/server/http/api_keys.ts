import { createHash, timingSafeEqual } from "node:crypto";

/** Checks keys of requests; takes equally long whatever is wrong with one. */
export class ApiKeys {
  readonly #digests: Uint8Array[];

  /** @param keys The keys that are let in; none: everybody is. */
  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digest);
  }

  /** Whether keys are asked for. */
  get required(): boolean {
    return this.#digests.length > 0;
  }

  /**
   * Whether a request may pass.
   *
   * @param headers Its headers: `Authorization`, with or without `Bearer`, else `X-Api-Key`.
   */
  allow(headers: Headers): boolean {
    if (!this.required) return true;
    const given = headers.get("authorization") || headers.get("x-api-key") || "";
    const key = digest(given.replace(/^Bearer +/i, "").trim());
    let found = false;
    for (const known of this.#digests) {
      // No early end: the time tells nothing of which key was near.
      if (timingSafeEqual(known, key)) found = true;
    }
    return found;
  }
}

/** Digests are of one length, and like only where the keys are. */
function digest(key: string): Uint8Array {
  return createHash("sha256").update(key).digest();
}
