// Bodies that are wrong in many ways, the same ones for the same seed.

/** A generator of numbers in 0..1 that gives the same ones for the same seed (mulberry32). */
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = a;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const CHAT = { messages: [{ role: "user", content: "Hello" }], max_tokens: 3 };

/** A body for each route that a wrong field is put into. */
export const SOUND: readonly [path: string, body: Record<string, unknown>][] = [
  ["/v1/chat/completions", CHAT],
  ["/completion", { prompt: "Once upon", n_predict: 3 }],
  ["/v1/completions", { prompt: ["Once", "upon"], max_tokens: 2 }],
  ["/v1/messages", { ...CHAT, model: "demo" }],
  ["/v1/responses", { input: "Hello", max_output_tokens: 3 }],
  ["/v1/embeddings", { input: ["Hello", "you"] }],
  ["/embedding", { content: "Hello" }],
  ["/rerank", { query: "a", documents: ["b", "c"] }],
  ["/infill", { input_prefix: "a", input_suffix: "b" }],
  ["/tokenize", { content: "Hello", with_pieces: true }],
  ["/detokenize", { tokens: [70, 71] }],
  ["/apply-template", CHAT],
  ["/v1/messages/count_tokens", CHAT],
  ["/v1/responses/input_tokens", { input: "Hello" }],
  ["/v1/chat/completions/control", { id: "x", action: "reasoning_end" }],
  ["/slots/0?action=erase", {}],
];

/** Names of fields that some route reads. */
const FIELDS = (
  "model repeat_layers prompt messages input content tokens query documents texts stream stream_options n n_cmpl " +
  "n_predict max_tokens max_completion_tokens max_output_tokens temperature top_k top_p min_p top_n_sigma " +
  "xtc_probability xtc_threshold typical_p dynatemp_range dynatemp_exponent repeat_last_n repeat_penalty " +
  "frequency_penalty presence_penalty dry_multiplier dry_base dry_allowed_length dry_penalty_last_n " +
  "dry_sequence_breakers mirostat mirostat_tau mirostat_eta adaptive_target adaptive_decay seed n_probs logprobs " +
  "top_logprobs min_keep backend_sampling post_sampling_probs lora json_schema grammar grammar_lazy grammar_type " +
  "grammar_triggers preserved_tokens chat_format chat_parser generation_prompt parse_tool_calls reasoning_format " +
  "reasoning_control reasoning_budget_tokens reasoning_budget_start_tag reasoning_budget_end_tags logit_bias " +
  "ignore_eos stop samplers id_slot cache_prompt n_cache_reuse n_keep n_discard n_indent t_max_predict_ms " +
  "response_fields return_tokens return_progress timings_per_token verbose sse_ping_interval tools tool_choice " +
  "parallel_tool_calls response_format chat_template_kwargs add_generation_prompt continue_final_message echo " +
  "system thinking reasoning reasoning_effort text instructions metadata user stop_sequences suffix best_of " +
  "encoding_format embd_normalize dimensions top_n input_prefix input_suffix input_extra add_special parse_special " +
  "with_pieces action id filename message_delimiters output_config enable_thinking"
).split(" ");

const LONG = "a".repeat(5000);

/** Values that are at an edge, or of the wrong type. */
const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  -2,
  1,
  2,
  3,
  7,
  1e9,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  2 ** 32,
  2 ** 53,
  -(2 ** 63),
  1e300,
  -1e300,
  1e-300,
  0.5,
  -0.5,
  3.7,
  "",
  "0",
  "auto",
  "none",
  "required",
  "Hello",
  "\u0000",
  "\ud800",
  "\u{10ffff}\u200b\ufeff",
  LONG,
  "26,34",
  "34,26",
  "layers:0..39,0..39",
  "demo@26,34",
  "demo@",
  "../../etc/passwd",
  "file:///etc/passwd",
  "root ::= ",
  "root ::= root",
  'root ::= "a" | root "b"',
  "root ::= [^]",
  'root ::= ("a"{1,99999999}){1,99999999}',
  `root ::= ${"(".repeat(2000)}"a"${")".repeat(2000)}`,
  [],
  [[]],
  [[[[]]]],
  [null],
  [0],
  [-1],
  [1e9],
  [0.5],
  [1, "a", null, {}],
  ["", ""],
  ["Hello", "you"],
  Array(300).fill("x"),
  Array(3000).fill(1),
  {},
  { type: "object" },
  { type: "string", maxLength: 1e9 },
  { type: "string", pattern: "^(a+)+$" },
  { type: "string", pattern: "^" + "(".repeat(500) + "$" },
  { type: "array", minItems: 1e9, items: { type: "string" } },
  { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] },
  { $ref: "#/definitions/none" },
  { $ref: "https://example.com/schema.json" },
  { type: "json_object" },
  {
    type: "json_schema",
    json_schema: { schema: { type: "integer", minimum: -1e300, maximum: 1e300 } },
  },
  { type: "enabled", budget_tokens: 1e18 },
  { type: "function", function: { name: "f" } },
  { include_usage: 1 },
  { "": "" },
  { prompt_string: "Hello" },
  { prompt_string: "Hello", multimodal_data: ["AAAA"] },
  { "5": 1e300, "x": false, "99999999": 1 },
  [[5, 1e300], [1e300, 1], ["x", false], [5]],
  [{ id: 0, scale: 1 }],
  [{ id: 1e9, scale: 1e300 }],
  [{ type: 99, value: "x" }],
  [{ type: 2, value: "(a+)+$" }],
  [{ role: "user" }],
  [{ role: "user", content: null }],
  [{ role: "user", content: [{ type: "text" }] }],
  [{ role: "user", content: [{ type: "image_url", image_url: { url: "file:///etc/passwd" } }] }],
  [{
    role: "user",
    content: [{ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }],
  }],
  [{ role: 5, content: "x" }],
  [{ role: "assistant", content: "x", tool_calls: [{ function: { arguments: "{" } }] }],
  [{ role: "assistant", content: "x" }, { role: "assistant", content: "y" }],
  [{ role: "tool", content: "x", tool_call_id: 5 }],
  [{
    type: "function",
    function: { name: "f", parameters: { type: "object", properties: { a: { type: "string" } } } },
  }],
  [{ type: "function" }],
  [{ type: "function", function: { name: "f", parameters: 5 } }],
  [{ name: "f", input_schema: { type: "object" } }],
  [{ text: "a", filename: "../x" }],
];

/** A value made at random. */
function value(next: () => number, depth = 0): unknown {
  const roll = next();
  if (roll < 0.75 || depth > 3) return VALUES[Math.floor(next() * VALUES.length)];
  const n = Math.floor(next() * 4);
  if (roll < 0.87) return Array.from({ length: n }, () => value(next, depth + 1));
  return Object.fromEntries(
    Array.from({ length: n }, () => [field(next), value(next, depth + 1)]),
  );
}

const field = (next: () => number): string => FIELDS[Math.floor(next() * FIELDS.length)]!;

/** A request that is wrong somewhere, most likely. */
export function wrongBody(next: () => number): { path: string; body: Record<string, unknown> } {
  const [path, sound] = SOUND[Math.floor(next() ** 1.5 * SOUND.length)]!;
  const body: Record<string, unknown> = structuredClone(sound);
  const n = 1 + Math.floor(next() * 3);
  for (let i = 0; i < n; i++) body[field(next)] = value(next);
  return { path, body };
}

/** Text that is nearly JSON: cut, doubled, with bytes changed, or with numbers that no double holds. */
export function brokenText(next: () => number): Uint8Array<ArrayBuffer> {
  const { body } = wrongBody(next);
  let text = JSON.stringify(body);
  const roll = next();
  const at = Math.floor(next() * text.length);
  if (roll < 0.2) text = text.slice(0, at);
  else if (roll < 0.3) text = text.slice(0, at) + text;
  else if (roll < 0.4) text = text.replace(/\d+/, "9".repeat(400));
  else if (roll < 0.5) text = text.replace(/\d+/, "1e999");
  else if (roll < 0.6) text = "[".repeat(20_000) + text;
  else if (roll < 0.7) text = `${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`;
  const bytes = new TextEncoder().encode(text);
  if (roll >= 0.7) {
    for (let i = 0; i < 4; i++) {
      bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
    }
  }
  return bytes;
}
