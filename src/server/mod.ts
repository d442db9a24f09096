/**
 * An HTTP server with llama-server's routes, on which each request may choose its layer plan.
 *
 * ```sh
 * LLAMA_ARG_MODEL=model.gguf deno serve -A --host 127.0.0.1 --port 8080 src/server/mod.ts
 * ```
 *
 * @example The handler alone: a `Request` in, a `Response` out
 * ```ts
 * import { createServer } from "@rys/edge/serve";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = createServer({ model: "models/demo.gguf", nCtx: 512, aliases: { deep: "26,34" } });
 * await server.ready;
 * const response = await server.fetch(
 *   new Request("http://localhost/v1/chat/completions", {
 *     method: "POST",
 *     body: JSON.stringify({ model: "deep", messages: [{ role: "user", content: "Hello" }], max_tokens: 4 }),
 *   }),
 * );
 * const { choices, rys } = await response.json();
 * assertEquals([choices.length, rys.plan, rys.n_layer_eff], [1, "26,34", 48]);
 * ```
 *
 * @module
 */

export { createServer, type FetchInfo, type RysServer, type ServerState } from "./server.ts";
export { serve, type Serving } from "./listen.ts";
export type { ServeOptions, ServerOptions } from "./options.ts";
export { default, type DenoServe } from "./deno_serve.ts";
export { serverArgs, type ServerArgsOptions } from "./args.ts";
export {
  type QueueReport,
  reportUnhealthy,
  type RunpodQueue,
  type RunpodQueueOptions,
  type RunpodSettings,
  runpodSettings,
  type RunpodTiming,
  startRunpodQueue,
} from "./runpod/mod.ts";
