import { type Context, EngineError } from "../../engine/mod.ts";
import type { CheckedBody } from "../checks/check_request.ts";
import { ClientGone } from "../http/api_error.ts";
import { errorEvent } from "../http/error_event.ts";
import { json } from "../http/json.ts";
import { Outgoing } from "../http/outgoing.ts";
import { eventMarker, markAnswer, type Ran } from "./answer.ts";
import type { Call, Streaming } from "./call.ts";
import { upstreamError } from "./upstream_error.ts";

/**
 * Hands a request to upstream, and its answer on as it comes.
 *
 * @param call The request.
 * @param context Where it runs.
 * @param body What upstream is given.
 * @param what What the answer says of the plan that ran.
 */
export async function relay(
  { active, counts, life, log, path, settings }: Call,
  context: Context,
  body: CheckedBody,
  what: Ran,
): Promise<Response | Streaming> {
  const { signal } = active;
  const head = Promise.withResolvers<number>();
  const mark = eventMarker(what);
  const whole: Uint8Array<ArrayBuffer>[] = [];
  let stream: Outgoing | undefined;
  const running = context.request(path, body, {
    signal,
    onHead: (status, contentType) => {
      if (contentType.startsWith("text/event-stream")) {
        // Here and not after the await below: the body follows at once.
        stream = new Outgoing(settings.readTimeout, (why) => active.abort(new ClientGone(why)));
      }
      head.resolve(status);
    },
    onChunk: (bytes) => {
      if (stream) stream.write(mark(bytes));
      else whole.push(new Uint8Array(bytes));
    },
  }).finally(() => {
    if (signal.aborted) life.watch(context).catch(() => {});
  });
  running.catch(head.reject);
  const status = await head.promise;
  if (!stream) {
    await running;
    const answer = await new Response(new Blob(whole)).json();
    if (status !== 200) return upstreamError(answer, status, path, body);
    markAnswer(answer, what);
    return json(answer);
  }
  const out = stream;
  const ended = running.then(() => out.write(mark()), (error) => {
    const isFatal = error instanceof EngineError && error.fatal;
    const cause = signal.aborted && !isFatal ? signal.reason : error;
    if (cause instanceof ClientGone) counts.cancelled++;
    else out.write(mark(new TextEncoder().encode(errorEvent(cause, path))));
    if (!isFatal) return;
    counts.failed++;
    log.line(`request failed: ${error.message}`);
    life.look();
  }).finally(() => out.end());
  const headers = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
  };
  return { response: new Response(out.stream, { headers }), ended };
}
