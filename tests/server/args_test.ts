// A server started as a child with the command line that serverArgs() makes.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { inRepo } from "../engine/_engine.ts";
import { startChild } from "./_child.ts";

Deno.test("serverArgs() starts a server that is as its options say", async () => {
  const keys = await Deno.makeTempFile();
  await Deno.writeTextFile(keys, "key-of-the-file\n");
  try {
    await using server = await startChild({
      repeatLayers: [...Array(34).keys(), ...Array.from({ length: 14 }, (_, i) => 26 + i)],
      aliases: { plain: "none", "two words": "33,34", default: undefined },
      apiKeys: ["key-1"],
      apiKeyFile: keys,
      cors: ["https://app.example"],
      page: false,
      strictModels: true,
      maxBodyBytes: 2048,
      args: ["--temp", "0"],
    });
    const ask = (path: string, body?: unknown, headers: Record<string, string> = {}) =>
      fetch(`${server.origin}${path}`, {
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
        headers: { authorization: "Bearer key-1", ...headers },
      });
    const models = await (await ask("/v1/models")).json();
    assertEquals(
      models.data.map(({ id }: { id: string }) => id),
      ["demo", "plain", "two words", "default"],
    );
    const plan = async (model?: string) => {
      const response = await ask("/v1/completions", { model, prompt: "Once", max_tokens: 1 });
      const answer = await response.json();
      return answer.rys?.n_layer_eff ?? answer.error.code;
    };
    assertEquals(
      await Promise.all([undefined, "demo", "default", "plain", "two words", "other"].map(plan)),
      [48, 48, 48, 40, 41, 404],
    );
    const statuses = async (...requests: Promise<Response>[]) =>
      await Promise.all(requests.map(async (request) => {
        const response = await request;
        await response.body?.cancel();
        return response.status;
      }));
    assertEquals(
      await statuses(
        ask("/v1/models", undefined, { authorization: "Bearer key-of-the-file" }),
        ask("/v1/models", undefined, { authorization: "Bearer key-2" }),
        ask("/tokenize", { content: "x".repeat(4096) }),
      ),
      [200, 401, 413],
    );
    // Not the page, but what the server is.
    assertEquals((await (await ask("/")).json()).name, "rys-edge");
    const cors = await ask("/v1/models", undefined, { origin: "https://app.example" });
    await cors.body?.cancel();
    assertEquals(cors.headers.get("access-control-allow-origin"), "https://app.example");
    const { code, stdout } = await server.stop();
    assertEquals([code, stdout], [0, ""]);
  } finally {
    await Deno.remove(keys);
  }
});

Deno.test("serverArgs() with a model that is not there: the child says so and ends", async () => {
  const error = await assertRejects(
    () => startChild({ model: inRepo("models/missing.gguf") }),
    Error,
    "missing.gguf",
  );
  assert(!error.message.includes("at file:"), error.message);
});
