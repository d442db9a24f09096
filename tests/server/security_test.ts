import { assert, assertEquals } from "@std/assert";
import { CHAT, json, refusal, send, test } from "./_server.ts";

const KEYS = { apiKeys: ["first-key", "second-key"] };

test("a key is asked for, by all but what tells of life and the page", KEYS, async (server) => {
  for (const path of ["/health", "/v1/health", "/ready", "/ping", "/"]) {
    const response = await send(server, path);
    assertEquals(response.status, 200, path);
    await response.body?.cancel();
  }
  for (
    const headers of [
      {},
      { authorization: "" },
      { authorization: "Bearer " },
      { authorization: "Bearer first-ke" },
      { authorization: "Bearer first-key2" },
      { authorization: "Bearer FIRST-KEY" },
      { authorization: "Basic first-key" },
      { "x-api-key": "other" },
    ] as Record<string, string>[]
  ) {
    for (
      const [path, body] of [["/v1/chat/completions", CHAT], ["/v1/models"], ["/props"], [
        "/nope",
      ]] as const
    ) {
      const error = await refusal(server, 401, path, body, { headers });
      assertEquals([error.type, error.message], ["authentication_error", "Invalid API Key"]);
    }
  }
  for (
    const headers of [
      { authorization: "Bearer first-key" },
      { authorization: "bearer  second-key" },
      { authorization: "second-key" },
      { "x-api-key": "first-key" },
    ] as Record<string, string>[]
  ) {
    await json(server, "/v1/chat/completions", CHAT, { headers });
  }
});

test("pages of other origins may not use the server", {}, async (server) => {
  const headers = { origin: "https://example.com", host: "localhost:8080" };
  for (const [path, body] of [["/v1/chat/completions", CHAT], ["/health"], ["/"]] as const) {
    const response = await send(server, path, body, { headers });
    assertEquals([response.status, response.headers.get("access-control-allow-origin")], [
      403,
      null,
    ]);
    await response.body?.cancel();
  }
  await refusal(server, 403, "/health", undefined, { headers: { ...headers, origin: "null" } });
  const own = await send(server, "/health", undefined, {
    headers: { origin: "http://localhost:8080", host: "localhost:8080" },
  });
  assertEquals([own.status, own.headers.get("access-control-allow-origin")], [200, null]);
});

test("origins can be let in", { cors: ["https://example.com"], ...KEYS }, async (server) => {
  const headers = {
    origin: "https://example.com",
    "access-control-request-headers": "authorization",
  };
  const preflight = await server.fetch(
    new Request("http://localhost/v1/chat/completions", { method: "OPTIONS", headers }),
  );
  assertEquals(preflight.status, 204);
  assertEquals(preflight.headers.get("access-control-allow-origin"), "https://example.com");
  assertEquals(preflight.headers.get("access-control-allow-headers"), "authorization");
  const refused = await send(server, "/v1/models", undefined, { headers });
  // Its page may read why.
  assertEquals([refused.status, refused.headers.get("access-control-allow-origin")], [
    401,
    "https://example.com",
  ]);
  await refused.body?.cancel();
  await refusal(server, 403, "/health", undefined, {
    headers: { origin: "https://example.com.evil.com" },
  });
});

test("all origins can be let in", { cors: true }, async (server) => {
  const response = await send(server, "/health", undefined, { headers: { origin: "https://a.b" } });
  assertEquals([response.status, response.headers.get("access-control-allow-origin")], [
    200,
    "https://a.b",
  ]);
  await response.body?.cancel();
});

test("requests name no files, and reach none", {}, async (server) => {
  for (
    const more of [
      { lora: [{ path: "/etc/passwd", scale: 1 }] },
      { lora: "/etc/passwd" },
      { model_path: "/etc/passwd" },
      { grammar_file: "/etc/passwd" },
      {
        messages: [{
          role: "user",
          content: [{ type: "image_url", image_url: { url: "file:///etc/passwd" } }],
        }],
      },
      {
        messages: [{
          role: "user",
          content: [{ type: "image_url", image_url: { url: "http://127.0.0.1:1/x" } }],
        }],
      },
      {
        messages: [{
          role: "user",
          content: [{ type: "input_audio", input_audio: { data: "AAAA" } }],
        }],
      },
    ]
  ) {
    const error = await refusal(server, 400, "/v1/chat/completions", { ...CHAT, ...more });
    assert(!error.message.includes("root:"), error.message);
  }
  for (
    const content of [
      [{ type: "image", source: { type: "url", url: "http://127.0.0.1:1/x" } }],
      [{ type: "tool_result", tool_use_id: "x", content: [{ type: "image", source: {} }] }],
    ]
  ) {
    await refusal(server, 400, "/v1/messages", { ...CHAT, messages: [{ role: "user", content }] });
  }
  await refusal(server, 400, "/v1/responses", {
    input: [{ role: "user", content: [{ type: "input_file", file_id: "/etc/passwd" }] }],
  });
  await refusal(server, 400, "/completion", {
    prompt: { prompt_string: "x", multimodal_data: ["AAAA"] },
  });
  for (const action of ["save", "restore"]) {
    await refusal(server, 501, `/slots/0?action=${action}`, { filename: "x" });
  }
  for (const path of ["/../../etc/passwd", "/rys/..%2f..%2fdeno.json", "/models/..%2F..%2Fetc"]) {
    await refusal(server, 404, path);
  }
});

test("what upstream's handlers keep for each other is refused", {}, async (server) => {
  for (
    const more of [
      { grammar_triggers: [{ type: 99, value: "x" }], grammar_lazy: true, grammar: 'root ::= "a"' },
      { chat_parser: "x" },
      { chat_format: 99 },
    ]
  ) {
    const error = await refusal(server, 400, "/completion", { prompt: "x", n_predict: 1, ...more });
    assert(error.message.endsWith("is not a field of requests"), error.message);
  }
});

test("errors say nothing of the inside", {}, async (server) => {
  for (
    const [path, body] of [
      ["/v1/chat/completions", { messages: 5 }],
      ["/v1/chat/completions", { ...CHAT, tools: "x" }],
      ["/v1/embeddings", { input: { a: 1 } }],
      ["/completion", { prompt: "x", grammar: "root :: = x" }],
      ["/completion", { prompt: "x", json_schema: { $ref: "file:///etc/passwd" } }],
      ["/detokenize", { tokens: ["x"] }],
      ["/apply-template", {}],
    ] as const
  ) {
    const { message, type } = await refusal(server, 400, path, body);
    assertEquals(type, "invalid_request_error", message);
    assert(!/\/rys\/|\/etc\/|\.cpp|\.ts:|GGML_|at file:|\n\s+at /.test(message), message);
  }
  assertEquals((await json(server, "/props")).model_path, "demo");
});

test(
  "bodies, URLs and headers have limits",
  { maxBodyBytes: 2000 },
  async (server) => {
    const post = (body: BodyInit, headers: Record<string, string> = {}) =>
      server.fetch(new Request("http://localhost/tokenize", { method: "POST", body, headers }));
    assertEquals((await post(JSON.stringify({ content: "x".repeat(1900) }))).status, 200);
    assertEquals((await post(JSON.stringify({ content: "x".repeat(2000) }))).status, 413);
    let parts = 50;
    const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull(controller) {
        if (parts-- === 0) return controller.close();
        controller.enqueue(new TextEncoder().encode(" ".repeat(100)));
      },
    });
    assertEquals((await post(stream)).status, 413);
    assertEquals((await send(server, `/health?${"x".repeat(9000)}`)).status, 414);
    assertEquals(
      (await send(server, "/health", undefined, { headers: { x: "y".repeat(70_000) } })).status,
      431,
    );
    for (const body of ["", "{", "[]", "null", "5", '"x"', '{"a":1}}', "\u0000"]) {
      const response = await post(body);
      assertEquals(response.status, 400, body);
      await response.body?.cancel();
    }
    const deep = await post(`{"a":${"[".repeat(900)}${"]".repeat(900)}}`);
    assert((await deep.json()).error.message.includes("nested deeper"));
    assertEquals(server.inFlight, 0);
  },
);

test("a body that stops coming is answered with 408", { bodyTimeout: 0.3 }, async (server) => {
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
  });
  const url = "http://localhost/tokenize";
  const response = await server.fetch(new Request(url, { method: "POST", body }));
  assertEquals(response.status, 408);
  await response.body?.cancel();
  assertEquals(server.inFlight, 0);
});
