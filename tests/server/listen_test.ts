import { assert, assertEquals, assertRejects } from "@std/assert";
import { serve, type ServeOptions, type Serving } from "../../src/server/mod.ts";
import { hostGuard } from "../../src/server/http/host_guard.ts";
import { busy, CHAT, ENDLESS, SMALL, until } from "./_server.ts";

/** A test on a server that listens, loaded. */
function test(
  name: string,
  options: Partial<ServeOptions>,
  fn: (serving: Serving) => Promise<void>,
): void {
  Deno.test({
    name,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      await using serving = await serve({ ...SMALL, port: 0, ...options });
      await serving.server.ready;
      await fn(serving);
    },
  });
}

/** Sends bytes over a connection of its own, and gives what comes back until it ends or `ms` have passed. */
async function raw(serving: Serving, text: string | Uint8Array, ms = 120_000): Promise<string> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: serving.port });
  const timer = setTimeout(() => connection.close(), ms);
  const decoder = new TextDecoder();
  let out = "";
  try {
    await connection.write(typeof text === "string" ? new TextEncoder().encode(text) : text);
    for await (const chunk of connection.readable) out += decoder.decode(chunk, { stream: true });
  } catch {
    // Closed by either side.
  }
  clearTimeout(timer);
  return out;
}

test("it listens on this machine alone, and answers HTTP", {}, async (serving) => {
  assertEquals([serving.hostname, serving.url], ["127.0.0.1", `http://127.0.0.1:${serving.port}`]);
  const response = await fetch(`${serving.url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify(CHAT),
  });
  assertEquals([response.status, (await response.json()).choices.length], [200, 1]);
  const head = await fetch(`${serving.url}/health`, { method: "HEAD" });
  assertEquals([head.status, await head.text()], [200, ""]);
  // A body that comes in pieces.
  const pieces = new ReadableStream({
    start(controller) {
      for (const c of JSON.stringify({ content: "Hello é" })) {
        controller.enqueue(new TextEncoder().encode(c));
      }
      controller.close();
    },
  });
  const tokens = await fetch(`${serving.url}/tokenize`, { method: "POST", body: pieces });
  assert((await tokens.json()).tokens.length > 0);
});

test("a port that is taken is an error that says so", {}, async (serving) => {
  const error = await assertRejects(() => serve({ ...SMALL, port: serving.port }), Error);
  assert(error.message.startsWith(`Cannot listen on 127.0.0.1:${serving.port}: the port is taken`));
  await assertRejects(
    () => serve({ ...SMALL, host: "203.0.113.1", port: 0 }),
    Error,
    "no such address",
  );
  await assertRejects(() => serve({ ...SMALL, port: 70_000 }), RangeError, "port");
  await assertRejects(() => serve({ ...SMALL, port: 0, nCtx: -1 }), RangeError, "nCtx");
});

test(
  "a stream comes as it is made, and ends when its reader leaves",
  { nCtx: 2048 },
  async (serving) => {
    const cancel = new AbortController();
    const response = await fetch(`${serving.url}/completion`, {
      method: "POST",
      body: JSON.stringify({ ...ENDLESS, stream: true }),
      signal: cancel.signal,
    });
    const reader = response.body!.getReader();
    for (let i = 0; i < 3; i++) {
      assert(
        new TextDecoder().decode((await reader.read()).value).startsWith("data: "),
      );
    }
    cancel.abort();
    await reader.read().catch(() => {});
    await until("the slot is free", async () => await busy(serving.server) === 0);
  },
);

test("a client that leaves before the answer ends its request", { nCtx: 2048 }, async (serving) => {
  const cancel = new AbortController();
  const asked = fetch(`${serving.url}/completion`, {
    method: "POST",
    body: JSON.stringify(ENDLESS),
    signal: cancel.signal,
  });
  await until("it runs", async () => await busy(serving.server) === 1);
  cancel.abort();
  await assertRejects(() => asked);
  await until(
    "the slot is free",
    async () => await busy(serving.server) === 0 && serving.server.inFlight === 0,
  );
});

test(
  "headers and bodies that do not arrive end their connection",
  { bodyTimeout: 0.5 },
  async (serving) => {
    const [slowHead, slowBody, none] = await Promise.all([
      raw(serving, "POST /tokenize HTTP/1.1\r\nhost: localhost\r\nx: "),
      raw(serving, "POST /tokenize HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"),
      raw(serving, ""),
    ]);
    assert(/^HTTP\/1.1 408 /.test(slowHead), slowHead);
    assert(/^HTTP\/1.1 408 [\s\S]*did not arrive within 0.5 seconds/.test(slowBody), slowBody);
    assert(none === "" || /^HTTP\/1.1 408 /.test(none), none);
    assertEquals(serving.server.inFlight, 0);
  },
);

test("a body that is refused is answered while it still comes", {
  maxBodyBytes: 1 << 20,
}, async (serving) => {
  const large = new Uint8Array(24 << 20).fill(32);
  const pieces = () => {
    let n = 0;
    return new ReadableStream({
      pull: (controller) =>
        n++ < 300 ? controller.enqueue(new Uint8Array(1 << 16).fill(32)) : controller.close(),
    });
  };
  for (let i = 0; i < 6; i++) {
    for (
      const [path, body, status] of [
        ["/tokenize", large, 413],
        ["/tokenize", pieces(), 413],
        ["/nope", large, 404],
        ["/nope", pieces(), 404],
      ] as [string, BodyInit, number][]
    ) {
      const response = await fetch(serving.url + path, { method: "POST", body });
      assertEquals([response.status, (await response.json()).error.code], [status, status]);
    }
  }
  assertEquals((await fetch(`${serving.url}/health`)).status, 200);
});

test("bytes that are no HTTP are refused", {}, async (serving) => {
  for (
    const text of [
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
      "GET\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "POST /tokenize HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n",
      "POST /tokenize HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
      `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(100_000)}\r\n\r\n`,
      `GET /${"y".repeat(100_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`,
    ]
  ) {
    const answer = await raw(serving, text);
    assert(
      /^HTTP\/1.1 4\d\d /.test(answer) || answer === "",
      `${JSON.stringify(text.slice(0, 80))}: ${answer}`,
    );
  }
  for (
    const text of [
      "GET //[::bad HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
      "GET http://[bad/ HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
      "TRACE /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
      "BREW /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ]
  ) {
    const answer = await raw(serving, text);
    assert(!/^HTTP\/1.1 5/.test(answer), `${text}: ${answer}`);
  }
  assertEquals((await fetch(`${serving.url}/health`)).status, 200);
});

test("names that are not the server's are refused where no key is asked for", {
  allowedHosts: ["my.box"],
}, async (serving) => {
  const ask = async (host: string) =>
    (await raw(serving, `GET /health HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`))
      .slice(9, 12);
  for (
    const host of [
      `localhost:${serving.port}`,
      `127.0.0.1:${serving.port}`,
      "[::1]:80",
      "my.box",
      "a.localhost",
    ]
  ) {
    assertEquals(await ask(host), "200", host);
  }
  for (const host of ["evil.example", `evil.example:${serving.port}`, "localhost.evil.example"]) {
    assertEquals(await ask(host), "403", host);
  }
});

Deno.test("hostGuard() lets all names in where a key is asked for, or others can come", () => {
  assertEquals(hostGuard("127.0.0.1", [], true)("evil.example"), true);
  assertEquals(hostGuard("0.0.0.0", [], false)("example.com"), true);
  assertEquals(hostGuard("127.0.0.1", [], false)("evil.example"), false);
});

test(
  "close() ends idle connections and lets streams end",
  { drainTimeout: 100 },
  async (serving) => {
    const idle = await Deno.connect({ hostname: "127.0.0.1", port: serving.port });
    const streamed = await fetch(`${serving.url}/completion`, {
      method: "POST",
      body: JSON.stringify({ ...ENDLESS, n_predict: 40, stream: true }),
    });
    const read = streamed.text();
    await serving.close();
    assert((await read).includes('"tokens_predicted":40'));
    assertEquals(await idle.read(new Uint8Array(1)).catch(() => null), null);
    idle.close();
    await assertRejects(() => fetch(`${serving.url}/health`));
  },
);

test("while it drains it says so to who asks", { drainTimeout: 100 }, async (serving) => {
  const streamed = await fetch(`${serving.url}/completion`, {
    method: "POST",
    body: JSON.stringify({ ...ENDLESS, n_predict: 300, stream: true }),
  });
  const read = streamed.text();
  const closing = serving.close();
  for (const path of ["/health", "/ready", "/ping", "/v1/models"]) {
    const response = await fetch(serving.url + path);
    assertEquals([response.status, response.headers.get("connection")], [503, "close"], path);
    assert((await response.json()).error.message.includes("shutting down"));
  }
  const refused = await fetch(`${serving.url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify(CHAT),
  });
  assertEquals(refused.status, 503);
  await refused.body?.cancel();
  assertEquals(serving.server.state, "draining");
  await closing;
  assert((await read).includes('"tokens_predicted":300'));
  await assertRejects(() => fetch(`${serving.url}/health`));
});
