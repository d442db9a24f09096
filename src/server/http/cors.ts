import { ApiError } from "./api_error.ts";

/** Which web pages may use the server. */
export class Cors {
  readonly #any: boolean;
  readonly #origins: ReadonlySet<string>;

  /** @param cors Origins, `"localhost"` for those of this machine; true: all; false: none but the server's own. */
  constructor(cors: boolean | readonly string[]) {
    this.#any = cors === true || (Array.isArray(cors) && cors.includes("*"));
    this.#origins = new Set(typeof cors === "boolean" ? [] : cors);
  }

  /**
   * Headers that an answer carries.
   *
   * @param request The request.
   * @returns The headers; empty where the request is of no other origin.
   * @throws {ApiError} If the request comes from a page that may not use the server.
   */
  check(request: Request): Record<string, string> {
    const origin = request.headers.get("origin");
    if (origin === null || this.#isOwn(request, origin)) return {};
    if (!this.#any && !this.#origins.has(origin) && !this.#isLocal(origin)) {
      throw new ApiError(
        403,
        "Pages of this origin may not use the server; its --cors-origin (option cors) names those that may",
      );
    }
    return { "access-control-allow-origin": origin, "vary": "origin" };
  }

  /**
   * The answer to a browser that asks before its request.
   *
   * @param request The question.
   * @param headers What {@linkcode Cors.check} gave.
   */
  preflight(request: Request, headers: Record<string, string>): Response {
    return new Response(null, {
      status: 204,
      headers: {
        ...headers,
        "allow": "GET, HEAD, POST, OPTIONS",
        "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
        "access-control-allow-headers": request.headers.get("access-control-request-headers") ??
          "authorization, content-type, x-api-key",
        "access-control-max-age": "600",
      },
    });
  }

  /** Whether pages of this machine are let in, and it is one. */
  #isLocal(origin: string): boolean {
    return this.#origins.has("localhost") &&
      /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(origin);
  }

  #isOwn(request: Request, origin: string): boolean {
    const host = request.headers.get("host") ?? new URL(request.url).host;
    return origin === `http://${host}` || origin === `https://${host}`;
  }
}
