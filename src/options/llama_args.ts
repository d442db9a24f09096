import type { Option } from "./option.ts";

/**
 * llama-server's arguments for one option.
 *
 * @param option The option; one that is not passed to llama.cpp has none.
 * @param value Its value.
 */
export function llamaArgs({ llama }: Option, value: unknown): string[] {
  if (llama === undefined || value === undefined) return [];
  const [on, off] = typeof llama === "string" ? [llama] : llama;
  if (typeof value !== "boolean") return [on, String(value)];
  return value ? [on] : off === undefined ? [] : [off];
}
