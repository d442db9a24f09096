// Shared by the tests of the server.

import { assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { createServer, type RysServer, type ServerOptions } from "../../src/server/mod.ts";

/** The demo model: 40 layers. */
export const DEMO = fileURLToPath(new URL("../../models/demo.gguf", import.meta.url));

/** Sizes that start fast. */
export const SMALL = { model: DEMO, nCtx: 512, nParallel: 2 } as const;

/** A question that the demo model answers. */
export const CHAT = { messages: [{ role: "user", content: "Hello" }], max_tokens: 4 } as const;

/** A request that does not end by itself for long. */
export const ENDLESS = {
  prompt: "Once upon a time",
  n_predict: 100_000,
  ignore_eos: true,
} as const;

/** A test on a server of its own, loaded. The engine starts threads as it needs them: no sanitizers. */
export function test(
  name: string,
  options: Partial<ServerOptions>,
  fn: (server: RysServer) => Promise<void>,
): void {
  Deno.test({
    name,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      await using server = createServer({ ...SMALL, ...options });
      await server.ready;
      await fn(server);
    },
  });
}

let ours: RysServer | undefined;

/** A test on a server that the file's tests share; none of them changes it. */
export function shared(name: string, fn: (server: RysServer) => Promise<void>): void {
  Deno.test({
    name,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      ours ??= createServer(SMALL);
      await ours.ready;
      await fn(ours);
    },
  });
}

Deno.test.afterAll(async () => await ours?.close());

/** What a request may have beside its body. */
export interface Ask {
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Sends a request, with a JSON body if there is one. */
export function send(
  server: RysServer,
  path: string,
  body?: unknown,
  { headers = {}, signal }: Ask = {},
): Promise<Response> {
  return server.fetch(
    new Request(`http://localhost${path}`, {
      headers,
      ...signal ? { signal } : {},
      ...body === undefined ? {} : { method: "POST", body: JSON.stringify(body) },
    }),
  );
}

// deno-lint-ignore no-explicit-any -- JSON of many shapes, looked into by tests
export type Json = any;

/** Sends a request that must be answered with 200 and JSON. */
export async function json(
  server: RysServer,
  path: string,
  body?: unknown,
  ask: Ask = {},
): Promise<Json> {
  const response = await send(server, path, body, ask);
  const answer = await response.json();
  assertEquals(response.status, 200, JSON.stringify(answer));
  return answer;
}

/** Sends a request that must be refused; gives the error object. */
export async function refusal(
  server: RysServer,
  status: number,
  path: string,
  body?: unknown,
  ask: Ask = {},
): Promise<Json> {
  const response = await send(server, path, body, ask);
  const answer = await response.json();
  assertEquals(response.status, status, JSON.stringify(answer));
  assertEquals(answer.error.code, status);
  return answer.error;
}

/** The data of a stream's events; `[DONE]` as it is. */
export async function events(response: Response): Promise<Json[]> {
  const text = await response.text();
  return text.split("\n\n").flatMap((event) => {
    const line = event.split("\n").find((line) => line.startsWith("data:"));
    if (line === undefined) return [];
    const data = line.slice(5).trim();
    return [data === "[DONE]" ? data : JSON.parse(data)];
  });
}

/** Slots at work, over all contexts. */
export async function busy(server: RysServer): Promise<number> {
  const slots: { is_processing: boolean }[] = await json(server, "/slots");
  return slots.filter((slot) => slot.is_processing).length;
}

/** Waits until a condition holds; fails where it does not within five minutes. */
export async function until(what: string, is: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 300_000;
  while (!await is()) {
    if (performance.now() > end) throw new Error(`not within five minutes: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A number of the metrics. */
export async function metric(server: RysServer, name: string): Promise<number> {
  const text = await (await send(server, "/metrics")).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}
