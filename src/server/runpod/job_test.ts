import { assertEquals, assertThrows } from "@std/assert";
import { JobInputError, jobRequest } from "./job.ts";

Deno.test("jobRequest() reads the body of an OpenAI request", () => {
  const messages = [{ role: "user", content: "Hello" }];
  const routes = {
    "/v1/chat/completions": { model: "demo@26,34", messages, stream: true },
    "/v1/completions": { prompt: "Once", repeat_layers: "26,34" },
    "/v1/embeddings": { input: ["a", "b"] },
    "/v1/rerank": { query: "a", documents: ["b"] },
  };
  for (const [path, body] of Object.entries(routes)) {
    assertEquals(jobRequest(body), { method: "POST", path, body, form: "objects" });
  }
});

Deno.test("jobRequest() reads a route with its body", () => {
  const body = { messages: [], model: "demo" };
  for (const route of ["/v1/chat/completions", "/chat/completions"]) {
    assertEquals(jobRequest({ openai_route: route, openai_input: body }), {
      method: "POST",
      path: "/v1/chat/completions",
      body,
      form: "events",
    });
  }
  assertEquals(jobRequest({ openai_route: "/v1/models" }), {
    method: "GET",
    path: "/v1/models",
    body: undefined,
    form: "events",
  });
});

Deno.test("jobRequest() takes the plan from beside a route's body, unless the body has one", () => {
  const plan = (openai_input: Record<string, unknown>) =>
    jobRequest({ openai_route: "/v1/completions", openai_input, repeat_layers: "1,2" })
      .body?.["repeat_layers"];
  assertEquals(plan({ prompt: "a" }), "1,2");
  assertEquals(plan({ prompt: "a", repeat_layers: "3,4" }), "3,4");
});

Deno.test("jobRequest() translates vLLM's sampling parameters", () => {
  assertEquals(
    jobRequest({
      prompt: "Once",
      sampling_params: {
        max_tokens: 8,
        top_k: -1,
        repetition_penalty: 1.1,
        best_of: 1,
        stop_token_ids: [],
        prompt_logprobs: null,
        stop: ["."],
      },
      repeat_layers: "26,34",
      max_batch_size: 10,
      stream: true,
    }),
    {
      method: "POST",
      path: "/v1/completions",
      body: {
        max_tokens: 8,
        top_k: 0,
        repeat_penalty: 1.1,
        stop: ["."],
        prompt: "Once",
        repeat_layers: "26,34",
        stream: true,
        stream_options: { include_usage: true },
      },
      form: "tokens",
    },
  );
});

Deno.test("jobRequest() makes a chat of a prompt where vLLM's worker would", () => {
  const { path, body } = jobRequest({
    prompt: "Hello",
    apply_chat_template: true,
    sampling_params: {},
  });
  assertEquals([path, body], ["/v1/chat/completions", {
    messages: [{ role: "user", content: "Hello" }],
  }]);
});

Deno.test("jobRequest() refuses parameters that it would have to ignore", () => {
  const values: Record<string, unknown> = {
    best_of: 2,
    use_beam_search: true,
    min_tokens: 1,
    stop_token_ids: [3],
    bad_words: ["x"],
    include_stop_str_in_output: true,
    prompt_logprobs: 1,
    length_penalty: 2,
  };
  for (const [name, value] of Object.entries(values)) {
    assertThrows(
      () => jobRequest({ prompt: "a", sampling_params: { [name]: value } }),
      JobInputError,
      `input.sampling_params.${name} is not supported`,
    );
  }
});

Deno.test("jobRequest() opens no route that changes the server", () => {
  const routes = [
    "/props",
    "/slots/0",
    "/lora-adapters",
    "/v1/models/load",
    "/../health",
    7,
    "toString",
  ];
  for (const route of routes) {
    assertThrows(
      () => jobRequest({ openai_route: route, openai_input: {} }),
      JobInputError,
      `input.openai_route is ${JSON.stringify(route)}; expected one of /v1/models`,
    );
  }
});

Deno.test("jobRequest() says what an input lacks", () => {
  for (
    const [input, message] of [
      [undefined, "input must be an object; it is missing"],
      [null, "input must be an object; it is null"],
      ["text", 'input must be an object; it is "text"'],
      [[], "input must be an object; it is a list"],
      [{}, "input has nothing; expected messages, prompt"],
      [{ temperature: 1 }, "input has temperature; expected messages, prompt"],
      [{ openai_route: "/v1/completions" }, "input.openai_input must be an object; it is missing"],
      [{ sampling_params: 1 }, "input.sampling_params must be an object; it is 1"],
      [{ sampling_params: {} }, "input.sampling_params needs a prompt or messages"],
    ] as const
  ) {
    assertThrows(() => jobRequest(input), JobInputError, message);
  }
});
