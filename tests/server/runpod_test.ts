// The queue worker as a program of its own, `serve --runpod-queue`, with the demo model, against the host's side on the
// loopback.

import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { inRepo } from "../engine/_engine.ts";
import { type Child, startChild } from "./_child.ts";
import { CAPITAL } from "./_clients.ts";
import { ControlPlane, type JobRecord } from "./_runpod.ts";

const chat = {
  messages: [{ role: "user", content: CAPITAL.question }],
  temperature: 0,
  max_tokens: 20,
};

const endless = { prompt: "Once upon a time", max_tokens: 900, ignore_eos: true, stream: true };

interface Answer {
  choices: { text?: string; message?: { content: string }; tokens?: string[] }[];
  usage: { completion_tokens: number; input: number; output: number };
  rys: { plan: string; n_layer_eff: number };
  model: string;
  data: { id: string; embedding: number[] }[];
}

const output = <T = Answer>(job: JobRecord): T => {
  assertEquals(job.result?.error, undefined);
  return job.result!.output as T;
};

const failure = (job: JobRecord): { code: number; message: string; type: string } => {
  assertEquals(job.status, "FAILED");
  return JSON.parse(job.result!.error!);
};

let shared: Promise<{ host: ControlPlane; child: Child }> | undefined;

/** A test on one worker that is at work; it must have kept to the host's rules. */
function test(name: string, fn: (host: ControlPlane, child: Child) => Promise<void>): void {
  Deno.test({
    name,
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const { host, child } = await (shared ??= (async () => {
        const host = new ControlPlane();
        const child = await startChild(
          { runpodQueue: true, aliases: { deep: "26,34" }, apiKeys: ["key"] },
          { env: host.env },
        );
        return { host, child };
      })());
      await fn(host, child);
      assertEquals(host.violations, []);
    },
  });
}

Deno.test.afterAll(async () => {
  const { host, child } = await shared ?? {};
  const ended = await child?.stop();
  await host?.[Symbol.asyncDispose]();
  assertEquals(ended ?? { code: 0, stdout: "" }, { code: 0, stdout: "" });
});

test("serve --runpod-queue answers the body of an OpenAI request", async (host) => {
  const answer = output(await host.ended(host.submit({ model: "deep", ...chat })));
  assertEquals(answer.choices[0]!.message!.content, CAPITAL.answer);
  assertEquals([answer.model, answer.rys.plan, answer.rys.n_layer_eff], ["deep", "26,34", 48]);
  const plain = output(
    await host.ended(
      host.submit({ prompt: "12 plus 7 is", max_tokens: 3, repeat_layers: "33,34" }),
    ),
  );
  assertEquals([plain.rys.n_layer_eff, plain.usage.completion_tokens], [41, 3]);
});

test("serve --runpod-queue answers what Runpod's OpenAI address sends", async (host) => {
  const job = await host.ended(
    host.submit({
      openai_route: "/v1/chat/completions",
      openai_input: { model: "demo@26,34", ...chat },
    }),
  );
  const [answer] = output<Answer[]>(job);
  assertEquals(answer!.choices[0]!.message!.content, CAPITAL.answer);
  assertEquals(answer!.rys.n_layer_eff, 48);
  assertEquals([job.parts, job.hasParts], [[answer], true]);
  const models = output<Answer[]>(await host.ended(host.submit({ openai_route: "/v1/models" })));
  assertEquals(models[0]!.data.map(({ id }) => id), ["demo", "deep"]);
});

test("serve --runpod-queue streams events as text, and the result has them all", async (host) => {
  const job = await host.ended(
    host.submit({
      openai_route: "/v1/chat/completions",
      openai_input: { model: "deep", ...chat, stream: true },
    }),
  );
  const parts = output<string[]>(job);
  assertEquals(job.parts, parts);
  assert(parts.length > 1, String(parts.length));
  const events = parts.join("").split("\n\n").filter((event) => event !== "");
  assertEquals(events.at(-1), "data: [DONE]");
  const text = events.slice(0, -1).map((event) => {
    const chunk = JSON.parse(event.replace(/^data: /, ""));
    return chunk.choices[0]?.delta.content ?? "";
  });
  assertEquals(text.join(""), CAPITAL.answer);
});

test("serve --runpod-queue streams objects for the body of an OpenAI request", async (host) => {
  const job = await host.ended(host.submit({ ...chat, stream: true }));
  const chunks = output<{ choices: { delta: { content?: string } }[] }[]>(job);
  assertEquals(chunks, job.parts.flat());
  assertEquals(
    chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""),
    CAPITAL.answer,
  );
});

test("serve --runpod-queue answers sampling_params as vLLM's worker does", async (host) => {
  const input = {
    messages: chat.messages,
    sampling_params: { temperature: 0, max_tokens: 20, top_k: -1 },
    repeat_layers: "26,34",
  };
  const whole = output<Answer[]>(await host.ended(host.submit(input)));
  const [{ choices, usage, rys }] = whole as [Answer];
  assertEquals<unknown>(choices, [{ tokens: [CAPITAL.answer] }]);
  assertEquals([usage.input, usage.output, rys.n_layer_eff], [15, 8, 48]);
  const job = await host.ended(host.submit({ ...input, stream: true }));
  const parts = output<Answer[]>(job);
  assertEquals(parts.flatMap(({ choices }) => choices[0]!.tokens!).join(""), CAPITAL.answer);
  assertEquals(parts.flatMap(({ usage }) => usage ? [usage.output] : []), [8]);
});

test("serve --runpod-queue embeds and ranks", async (host) => {
  const { data } = output(await host.ended(host.submit({ input: ["a cat", "a wolf"] })));
  assertEquals(data.map(({ embedding }) => embedding.length), [64, 64]);
  const counted = output<{ tokens: number[] }[]>(
    await host.ended(
      host.submit({ openai_route: "/tokenize", openai_input: { content: "Once upon" } }),
    ),
  );
  assert(counted[0]!.tokens.length > 0);
});

test("serve --runpod-queue: plans of several jobs at once do not mix", async (host) => {
  const ids = ["none", "26,34", "33,34", "26,34"].map((repeat_layers) =>
    host.submit({
      messages: [{ role: "user", content: "Tell me a story about a fox." }],
      temperature: 0,
      max_tokens: 40,
      repeat_layers,
    })
  );
  const answers = await Promise.all(ids.map(async (id) => output(await host.ended(id))));
  assertEquals(answers.map(({ rys }) => rys.n_layer_eff), [40, 48, 41, 48]);
  const texts = answers.map(({ choices }) => choices[0]!.message!.content);
  assertEquals(texts[1], texts[3]);
  assertNotEquals(texts[0], texts[1]);
});

test("serve --runpod-queue: a wrong job fails with the reason, and the next is answered", async (host) => {
  const wrong: [unknown, number, string][] = [
    [{ ...chat, repeat_layers: "34,26" }, 400, "26"],
    [{ ...chat, model: "demo@26," }, 400, "expected a layer index"],
    [{ openai_route: "/v1/chat/completions", openai_input: { messages: 7 } }, 400, "messages"],
    [{ openai_route: "/props", openai_input: {} }, 400, "openai_route"],
    [{ prompt: "word ".repeat(3000), max_tokens: 1 }, 400, "context"],
    ["text", 400, "input must be an object"],
    [{ ...chat, response_format: { type: "sound" } }, 400, "response_format"],
  ];
  for (const [input, code, message] of wrong) {
    const error = failure(await host.ended(host.submit(input)));
    assertEquals([error.code, error.message], [code, error.message]);
    assert(error.message.includes(message), error.message);
  }
  const answer = output(await host.ended(host.submit(chat)));
  assertEquals(answer.choices[0]!.message!.content, CAPITAL.answer);
});

test(
  "serve --runpod-queue: a cancelled job stops computing and sends no result",
  async (host, child) => {
    const id = host.submit(endless);
    await host.until("parts", () => host.jobs.get(id)!.parts.length >= 2);
    await host.until("a heartbeat with the job", () => host.pings.at(-1)?.jobIds.includes(id));
    host.cancel(id);
    await host.until("a heartbeat without it", () => host.pings.at(-1)!.jobIds.length === 0);
    const slots = await (await fetch(`${child.origin}/slots`, {
      headers: { authorization: "Bearer key" },
    })).json();
    assert(slots.every((slot: { is_processing: boolean }) => !slot.is_processing));
    assertEquals(host.jobs.get(id)!.result, undefined);
    const answer = output(await host.ended(host.submit(chat)));
    assertEquals(answer.choices[0]!.message!.content, CAPITAL.answer);
  },
);

test("serve --runpod-queue: parts that the host did not take are in the result", async (host) => {
  for (let i = 0; i < 3; i++) host.faults.push({ route: "job-stream", status: 400 });
  host.faults.push({ route: "job-done", status: 500, headers: { "retry-after": "0.1" } });
  const job = await host.ended(host.submit({ ...chat, stream: true }));
  const chunks = output<{ choices: { delta: { content?: string } }[] }[]>(job);
  assert(job.parts.flat().length < chunks.length);
  assertEquals(
    chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""),
    CAPITAL.answer,
  );
});

Deno.test("serve --runpod-queue takes as many jobs at once as the server has slots", async () => {
  await using host = new ControlPlane();
  await using child = await startChild({ runpodQueue: true, nParallel: undefined }, {
    env: host.env,
  });
  await host.until("a request for jobs", () => host.takes.length > 0);
  const { total_slots } = await (await fetch(`${child.origin}/props`)).json();
  assertEquals([host.takes[0]!.count, total_slots], [4, 4]);
  assertEquals((await child.stop()).code, 0);
});

Deno.test("serve --runpod-queue: SIGTERM lets a job end, takes no other, and ends with 0", async () => {
  await using host = new ControlPlane();
  await using child = await startChild({ runpodQueue: true, nParallel: 1 }, { env: host.env });
  const id = host.submit({ ...endless, max_tokens: 60 });
  await host.until("parts", () => host.jobs.get(id)!.parts.length >= 1);
  const late = host.submit(chat);
  const { code, stdout } = await child.stop("SIGTERM");
  assertEquals([code, stdout], [0, ""]);
  assertEquals([host.jobs.get(id)!.status, host.jobs.get(late)!.status], ["COMPLETED", "IN_QUEUE"]);
  const chunks = output<{ choices: { finish_reason: string | null }[] }[]>(host.jobs.get(id)!);
  assertEquals(chunks.at(-1)!.choices[0]!.finish_reason, "length");
  assertEquals(host.violations, []);
});

Deno.test("serve --runpod-queue: SIGTERM gives back a job that would take too long", async () => {
  await using host = new ControlPlane();
  await using child = await startChild(
    { runpodQueue: true, nParallel: 1, drainTimeout: 0.3 },
    { env: host.env },
  );
  const id = host.submit(endless);
  await host.until("parts", () => host.jobs.get(id)!.parts.length >= 1);
  const { code } = await child.stop("SIGTERM");
  assertEquals(code, 0);
  const job = host.jobs.get(id)!;
  assertEquals(failure(job).type, "worker_stopped");
  assertEquals(host.violations, []);
});

Deno.test("serve --runpod-queue tells the host of a model that cannot be loaded, and ends with 1", async () => {
  await using host = new ControlPlane();
  const model = await Deno.makeTempFile({ suffix: ".gguf" });
  try {
    // Whole as far as its header goes, but without most of its weights.
    const bytes = await Deno.readFile(inRepo("models/demo.gguf"));
    for (const content of [bytes.slice(0, bytes.length / 2), new TextEncoder().encode("<html>")]) {
      await Deno.writeFile(model, content);
      host.pings.length = 0;
      const { code, stderr } = await new Deno.Command(Deno.execPath(), {
        args: [
          ...["run", "-A", "--no-check", "--config", inRepo("deno.json"), inRepo("mod.ts")],
          ...["serve", "-m", model, "--port", "0", "--runpod-queue"],
        ],
        env: { ...host.env, HOST: "127.0.0.1" },
        stdin: "null",
      }).output();
      assertEquals(code, 1, new TextDecoder().decode(stderr));
      const { query } = host.pings.find(({ query }) => query.has("status"))!;
      assertEquals([query.get("status"), query.get("check")], ["unhealthy", "model"]);
      assert(query.get("reason")!.length > 10);
    }
    assertEquals(host.violations, []);
    assertEquals(host.takes, []);
  } finally {
    await Deno.remove(model);
  }
});

Deno.test("serve --runpod-queue without the host's variables is wrong usage that names one", async () => {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "-A", "--no-check", "--config", inRepo("deno.json"), inRepo("mod.ts")],
      ...["serve", "-m", inRepo("models/demo.gguf"), "--port", "0", "--runpod-queue"],
    ],
    env: { RUNPOD_WEBHOOK_GET_JOB: "", RUNPOD_WEBHOOK_POST_OUTPUT: "" },
    stdin: "null",
  }).output();
  assertEquals(code, 2);
  assert(new TextDecoder().decode(stderr).includes("RUNPOD_WEBHOOK_GET_JOB is not set"));
});
