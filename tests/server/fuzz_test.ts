import { assert, assertEquals } from "@std/assert";
import { createServer, serve } from "../../src/server/mod.ts";
import { brokenText, random, SOUND, wrongBody } from "./_fuzz.ts";
import { busy, CHAT, json, metric, SMALL, until } from "./_server.ts";

// The same requests each time. RYS_FUZZ_SEED and RYS_FUZZ_COUNT try others, and more.
const seed = Number(Deno.env.get("RYS_FUZZ_SEED") ?? 1);
const count = Number(Deno.env.get("RYS_FUZZ_COUNT") ?? 250);

/** Statuses that a request which is wrong may have; 504 is one that ran for too long. */
const EXPECTED = [200, 400, 404, 408, 413, 499, 501, 503, 504];

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, sanitizeOps: false, sanitizeResources: false, fn });
}

test("wrong bodies are answers, and the engine lives", async () => {
  await using server = createServer({
    ...SMALL,
    nCtx: 256,
    maxContexts: 3,
    requestTimeout: 20,
  });
  await server.ready;
  const next = random(seed);
  for (let i = 0; i < count; i++) {
    const { path, body } = next() < 0.8
      ? wrongBody(next)
      : { path: SOUND[Math.floor(next() * SOUND.length)]![0], body: brokenText(next) };
    const text = body instanceof Uint8Array ? body : JSON.stringify(body);
    const shown = `seed ${seed}, request ${i}: ${path} ${
      typeof text === "string" ? text.slice(0, 2000) : new TextDecoder().decode(text).slice(0, 2000)
    }`;
    const response = await server.fetch(
      new Request(`http://localhost${path}`, { method: "POST", body: text }),
    );
    const answer = await response.text();
    assert(EXPECTED.includes(response.status), `${response.status}: ${answer} to ${shown}`);
    if (!answer.startsWith("data:") && !answer.startsWith("event:")) {
      const parsed = JSON.parse(answer);
      if (response.status !== 200) {
        assertEquals(typeof parsed.error.message, "string", shown);
        assert(!/\/rys\/|\.cpp\b|GGML_/.test(parsed.error.message), parsed.error.message);
      }
    }
    assertEquals(server.state, "ready", shown);
  }
  assertEquals(await metric(server, "rys_reloads_total"), 0);
  assertEquals([await busy(server), server.inFlight], [0, 0]);
  assertEquals((await json(server, "/v1/chat/completions", CHAT)).choices.length, 1);
});

test("wrong bodies at the same time are answers as well", async () => {
  await using server = createServer({
    ...SMALL,
    nCtx: 256,
    maxContexts: 2,
    maxQueue: 500,
    requestTimeout: 60,
  });
  await server.ready;
  const next = random(seed + 1);
  const statuses = await Promise.all(Array.from({ length: Math.ceil(count / 3) }, async () => {
    const { path, body } = wrongBody(next);
    const response = await server.fetch(
      new Request(`http://localhost${path}`, { method: "POST", body: JSON.stringify(body) }),
    );
    await response.text();
    return response.status;
  }));
  assertEquals(statuses.filter((status) => !EXPECTED.includes(status)), []);
  assertEquals(await metric(server, "rys_reloads_total"), 0);
  assertEquals([await busy(server), server.inFlight], [0, 0]);
});

test("thousands of clients that leave at any moment leave no slot behind", async () => {
  await using serving = await serve({
    ...SMALL,
    port: 0,
    nCtx: 1024,
    maxQueue: 200,
    maxContexts: 2,
  });
  const { server } = serving;
  await server.ready;
  const next = random(seed + 2);
  const body = (plan: boolean, stream: boolean) =>
    JSON.stringify({
      prompt: "Once upon a time",
      n_predict: 200,
      ignore_eos: true,
      stream,
      ...plan ? { repeat_layers: "26,34" } : {},
    });
  const one = async () => {
    const stream = next() < 0.5;
    const text = body(next() < 0.2, stream);
    const whole =
      `POST /completion HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
    const cut = next() < 0.3 ? Math.floor(next() * (whole.length - 1)) : whole.length;
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: serving.port });
    try {
      await connection.write(new TextEncoder().encode(whole.slice(0, cut)));
      const wait = next();
      if (wait < 0.5) await new Promise((resolve) => setTimeout(resolve, wait * 60));
      if (wait > 0.9 && stream && cut === whole.length) await connection.read(new Uint8Array(100));
    } catch {
      // Refused or closed.
    } finally {
      connection.close();
    }
  };
  for (let i = 0; i < 8 * count; i += 50) await Promise.all(Array.from({ length: 50 }, one));
  await until("nothing is in flight", () => server.inFlight === 0);
  await until("no slot is at work", async () => await busy(server) === 0);
  assertEquals(await metric(server, "rys_queue_depth"), 0);
  assertEquals(await metric(server, "rys_reloads_total"), 0);
  assertEquals((await json(server, "/v1/chat/completions", CHAT)).choices.length, 1);
});

test("bytes at random on the socket are no reason to end", async () => {
  await using serving = await serve({ ...SMALL, port: 0 });
  await serving.server.ready;
  const next = random(seed + 3);
  const sound = new TextEncoder().encode(
    'POST /tokenize HTTP/1.1\r\nhost: localhost\r\ncontent-length: 15\r\nconnection: close\r\n\r\n{"content":"x"}',
  );
  for (let i = 0; i < count; i++) {
    const bytes = sound.slice();
    const n = 1 + Math.floor(next() * 8);
    for (let k = 0; k < n; k++) bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: serving.port });
    const timer = setTimeout(() => connection.close(), 100);
    try {
      await connection.write(bytes);
      const buffer = new Uint8Array(2000);
      while (await connection.read(buffer) !== null);
    } catch {
      // Closed by either side.
    }
    clearTimeout(timer);
    try {
      connection.close();
    } catch {
      // It was.
    }
  }
  await until("nothing is in flight", () => serving.server.inFlight === 0);
  const response = await fetch(`${serving.url}/health`);
  assertEquals([response.status, await response.json()], [200, { status: "ok" }]);
});
