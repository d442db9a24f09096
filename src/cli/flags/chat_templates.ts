import { UsageError } from "../errors.ts";
import { suggest } from "./suggest.ts";

/** The chat templates that llama.cpp has built in (llama-chat.cpp). */
const CHAT_TEMPLATES: readonly string[] = [
  "chatml",
  "llama2",
  "llama2-sys",
  "llama2-sys-bos",
  "llama2-sys-strip",
  "mistral-v1",
  "mistral-v3",
  "mistral-v3-tekken",
  "mistral-v7",
  "mistral-v7-tekken",
  "phi3",
  "phi4",
  "falcon3",
  "zephyr",
  "monarch",
  "gemma",
  "orion",
  "openchat",
  "vicuna",
  "vicuna-orca",
  "deepseek",
  "deepseek2",
  "deepseek3",
  "deepseek-ocr",
  "command-r",
  "llama3",
  "chatglm3",
  "chatglm4",
  "glmedge",
  "minicpm",
  "exaone3",
  "exaone4",
  "exaone-moe",
  "rwkv-world",
  "granite",
  "granite-4.0",
  "granite-4.1",
  "gigachat",
  "megrez",
  "yandex",
  "bailing",
  "bailing-think",
  "bailing2",
  "llama4",
  "smolvlm",
  "hunyuan-moe",
  "gpt-oss",
  "hunyuan-dense",
  "hunyuan-vl",
  "kimi-k2",
  "seed_oss",
  "grok-2",
  "pangu-embedded",
  "solar-open",
];

/**
 * Checks the value of `--chat-template`: the name of a built-in template, or a template's own text.
 *
 * @param written The flag, for messages.
 * @param text Its value.
 * @returns llama-server's further flags for it: built-in templates but ChatML are not Jinja.
 * @throws {UsageError} If it is neither.
 */
export function chatTemplateArgs(written: string, text: string): string[] {
  if (CHAT_TEMPLATES.includes(text)) return text === "chatml" ? [] : ["--no-jinja"];
  if (/\{[{%]/.test(text)) return [];
  const near = suggest(text, CHAT_TEMPLATES);
  const family = /^[a-z]+/.exec(near ?? "")?.[0];
  const alike = CHAT_TEMPLATES.filter((name) =>
    name !== near && /^[a-z]+/.exec(name)?.[0] === family
  );
  const hint = near === undefined
    ? `the names are ${CHAT_TEMPLATES.join(", ")}`
    : `did you mean ${[near, ...alike].join(", ")}?`;
  throw new UsageError(
    `${written} ${JSON.stringify(text)} is neither a built-in template nor Jinja text, ` +
      `which has {{ or {%; ${hint}`,
  );
}
