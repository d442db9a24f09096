// The server on a GPU: what it computes and says, a GPU without room, and one that is lost.

import { assert, assertEquals } from "@std/assert";
import type { ModelInfo } from "@rys/edge";
import { createServer, type RysServer, type ServerOptions } from "@rys/edge/serve";
import {
  busy,
  ENDLESS,
  events,
  json,
  metric,
  refusal,
  send,
  SMALL,
  until,
} from "../server/_server.ts";
import { gpuTest } from "./_gpu.ts";
import { recording, test } from "./_recording.ts";

const OPTIONS = { ...SMALL, nCtx: 256, aliases: { deep: "26,34" } } as const;

/** What the plans' names in `model` answer, asked for at once. */
async function answers(server: RysServer): Promise<[text: string, layers: number][]> {
  return await Promise.all(["demo", "deep"].map(async (model) => {
    const { choices, rys } = await json(server, "/v1/completions", {
      model,
      prompt: "Once upon a time",
      max_tokens: 16,
      temperature: 0,
      ignore_eos: true,
    });
    return [choices[0].text, rys.n_layer_eff] as [string, number];
  }));
}

async function ready(options: Partial<ServerOptions>): Promise<RysServer> {
  const server = createServer({ ...OPTIONS, ...options });
  await server.ready;
  return server;
}

gpuTest("two plans at once on a GPU answer as on the CPU, and the server says where", async () => {
  const told: ModelInfo[] = [];
  await using gpu = await ready({ load: { gpu: "required" }, onModel: (info) => told.push(info) });
  await using cpu = await ready({ load: { gpu: "off" } });
  const want = await answers(cpu);
  assertEquals(want.map(([text, layers]) => [text !== "", layers]), [[true, 40], [true, 48]]);
  assertEquals(await answers(gpu), want);

  const { device, gpu: facts, gpu_why: why, model_bytes: bytes } = await json(gpu, "/rys");
  assertEquals([device, facts.layers, facts.cpu_bytes, why], ["gpu", 41, 0, ""]);
  assert(facts.bytes >= bytes, `${facts.bytes} of ${bytes}`);
  assertEquals(told.map(({ gpu }) => [gpu?.vendor, gpu?.description, gpu?.software]), [
    [facts.vendor, facts.description, facts.software],
  ]);
  assertEquals((await json(gpu, "/props")).rys.gpu, facts);
  const off = await json(cpu, "/rys");
  assertEquals([off.device, off.gpu, off.gpu_why], ["cpu", null, "switched off"]);
});

gpuTest("a server with some layers on a GPU says how many", async () => {
  await using server = await ready({ load: { gpu: "required", gpuLayers: 12 } });
  const { gpu, model_bytes: bytes } = await json(server, "/rys");
  assertEquals(gpu.layers, 12);
  assert(gpu.bytes > 0 && gpu.bytes < bytes && gpu.cpu_bytes > gpu.bytes, JSON.stringify(gpu));
});

test("a GPU without room for a context: idle ones make room, else 503 until they are idle", async () => {
  // Room for the weights and one context.
  const gpu = recording({ memory: 12_000_000 });
  await using server = await ready({ nCtx: 512, load: gpu.load });
  const short = { prompt: "Once", n_predict: 2, ignore_eos: true };
  assertEquals((await json(server, "/completion", { ...short, model: "deep" })).rys.plan, "26,34");
  assertEquals(await metric(server, "rys_contexts_freed_total"), 1);

  const stop = new AbortController();
  const running = send(server, "/completion", { ...ENDLESS, model: "deep" }, stop);
  await until("it runs", async () => await busy(server) === 1);
  const response = await send(server, "/completion", { ...short, repeat_layers: "10,20" });
  const { error } = await response.json();
  assertEquals([response.status, error.type], [503, "unavailable_error"]);
  assertEquals(error.message, "There is not enough memory for a context of plan 10,20");
  assert(Number(response.headers.get("retry-after")) >= 1);
  assertEquals([server.state, await busy(server)], ["ready", 1]);

  stop.abort();
  await running;
  await until("nothing is in flight", () => server.inFlight === 0);
  const later = await json(server, "/completion", { ...short, repeat_layers: "10,20" });
  assertEquals([later.rys.plan, later.tokens_predicted], ["10,20", 2]);
  assertEquals(await metric(server, "rys_reloads_total"), 0);
});

test("a GPU without room for the first context is why the server does not start", async () => {
  const gpu = recording({ memory: 5_000_000 });
  const server = createServer({ ...OPTIONS, nCtx: 512, load: gpu.load });
  const why = await server.ready.then(() => "", (error) => error.message);
  assert(why.includes("the GPU has no room for a buffer of "), why);
  assertEquals(server.state, "failed");
  await refusal(server, 503, "/health");
  await server.close();
});

test("a lost GPU is reported to the requests that ran, and the model is loaded again", async () => {
  const gpu = recording({ loseAfterSubmits: 500 });
  const told: ModelInfo[] = [];
  await using server = await ready({
    nCtx: 2048,
    load: gpu.load,
    onModel: (info) => told.push(info),
  });
  const streamed = await send(server, "/completion", { ...ENDLESS, model: "deep", stream: true });
  const read = events(streamed);
  const whole = await send(server, "/completion", ENDLESS);
  const { error } = await whole.json();
  assertEquals([whole.status, error.type], [500, "server_error"]);
  assertEquals((await read).at(-1).error.code, 500);
  await until("it is loaded again", () => server.state === "ready");
  const short = { prompt: "Once", n_predict: 2, ignore_eos: true };
  const answer = await json(server, "/completion", { ...short, model: "deep" });
  assertEquals([answer.rys.n_layer_eff, answer.tokens_predicted], [48, 2]);
  assertEquals(await metric(server, "rys_reloads_total"), 1);
  assertEquals(told.map((info) => info.gpu?.layers), [41, 41]);
});
