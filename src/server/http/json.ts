/**
 * An answer of JSON.
 *
 * @param value What to send.
 * @param status HTTP status.
 * @param headers Further headers.
 */
export function json(
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): Response {
  return Response.json(value, { status, headers });
}
