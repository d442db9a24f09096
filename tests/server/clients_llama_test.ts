// What clients written for llama-server expect of its own routes: the expectations of its tests, in numbers of the demo
// model.

import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { sseParser } from "../../src/engine/sse.ts";
import { API_KEY, listen, testsOn } from "./_clients.ts";

const test = testsOn();

/** The parts of answers that are looked at. */
interface Answer {
  content: string;
  tokens: number[];
  stop: boolean;
  stop_type: string;
  stopping_word: string;
  truncated: boolean;
  has_new_line: boolean;
  tokens_predicted: number;
  tokens_evaluated: number;
  prompt: string;
  generation_settings: {
    n_predict: number;
    seed: number;
    logit_bias: { bias: number | null; token: number }[];
  };
  timings: {
    prompt_n: number;
    cache_n: number;
    predicted_n: number;
    predicted_per_second: number;
  };
  completion_probabilities: {
    id: number;
    token: string;
    bytes: number[];
    logprob: number;
    prob: number;
    top_logprobs: { id: number; token: string; logprob: number; bytes: number[] }[];
    top_probs: { id: number; prob: number }[];
  }[];
  prompt_progress?: { total: number; cache: number; processed: number };
  choices: { index: number; finish_reason: string; text: string; message: { content: string } }[];
  error: { code: number; message: string; type: string };
}

async function ask<T = Answer>(
  origin: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: T }> {
  const response = await fetch(`${origin}${path}`, {
    headers: { authorization: `Bearer ${API_KEY}` },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

/** The events of a stream. */
async function stream(origin: string, path: string, body: object): Promise<Answer[]> {
  const response = await fetch(`${origin}${path}`, {
    headers: { authorization: `Bearer ${API_KEY}` },
    method: "POST",
    body: JSON.stringify({ ...body, stream: true }),
  });
  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "text/event-stream");
  const parse = sseParser();
  const events: Answer[] = [];
  for await (const bytes of response.body!) events.push(...parse(bytes) as Answer[]);
  return events;
}

const story = { prompt: "Once upon a time", n_predict: 8, temperature: 0, cache_prompt: false };

test("/completion says how much it read and wrote, and why it stopped", async (origin) => {
  const { status, body } = await ask(origin, "/completion", story);
  assertEquals(status, 200);
  assertEquals([body.tokens_evaluated, body.timings.prompt_n, body.timings.cache_n], [4, 4, 0]);
  assertEquals([body.tokens_predicted, body.timings.predicted_n], [8, 8]);
  assertEquals([body.stop, body.stop_type, body.stopping_word], [true, "limit", ""]);
  assertEquals([body.truncated, body.has_new_line], [false, false]);
  assertEquals([body.generation_settings.n_predict, body.prompt], [8, "Once upon a time"]);
  assertEquals(body.tokens, []);
  assertEquals(body.content, " there lived a big boy in a light");
});

test("/completion returns tokens when asked, and they are the text", async (origin) => {
  const { body } = await ask(origin, "/completion", { ...story, return_tokens: true });
  assertEquals(body.tokens.length, 8);
  const { body: text } = await ask(origin, "/detokenize", { tokens: body.tokens });
  assertEquals(text.content, body.content);
});

test("/completion streams the same text, with all there is to know at the end", async (origin) => {
  const { body } = await ask(origin, "/completion", story);
  const events = await stream(origin, "/completion", story);
  const last = events.pop()!;
  assertEquals(events.map(({ content }) => content).join(""), body.content);
  assert(events.every(({ stop, tokens }) => !stop && tokens.length > 0));
  assertEquals([last.stop, last.stop_type, last.timings.predicted_n], [true, "limit", 8]);
  assertEquals(last.generation_settings.n_predict, 8);
});

test("/completion takes tokens, texts and both in one, and lists of them", async (origin) => {
  const { body: { tokens } } = await ask(origin, "/tokenize", { content: story.prompt });
  const text = async (prompt: unknown) => {
    const { status, body } = await ask<Answer | Answer[]>(origin, "/completion", {
      ...story,
      prompt,
    });
    assertEquals(status, 200);
    return [body].flat().map(({ content }) => content);
  };
  const [content] = await text(story.prompt);
  assertEquals(await text(tokens), [content]);
  assertEquals((await text([...tokens.slice(0, 2), story.prompt])).length, 1);
  assertEquals(await text([story.prompt, tokens]), [content, content]);
  assertEquals(await text({ prompt_string: story.prompt }), [content]);
});

test("/completion cuts its answer to the fields that are asked for", async (origin) => {
  const { body } = await ask<Record<string, unknown>>(origin, "/completion", {
    ...story,
    response_fields: ["content", "generation_settings/n_predict", "prompt"],
  });
  assertEquals(body["generation_settings/n_predict"], 8);
  assertEquals(body["prompt"], story.prompt);
  assertEquals(typeof body["content"], "string");
  assert(!("timings" in body));
});

test("/completion gives probabilities of each token, before and after sampling", async (origin) => {
  const { body } = await ask(origin, "/completion", { ...story, n_probs: 4 });
  assertEquals(body.completion_probabilities.length, 8);
  for (const one of body.completion_probabilities) {
    assertEquals(one.bytes, [...new TextEncoder().encode(one.token)]);
    assert(one.logprob <= 0);
    assertEquals(one.top_logprobs.length, 4);
    assertEquals(one.top_logprobs[0]!.id, one.id);
  }
  const events = await stream(origin, "/completion", { ...story, n_probs: 4 });
  assertEquals(
    events.slice(0, -1).flatMap((event) => event.completion_probabilities).map(({ id }) => id),
    body.completion_probabilities.map(({ id }) => id),
  );
  const after = await ask(origin, "/completion", {
    ...story,
    temperature: 1,
    n_probs: 4,
    post_sampling_probs: true,
  });
  for (const one of after.body.completion_probabilities) {
    assert(one.prob > 0 && one.prob <= 1);
    assert(one.top_probs.length <= 4 && one.top_probs.every(({ prob }) => prob > 0));
  }
});

test("/completion keeps tokens out by logit_bias in each of its forms", async (origin) => {
  const { body } = await ask(origin, "/completion", story);
  assert(body.content.includes(" big"));
  const { body: { tokens } } = await ask(origin, "/tokenize", { content: " big" });
  const [big] = tokens;
  const forms = [[[big, -100]], { [String(big)]: -100 }, [[" big", false]], { " big": -100 }];
  for (const logit_bias of forms) {
    const { status, body } = await ask(origin, "/completion", { ...story, logit_bias });
    assertEquals([status, JSON.stringify(logit_bias)], [200, JSON.stringify(logit_bias)]);
    assert(!body.content.includes(" big"), body.content);
  }
});

test("/completion goes on beyond the end where it is told to ignore it", async (origin) => {
  const request = { ...story, prompt: "The capital of France is", n_predict: 40 };
  const ignoring = await ask(origin, "/completion", { ...request, ignore_eos: true });
  assertEquals(ignoring.body.tokens_predicted, 40);
  const { logit_bias } = ignoring.body.generation_settings;
  assert(logit_bias.length > 0 && logit_bias.every(({ bias }) => bias === null));
  const plain = await ask(origin, "/completion", request);
  assertEquals(plain.body.generation_settings.logit_bias, []);
});

test("/completion repeats an answer with its seed", async (origin) => {
  const text = async (seed: number) => {
    const { body } = await ask(origin, "/completion", {
      ...story,
      n_predict: 16,
      temperature: 1.2,
      seed,
    });
    assertEquals(body.generation_settings.seed, seed);
    return body.content;
  };
  const first = await text(5);
  // Beside others a sum can differ in its last digits, so only requests one after another have to agree.
  assertEquals(await text(5), first);
  assertNotEquals(await text(6), first);
});

test("/completion stops at a stop string and names it", async (origin) => {
  const { body } = await ask(origin, "/completion", { ...story, n_predict: 40, stop: ["boy in"] });
  assertEquals(body.content, " there lived a big ");
  assertEquals([body.stop_type, body.stopping_word], ["word", "boy in"]);
});

test("/completion uses what the slot has of a prompt again", async (origin) => {
  const prompt = "The code of the fox is 48. The code of the owl is 22. ".repeat(6);
  const run = async (text: string) => {
    const { body } = await ask(origin, "/completion", {
      ...story,
      prompt: text,
      n_predict: 2,
      cache_prompt: true,
      id_slot: 0,
    });
    return body.timings;
  };
  const first = await run(prompt);
  const second = await run(`${prompt}What is the code of the fox?`);
  assert(second.cache_n >= first.prompt_n - 1, JSON.stringify([first, second]));
  assert(second.prompt_n < 20);
});

test("/v1/chat/completions tells its progress through a prompt, and its speed at each token", async (origin) => {
  const events = await stream(origin, "/v1/chat/completions", {
    messages: [{ role: "user", content: "The capital of France is Paris. ".repeat(100) }],
    max_tokens: 4,
    temperature: 0,
    ignore_eos: true,
    return_progress: true,
    timings_per_token: true,
    cache_prompt: false,
  });
  const progress = events.flatMap((event) => event.prompt_progress ?? []);
  assert(progress.length >= 2);
  assertEquals(progress[0]!.processed, progress[0]!.cache);
  assert(progress.every(({ total }) => total === progress[0]!.total && total > 512));
  assertEquals(progress.at(-1)!.processed, progress.at(-1)!.total);
  for (let i = 1; i < progress.length; i++) {
    assert(progress[i]!.processed > progress[i - 1]!.processed);
  }
  assert(events.filter((event) => event.timings?.predicted_n > 0).length >= 4);
});

test("/v1/chat/completions shows the prompt when it is asked to be verbose", async (origin) => {
  const request = { messages: [{ role: "user", content: "Hello" }], max_tokens: 1 };
  const { body } = await ask<{ __verbose?: { prompt: string } }>(
    origin,
    "/v1/chat/completions",
    { ...request, verbose: true },
  );
  assertEquals(
    body.__verbose!.prompt,
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
  );
  const plain = await ask<object>(origin, "/v1/chat/completions", request);
  assert(!("__verbose" in plain.body));
});

test("/v1/chat/completions goes on with an answer that is begun, and refuses two at the end", async (origin) => {
  const messages = [
    { role: "user", content: "What is the capital of France?" },
    { role: "assistant", content: "The capital of" },
  ];
  const { body } = await ask(origin, "/v1/chat/completions", {
    messages,
    temperature: 0,
    max_tokens: 20,
  });
  assert(body.choices[0]!.message.content.endsWith(" France is Paris."));
  const both = await ask(origin, "/v1/chat/completions", {
    messages: [...messages, messages[1]],
    max_tokens: 1,
  });
  assertEquals(both.status, 400);
  const excluded = await ask(origin, "/v1/chat/completions", {
    messages,
    max_tokens: 1,
    add_generation_prompt: true,
    continue_final_message: true,
  });
  assertEquals(excluded.status, 400);
});

test("/tokenize and /detokenize are each other's way back, with pieces when asked", async (origin) => {
  const content = "What is the capital of 媽 and 🤗?\n";
  const { body } = await ask(origin, "/tokenize", { content });
  assertEquals((await ask(origin, "/detokenize", { tokens: body.tokens })).body.content, content);
  const { body: { tokens } } = await ask<{ tokens: { id: number; piece: string | number[] }[] }>(
    origin,
    "/tokenize",
    { content, with_pieces: true },
  );
  assertEquals(tokens.map(({ id }) => id), body.tokens);
  const bytes = tokens.flatMap(({ piece }) =>
    typeof piece === "string" ? [...new TextEncoder().encode(piece)] : piece
  );
  assertEquals(new TextDecoder().decode(Uint8Array.from(bytes)), content);
});

test("/apply-template gives the prompt, also without the answer's beginning", async (origin) => {
  const messages = [{ role: "system", content: "You test." }, { role: "user", content: "Hi" }];
  const { body } = await ask(origin, "/apply-template", { messages });
  assertEquals(
    body.prompt,
    "<|im_start|>system\nYou test.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
  );
  const open = await ask(origin, "/apply-template", { messages, add_generation_prompt: false });
  assert(!open.body.prompt.includes("assistant"), open.body.prompt);
});

test("/props and /slots tell of the slots", async (origin) => {
  const { body } = await ask<{
    total_slots: number;
    model_path: string;
    chat_template: string;
    default_generation_settings: { n_ctx: number; params: { seed: number } };
  }>(origin, "/props");
  assertEquals(body.total_slots, 2);
  assert(body.chat_template.includes("<|im_start|>"));
  assertEquals(body.default_generation_settings.n_ctx, 1024);
  const slots = await ask<{ id: number; is_processing: boolean; n_ctx: number }[]>(
    origin,
    "/slots",
  );
  assert(slots.body.length >= 2);
  assert(slots.body.every(({ n_ctx, is_processing }) => n_ctx === 1024 && !is_processing));
});

test("/embeddings takes texts and tokens, alone and in lists, and counts them", async (origin) => {
  interface Embeddings {
    data: { index: number; embedding: number[] }[];
    usage: { prompt_tokens: number; total_tokens: number };
    error: { code: number };
  }
  const embed = async (input: unknown) => {
    const { status, body } = await ask<Embeddings>(origin, "/v1/embeddings", { input });
    assertEquals([status, JSON.stringify(input)], [200, JSON.stringify(input)]);
    return body;
  };
  const { body: { tokens } } = await ask(origin, "/tokenize", { content: "a cat" });
  const [one] = (await embed("a cat")).data;
  for (const input of [tokens, ["a cat"], [tokens], ["a cat", tokens], [tokens, [3, 4, 5]]]) {
    const { data } = await embed(input);
    assertEquals(
      data.length,
      Array.isArray(input[0]) || typeof input[0] === "string" ? input.length : 1,
    );
    const distance = data[0]!.embedding.map((x, i) => x - one!.embedding[i]!);
    assert(Math.hypot(...distance) < 1e-3);
  }
  const { usage } = await embed(["a cat", "a cat"]);
  assertEquals([usage.prompt_tokens, usage.total_tokens], [2 * tokens.length, 2 * tokens.length]);
});

test("/infill and /rerank refuse a model that was not made for them", async (origin) => {
  const infill = await ask(origin, "/infill", {
    input_prefix: "a",
    input_suffix: "b",
    n_predict: 2,
  });
  assertEquals([infill.status, infill.body.error.code], [501, 501]);
  const rerank = await ask(origin, "/v1/rerank", { query: "a", documents: ["b", "c"] });
  assertEquals([rerank.status, rerank.body.error.type], [501, "not_supported_error"]);
});

test("more requests than slots are all answered, each with its own text", async (origin) => {
  const prompts = [
    "Once upon a time",
    "One morning, Anna",
    "12 plus 7 is",
    "The capital of Norway is",
  ];
  const run = async (prompt: string) =>
    (await ask(origin, "/completion", {
      ...story,
      prompt,
      n_predict: 16,
    })).body.content;
  const alone: string[] = [];
  for (const prompt of prompts) alone.push(await run(prompt));
  const together = await Promise.all([...prompts, ...prompts].map(run));
  assertEquals(together, [...alone, ...alone]);
  assertEquals(new Set(alone).size, prompts.length);
});

Deno.test({
  name:
    "llama-server's context shift goes on where the context is full, and is off unless asked for",
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    const request = {
      prompt: "The boy was very happy. ".repeat(30),
      n_predict: 200,
      temperature: 0,
      ignore_eos: true,
    };
    const options = { nCtx: 256, nParallel: 1, context: { threads: 1 } };
    {
      await using server = await listen(options);
      const { body } = await ask(server.origin, "/completion", request);
      assertEquals([body.truncated, body.stop_type], [true, "limit"]);
      // All of the context, and no more.
      assertEquals(body.tokens_evaluated + body.tokens_predicted, 256);
    }
    await using server = await listen({ ...options, context: { threads: 1, contextShift: true } });
    const { body } = await ask(server.origin, "/completion", request);
    assertEquals([body.truncated, body.tokens_predicted], [true, 200]);
  },
});
