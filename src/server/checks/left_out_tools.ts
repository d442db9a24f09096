/**
 * Says which tools of a `/v1/responses` request the model is not told of: those that OpenAI's servers run themselves.
 *
 * @param tools The request's `tools`.
 * @returns Warnings for the answer; none where all tools are functions.
 */
export function leftOutTools(tools: unknown): string[] {
  if (!Array.isArray(tools)) return [];
  const types = new Set<string>();
  for (const tool of tools) {
    const type = (tool as { type?: unknown } | null)?.type;
    if (type !== "function") types.add(JSON.stringify(type) ?? "undefined");
  }
  if (types.size === 0) return [];
  return [`tools of type ${[...types].join(", ")} are left out: only functions can be called here`];
}
