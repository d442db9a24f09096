import { ApiError } from "../http/api_error.ts";
import type { ContextKind } from "../plans/plan_pool.ts";
import { ran } from "./answer.ts";
import type { Call, Streaming } from "./call.ts";
import { prepare, type Prepared } from "./prepare.ts";
import { relay } from "./relay.ts";

/** Embeds texts. */
export async function embed(call: Call): Promise<Response | Streaming> {
  return await run(call, "embeddings", await prepare(call, "texts"));
}

/** Ranks texts. */
export async function rerank(call: Call): Promise<Response | Streaming> {
  const prepared = await prepare(call, "texts");
  if (!prepared.loaded.canRank) {
    throw new ApiError(
      501,
      `This model does not rank texts; serve a reranking model, whose GGUF file has the pooling type "rank" ` +
        `(serve --pooling rank -m FILE)`,
    );
  }
  return await run(call, "rerank", prepared);
}

async function run(
  call: Call,
  kind: ContextKind,
  { loaded, named, body, warnings }: Prepared,
): Promise<Response | Streaming> {
  call.log.advise(named.plan);
  const context = await call.active.enter(loaded.pool, kind, named.plan, true);
  return await relay(call, context, body, ran(named.name, named.plan, undefined, warnings));
}
