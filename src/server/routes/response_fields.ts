import { isObject, type JsonObject as Json } from "../../json.ts";

/**
 * The fields of an OpenAI response that repeat what was asked for.
 *
 * @param body The request's body, as it came.
 * @returns What the answer and each of its events that has a response say beside the output.
 */
export function responseFields(body: Json): Json {
  const text = isObject(body.text) ? body.text : {};
  const reasoning = isObject(body.reasoning) ? body.reasoning : {};
  return {
    background: false,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    reasoning: { effort: reasoning.effort ?? null, summary: null },
    store: false,
    temperature: body.temperature ?? null,
    text: { ...text, format: text.format ?? { type: "text" } },
    tool_choice: body.tool_choice ?? "auto",
    tools: body.tools ?? [],
    top_p: body.top_p ?? null,
    truncation: "disabled",
    user: body.user ?? null,
  };
}
