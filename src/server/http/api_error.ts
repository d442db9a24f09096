import { EngineError } from "../../engine/mod.ts";

/** llama-server's names of errors, by status. */
const TYPES: Record<number, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  405: "not_supported_error",
  408: "timeout_error",
  413: "invalid_request_error",
  414: "invalid_request_error",
  415: "invalid_request_error",
  431: "invalid_request_error",
  500: "server_error",
  501: "not_supported_error",
  503: "unavailable_error",
  504: "timeout_error",
};

/** An error that is an answer. */
export class ApiError extends Error {
  override name = "ApiError";

  /**
   * @param status HTTP status.
   * @param message What was wrong, and what would be right; shown to the client.
   * @param more Further fields of the error object, and headers of the answer.
   */
  constructor(
    readonly status: number,
    message: string,
    readonly more: { fields?: Record<string, unknown>; headers?: Record<string, string> } = {},
  ) {
    super(message);
  }

  /** The error object in llama-server's form. */
  toJson(): Record<string, unknown> {
    return {
      code: this.status,
      message: this.message,
      type: TYPES[this.status] ?? "server_error",
      ...this.more.fields,
    };
  }
}

/** The client is gone: nobody reads the answer. */
export class ClientGone extends Error {
  override name = "ClientGone";
}

/** 503: to be tried again. */
export function unavailable(message: string, seconds: number): ApiError {
  return new ApiError(503, message, { headers: { "retry-after": String(Math.ceil(seconds)) } });
}

/**
 * What a client is told of an error: what an {@linkcode ApiError} says, and of anything else nothing of the inside.
 *
 * @param error What was thrown.
 */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof EngineError) {
    if (error.fatal) {
      return new ApiError(
        500,
        "The engine ended while it ran this request; the model is being loaded again",
      );
    }
    const { status = 500, type, details } = error;
    const fields = { ...details, ...type === undefined ? {} : { type } };
    return new ApiError(status, withoutPlaces(error.message), { fields });
  }
  return new ApiError(500, "The request failed inside the server");
}

/**
 * A message without places of source code and files of the host.
 *
 * @param message As the engine says it.
 */
export function withoutPlaces(message: string): string {
  return message
    .replaceAll(/\bfile:\/\/\S+/g, "(file)")
    .replaceAll(
      /(?<![\w.:/#-])(?:\/|\.{1,2}\/|[A-Za-z]:\\)[\w.@+~-]+(?:[/\\][\w.@+~-]+)+(?::\d+(?::\d+)?)?/g,
      "(file)",
    )
    .replaceAll(/\b[\w-]+\.(?:cpp|hpp|cc|c|h|ts|js|mjs|wasm):\d+(?::\d+)?/g, "(file)");
}
