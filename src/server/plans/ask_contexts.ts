import { EngineError } from "../../engine/mod.ts";
import type { PoolEntry } from "./plan_pool.ts";

/**
 * Asks contexts of a pool in turn. What is made or freed meanwhile is left out, and so is one that does not answer in
 * time, so that it does not hold up the others.
 *
 * @param entries The contexts.
 * @param path What to ask for.
 * @param signal Stops it.
 * @param timeoutMs How long a context may take; as long as it likes, if left out.
 * @returns The contexts that answered with 200, and their answers.
 * @throws {EngineError} If the engine is gone.
 */
export async function* askContexts(
  entries: PoolEntry[],
  path: string,
  signal: AbortSignal,
  timeoutMs?: number,
): AsyncGenerator<{ entry: PoolEntry; text: string }> {
  for (const entry of entries) {
    const { context } = entry;
    if (context === undefined || context.disposed) continue;
    const late = timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)];
    try {
      const { status, body } = await context.request(path, undefined, {
        signal: AbortSignal.any([signal, ...late]),
      });
      if (status === 200) yield { entry, text: new TextDecoder().decode(body) };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof EngineError && error.fatal) throw error;
      if (!context.disposed && (error as Error)?.name !== "TimeoutError") throw error;
    }
  }
}
