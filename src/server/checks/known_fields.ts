type Body = Record<string, unknown>;

const words = (text: string): string[] => text.trim().split(/\s+/);

/** Read on every route. */
const EVERYWHERE = words("model repeat_layers");

/** Of sampling and of the answer's form: what llama-server's generation reads. */
const GENERATION = words(`
  adaptive_decay adaptive_target backend_sampling cache_prompt dry_allowed_length dry_base dry_multiplier
  dry_penalty_last_n dry_sequence_breakers dynatemp_exponent dynatemp_range echo frequency_penalty grammar id_slot ignore_eos
  json_schema logit_bias logprobs lora max_completion_tokens max_tokens min_keep min_p mirostat mirostat_eta mirostat_tau
  n n_cache_reuse n_cmpl n_discard n_indent n_keep n_predict n_probs post_sampling_probs presence_penalty
  reasoning_budget_tokens reasoning_control reasoning_format repeat_last_n repeat_penalty response_fields return_progress
  return_tokens samplers seed sse_ping_interval stop stream stream_options t_max_predict_ms temperature timings_per_token
  top_k top_n_sigma top_p typical_p verbose xtc_probability xtc_threshold parse_tool_calls generation_prompt
`);

const CHAT = words(`
  add_generation_prompt chat_template_kwargs continue_final_message messages parallel_tool_calls
  reasoning_effort response_format thinking_budget_tokens tool_choice tools top_logprobs
`);

/** What clients send about themselves, or what asks for nothing here: no answer differs for lack of it. */
const HARMLESS = words(`
  user store metadata service_tier safety_identifier prompt_cache_key prompt_cache_retention prediction betas
  anthropic_version anthropic_beta inference_geo client_metadata stream_id request_id
`);

const KNOWN: readonly [route: RegExp, fields: ReadonlySet<string>][] = ([
  [/\/chat\/completions(\/input_tokens)?$|\/apply-template$/, [...GENERATION, ...CHAT]],
  [/\/responses(\/input_tokens)?$/, [
    ...GENERATION,
    ...CHAT,
    ...words(
      "background conversation prompt input instructions max_output_tokens reasoning text include truncation previous_response_id",
    ),
  ]],
  [/\/messages(\/count_tokens)?$/, [
    ...GENERATION,
    ...CHAT,
    ...words("system stop_sequences thinking output_config container"),
  ]],
  [/\/completions?$/, [...GENERATION, ...words("prompt response_format")]],
  [/\/infill$/, [...GENERATION, ...words("prompt input_prefix input_suffix input_extra")]],
  [/\/embeddings?$/, words("input content encoding_format dimensions embd_normalize input_type")],
  [
    /\/rerank(ing)?$/,
    words("query documents texts top_n return_documents return_text raw_scores truncate"),
  ],
  [/\/tokenize$/, words("content add_special parse_special with_pieces")],
  [/\/detokenize$/, words("tokens")],
  [/\/control$/, words("id action")],
] as [RegExp, string[]][]).map(([route, fields]) => [
  route,
  new Set([...EVERYWHERE, ...HARMLESS, ...fields]),
]);

/** Names told in one answer. */
const MOST = 20;

/**
 * What of a request no part of its route reads.
 *
 * @param path The route, as upstream calls it.
 * @param body The request's body. A field that is null asks for nothing.
 * @returns A warning, or none.
 */
export function unknownFields(path: string, body: Body): string[] {
  const known = KNOWN.find(([route]) => route.test(path))?.[1];
  if (known === undefined) return [];
  const names = Object.keys(body).filter((name) =>
    body[name] !== null && body[name] !== undefined && !known.has(name)
  );
  if (names.length === 0) return [];
  const shown = names.slice(0, MOST).map((name) => JSON.stringify(name.slice(0, 64))).join(", ");
  const more = names.length > MOST ? ` and ${names.length - MOST} more` : "";
  return [
    `${path} does not know ${shown}${more}: ${names.length === 1 ? "it was" : "they were"} ignored`,
  ];
}
