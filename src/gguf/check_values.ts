// Values that llama.cpp takes for granted, and without which it ends the program: those whose rule is the same for every
// architecture. What it refuses by an error of its own is left to it.

import { GgufError } from "./gguf_error.ts";
import type { GgufEntry, GgufHeader, GgufTensor } from "./types.ts";

/** Kinds of RoPE scaling that llama.cpp knows. */
const ROPE_SCALING = ["none", "linear", "yarn", "longrope"];
/** Most experts: llama.cpp's limit. */
const MAX_EXPERTS = 1024;
/** The largest number of tokens that llama.cpp's counters hold. */
const MAX_TOKENS = 2 ** 31 - 1;
/** Tables of whole numbers; all other tensors are computed with. */
const TABLE = /tid2eid/;

type Described = Pick<
  GgufHeader,
  "file" | "architecture" | "metadata" | "tensors" | "embeddingLength" | "nHead"
>;

/**
 * Checks the values of a header.
 *
 * @throws {GgufError} If one cannot be in any model; the error names the key or tensor, and what would be right.
 */
export function checkValues(header: Described): void {
  checkNumbers(header);
  checkRope(header);
  checkExperts(header);
  checkVocabulary(header);
  for (const tensor of header.tensors) checkTensor(header, tensor);
}

function refuse(header: Described, key: string, problem: string, expected: string): never {
  throw new GgufError(problem, {
    file: header.file,
    field: `key ${JSON.stringify(key)}`,
    offset: header.metadata.get(key)?.valueAt,
    expected,
  });
}

/** A key's number, where it has one. */
function numberOf(header: Described, key: string): number | undefined {
  const value = header.metadata.get(key)?.value;
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
}

function checkNumbers(header: Described): void {
  for (const key of header.metadata.keys()) {
    if (!key.endsWith("epsilon")) continue;
    const value = numberOf(header, key);
    if (value !== undefined && !(value >= 0 && value < Infinity)) {
      refuse(header, key, `the value is ${value}`, "a small number from 0, such as 1e-5");
    }
  }
  for (
    const [name, least, most] of [
      ["context_length", 1, MAX_TOKENS],
      ["embedding_length", 1, MAX_TOKENS],
    ] as const
  ) {
    const key = `${header.architecture}.${name}`;
    const value = numberOf(header, key);
    if (value !== undefined && (value < least || value > most)) {
      refuse(header, key, `the value is ${value}`, `${least} to ${most}`);
    }
  }
}

function checkRope(header: Described): void {
  const { architecture, embeddingLength, metadata, nHead } = header;
  const scaling = `${architecture}.rope.scaling.type`;
  const type = metadata.get(scaling)?.value;
  if (typeof type === "string" && !ROPE_SCALING.includes(type)) {
    refuse(header, scaling, `the value is ${JSON.stringify(type)}`, ROPE_SCALING.join(", "));
  }
  if (!nHead[0]) return;
  for (const suffix of ["", "_swa"]) {
    const key = `${architecture}.rope.dimension_count${suffix}`;
    const n = numberOf(header, key);
    if (n === undefined) continue;
    const size = numberOf(header, `${architecture}.attention.key_length${suffix}`) ??
      numberOf(header, `${architecture}.attention.key_length`) ??
      Math.floor(embeddingLength / nHead[0]);
    if (n % 2 !== 0 || n > size) {
      refuse(
        header,
        key,
        `the value is ${n}, where a head has ${size}`,
        `an even number up to ${size}`,
      );
    }
  }
}

function checkExperts(header: Described): void {
  const { architecture, metadata } = header;
  // These run files of one expert as if they had none.
  if (architecture.startsWith("hunyuan")) return;
  const key = `${architecture}.expert_count`;
  const experts = numberOf(header, key) ?? 0;
  if (experts > MAX_EXPERTS) {
    refuse(header, key, `the value is ${experts}`, `0 to ${MAX_EXPERTS}`);
  }
  const usedKey = `${architecture}.expert_used_count`;
  if (experts > 0 && !metadata.has(usedKey)) {
    const expected = `the key ${JSON.stringify(usedKey)}`;
    refuse(header, key, `no key says how many of ${experts} experts are used`, expected);
  }
  const value = metadata.get(usedKey)?.value;
  const list = Array.isArray(value) ? value.map(Number) : [numberOf(header, usedKey) ?? 0];
  const used = Math.max(0, ...list);
  const least = experts > 0 ? 1 : 0;
  if (used < least || used > experts) {
    refuse(header, usedKey, `the value is ${used} of ${experts} experts`, `${least} to ${experts}`);
  }
}

function checkVocabulary(header: Described): void {
  const tokens = header.metadata.get("tokenizer.ggml.tokens");
  const isArray = (entry: GgufEntry, types: string[]) =>
    entry.type === "array" && types.includes(entry.elementType!);
  if (tokens && !isArray(tokens, ["string"])) {
    refuse(header, "tokenizer.ggml.tokens", "the value is not a list of texts", "an array of text");
  }
  const n = tokens?.length ?? 0;
  for (
    const [key, types] of [
      ["tokenizer.ggml.scores", ["float32"]],
      ["tokenizer.ggml.token_type", ["int32", "uint32"]],
    ] as const
  ) {
    const entry = header.metadata.get(key);
    if (!entry) continue;
    if (!isArray(entry, [...types])) {
      refuse(header, key, "the value is not of its type", `an array of ${types.join(" or ")}`);
    }
    if (entry.length! < n) {
      refuse(header, key, `there are ${entry.length} values for ${n} tokens`, `${n}`);
    }
  }
}

function checkTensor(header: Described, { name, type, describedAt }: GgufTensor): void {
  if (!/^[if]\d+$/.test(type.name) || /^f(?:16|32)$/.test(type.name) || TABLE.test(name)) return;
  throw new GgufError(`its values are of type ${type.name}`, {
    file: header.file,
    field: `tensor ${JSON.stringify(name)}`,
    offset: describedAt,
    expected: "a type that weights have, such as f32, f16 or q8_0",
  });
}
