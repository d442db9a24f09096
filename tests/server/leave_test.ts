import { assert, assertEquals } from "@std/assert";
import type { RysServer } from "../../src/server/mod.ts";
import { json, send, test } from "./_server.ts";

const ATTEMPTS = 12;

interface Slot {
  is_processing: boolean;
  n_prompt_tokens?: number;
}

async function until(server: RysServer, busy: boolean): Promise<Slot> {
  for (;;) {
    const [slot] = await json(server, "/slots") as Slot[];
    if (slot!.is_processing === busy) return slot!;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

test("a client that leaves during the prompt stops the batch that computes it", {
  nCtx: 4096,
  nParallel: 1,
  context: { nBatch: 2048, nUbatch: 2048, threads: 1 },
}, async (server) => {
  const prompt = Array.from({ length: 1500 }, (_, i) => 3 + (i * 7) % 200);
  let stopped = 0;
  // A batch may have ended before its cancel arrives.
  for (let i = 0; i < ATTEMPTS && stopped === 0; i++) {
    const leave = new AbortController();
    const body = { prompt, n_predict: 1, cache_prompt: false };
    const response = send(server, "/completion", body, { signal: leave.signal });
    await until(server, true);
    leave.abort();
    assertEquals((await response).status, 499);
    if ((await until(server, false)).n_prompt_tokens === 0) stopped++;
  }
  assert(stopped > 0, "every batch ran to its end");
});
