// Shared by the tests with real clients: a server on the loopback for each test file.

import { serve, type ServeOptions } from "@rys/edge/serve";
import { inRepo } from "../engine/_engine.ts";

/** The key that the servers ask for. */
export const API_KEY = "key-of-the-test";

/** Always the likeliest token. Anthropic's client has no name for this any more, the server has. */
export const GREEDY = { temperature: 0 };

/** Text that the model is sure of. */
export const CAPITAL = {
  question: "What is the capital of France?",
  answer: "The capital of France is Paris.",
};

/** What the servers of these tests have in common. */
export const OPTIONS = {
  model: inRepo("models/demo.gguf"),
  host: "127.0.0.1",
  port: 0,
  nCtx: 1024,
  nParallel: 2,
  aliases: { deep: "26,34", plain: "none" },
  apiKeys: [API_KEY],
  context: { threads: 1 },
} satisfies ServeOptions;

/** A server that listens. */
export interface Listening extends AsyncDisposable {
  /** `http://127.0.0.1:port`. */
  readonly origin: string;
}

/**
 * Starts a server.
 *
 * @param options What is other than {@linkcode OPTIONS}.
 * @param isReady Whether to wait until the model is loaded.
 */
export async function listen(
  options: Partial<ServeOptions> = {},
  isReady = true,
): Promise<Listening> {
  const serving = await serve({ ...OPTIONS, ...options });
  if (isReady) await serving.server.ready;
  return {
    origin: serving.url,
    [Symbol.asyncDispose]: () => serving.close(),
  };
}

/**
 * Tests on one server, which starts with the first of them and ends after the last.
 *
 * @param options What is other than {@linkcode OPTIONS}.
 * @returns Makes a test.
 */
export function testsOn(
  options: Partial<ServeOptions> = {},
): (name: string, fn: (origin: string) => Promise<void>) => void {
  let shared: Promise<Listening> | undefined;
  Deno.test.afterAll(async () => await (await shared)?.[Symbol.asyncDispose]());
  return (name, fn) =>
    Deno.test({
      name,
      // The server starts threads as it needs them, and clients keep connections.
      sanitizeOps: false,
      sanitizeResources: false,
      fn: async () => await fn((await (shared ??= listen(options))).origin),
    });
}

/** Waits until something is so. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 300_000; Date.now() < end;) {
    if (await isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`not within five minutes: ${what}`);
}

/** Asks a server for JSON. */
export async function getJson(origin: string, path: string): Promise<unknown> {
  const response = await fetch(`${origin}${path}`, {
    headers: { authorization: `Bearer ${API_KEY}` },
  });
  return await response.json();
}

/** Whether a slot of the server, on any plan, computes. */
export async function isBusy(origin: string): Promise<boolean> {
  const slots = await getJson(origin, "/slots");
  if (!Array.isArray(slots)) throw new Error(`/slots: ${JSON.stringify(slots)}`);
  return slots.some((slot) => slot.is_processing);
}

/**
 * Options of a server whose model, small as it is, calls tools: a template with tools, in which a call stands between
 * `@` and `$`, and a leaning towards these. The grammar that upstream makes of the tools does the rest: what it allows
 * nowhere else, the leaning cannot bring.
 */
export const TOOLS_SERVER: Partial<ServeOptions> = {
  context: {
    threads: 1,
    chatTemplate: `
{%- if tools %}{{ "<|im_start|>system\\n" }}
{%- for tool in tools %}{{ tool | tojson }}{{ "\\n" }}{%- endfor %}{{ "<|im_end|>\\n" }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == "assistant" %}
{{- "<|im_start|>assistant\\n" }}
{%- if message.content %}{{ message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '@{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}$' }}
{%- endfor %}
{{- "<|im_end|>\\n" }}
{%- else %}
{{- "<|im_start|>" + ("user" if message.role == "tool" else message.role) + "\\n" + message.content + "<|im_end|>\\n" }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ "<|im_start|>assistant\\n" }}{%- endif %}`,
    // Tokens of single bytes are 3 + byte; 2 ends a turn. Line breaks and tabs only pad.
    args: [
      ...["67+300", "39+200", "2+400", "13-100", "12-100"].flatMap((
        bias,
      ) => ["--logit-bias", bias]),
    ],
  },
};

/** A tool whose arguments are small numbers. */
export const ADD = {
  name: "add",
  description: "Adds two numbers",
  parameters: {
    type: "object",
    properties: {
      a: { type: "integer", minimum: 0, maximum: 99 },
      b: { type: "integer", minimum: 0, maximum: 99 },
    },
    required: ["a", "b"],
    additionalProperties: false,
  },
} as const;

/**
 * Options of a server whose chat template has thoughts, which `enable_thinking` turns off. What the model thinks and says
 * is laid down by {@linkcode THOUGHT}.
 */
export const THINKING_SERVER: Partial<ServeOptions> = {
  context: {
    threads: 1,
    chatTemplate: `
{%- for message in messages %}
{{- "<|im_start|>" + message.role + "\\n" }}
{%- if message.reasoning_content %}{{ "<think>" + message.reasoning_content + "</think>" }}{%- endif %}
{{- message.content + "<|im_end|>\\n" }}
{%- endfor %}
{%- if add_generation_prompt %}{{ "<|im_start|>assistant\\n" }}
{%- if enable_thinking is defined and enable_thinking is false %}{{ "<think></think>" }}{%- else %}{{ "<think>" }}{%- endif %}
{%- endif %}`,
  },
};

/** A thought and an answer, and the grammar that allows nothing else after `<think>`. */
export const THOUGHT = {
  reasoning: "It is asked",
  answer: "Paris it is",
  grammar: `root ::= "It is asked</think>Paris it is"`,
};
