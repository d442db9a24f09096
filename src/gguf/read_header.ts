// Not by way of the import map: so this module can also be imported by its path, from a folder that has none.
// deno-lint-ignore no-import-prefix
import { gguf, GGUFValueType } from "npm:@huggingface/gguf@^0.4.6";
import { type GgufSource, type OpenSource, openSource } from "./byte_source.ts";
import { GgufError } from "./gguf_error.ts";
import { checkValues } from "./check_values.ts";
import { MAX_KEPT_ARRAY } from "./limits.ts";
import { type Scan, scanHeader } from "./_scan.ts";
import type { GgufEntry, GgufHeader, GgufValue, GgufValueTypeName } from "./types.ts";

/** Options for {@linkcode readHeader}. */
export interface ReadHeaderOptions {
  /** The name for messages; by default the path, or the blob's name. */
  name?: string;
}

/** Most layers that llama.cpp knows. */
const MAX_LAYERS = 512;

const TYPE_NAMES: Readonly<Record<GGUFValueType, GgufValueTypeName>> = {
  [GGUFValueType.UINT8]: "uint8",
  [GGUFValueType.INT8]: "int8",
  [GGUFValueType.UINT16]: "uint16",
  [GGUFValueType.INT16]: "int16",
  [GGUFValueType.UINT32]: "uint32",
  [GGUFValueType.INT32]: "int32",
  [GGUFValueType.FLOAT32]: "float32",
  [GGUFValueType.BOOL]: "bool",
  [GGUFValueType.STRING]: "string",
  [GGUFValueType.ARRAY]: "array",
  [GGUFValueType.UINT64]: "uint64",
  [GGUFValueType.INT64]: "int64",
  [GGUFValueType.FLOAT64]: "float64",
};

/**
 * The header without its long arrays. The parser makes an object of each of their elements, some 60 bytes for each one
 * of a vocabulary's, and nothing here needs them.
 */
function withoutLongArrays({ bytes, keys, tensorsAt }: Scan): Uint8Array<ArrayBuffer> {
  const kept = keys.filter((key) => (key.array?.length ?? 0) <= MAX_KEPT_ARRAY);
  // Magic, version and the two counts take 24 bytes.
  const parts = [bytes.slice(0, 24), ...kept.map(({ start, end }) => bytes.subarray(start, end))];
  new DataView(parts[0]!.buffer).setBigUint64(16, BigInt(kept.length), true);
  parts.push(bytes.subarray(tensorsAt));
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Lets the parser read bytes as if they were on the network. */
function serve(bytes: Uint8Array<ArrayBuffer>): typeof fetch {
  return (_input, init) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(new Headers(init?.headers).get("range") ?? "");
    const [start, end] = range ? [Number(range[1]), Number(range[2]) + 1] : [0, bytes.length];
    return Promise.resolve(new Response(bytes.subarray(start, end), { status: 206 }));
  };
}

async function parse(scan: Scan, source: OpenSource): Promise<Map<string, GgufEntry>> {
  const bytes = withoutLongArrays(scan);
  try {
    const parsed = await gguf("https://gguf.invalid/", {
      fetch: serve(bytes),
      typedMetadata: true,
    });
    if (
      parsed.tensorInfoByteRange[1] !== bytes.length ||
      parsed.tensorInfos.some(({ name }, i) => name !== scan.tensors[i]?.name)
    ) {
      throw new Error("the parser reads it otherwise than the check before it");
    }
    const metadata = new Map<string, GgufEntry>();
    for (const { key, start, end, valueAt, array } of scan.keys) {
      const entry: GgufEntry = { type: "array", value: undefined, start, valueAt, end };
      if (array) {
        entry.elementType = TYPE_NAMES[array.elementType as GGUFValueType];
        entry.length = array.length;
      }
      if ((array?.length ?? 0) <= MAX_KEPT_ARRAY) {
        const { type, value } = parsed.typedMetadata[key] as {
          type: GGUFValueType;
          value: GgufValue;
        };
        entry.type = TYPE_NAMES[type];
        entry.value = value;
      }
      metadata.set(key, entry);
    }
    return metadata;
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new GgufError(`its header cannot be parsed: ${problem}`, {
      file: source.name,
      field: "header",
      offset: 0,
      cause: error,
    });
  }
}

/** Reads values of certain types, and refuses others. */
export class MetadataReader {
  constructor(readonly file: string, readonly metadata: ReadonlyMap<string, GgufEntry>) {}

  #refuse(key: string, problem: string, limit?: number): never {
    throw new GgufError(problem, {
      file: this.file,
      field: `key ${JSON.stringify(key)}`,
      offset: this.metadata.get(key)?.valueAt,
      limit,
    });
  }

  #value(key: string): GgufValue | undefined {
    const entry = this.metadata.get(key);
    if (entry && entry.value === undefined) {
      this.#refuse(key, `the value is an array of ${entry.length}`, MAX_KEPT_ARRAY);
    }
    return entry?.value;
  }

  text(key: string): string | undefined {
    const value = this.#value(key);
    if (value !== undefined && typeof value !== "string") {
      this.#refuse(key, "the value is not text");
    }
    return value;
  }

  /** A whole number from 0. */
  count(key: string, limit = 0xffff_ffff): number | undefined {
    const value = this.#value(key);
    return value === undefined ? undefined : this.#count(key, value, limit);
  }

  #count(key: string, value: GgufValue, limit: number): number {
    const number = typeof value === "bigint" || typeof value === "boolean" ? Number(value) : value;
    if (typeof number !== "number" || !Number.isInteger(number) || number < 0) {
      this.#refuse(
        key,
        `the value ${
          Array.isArray(value) ? "is an array, not" : `${String(value)} is not`
        } a count`,
      );
    }
    if (number > limit) this.#refuse(key, `the value is ${number}`, limit);
    return number;
  }

  /** A list of whole numbers from 0, or undefined if the key has none or has one number. */
  list(key: string, limit = 0xffff_ffff): number[] | undefined {
    const value = this.#value(key);
    return Array.isArray(value) ? value.map((item) => this.#count(key, item, limit)) : undefined;
  }

  /** A list of whole numbers of either sign, or undefined if the key has none or has one number. */
  integers(key: string): number[] | undefined {
    const value = this.#value(key);
    if (!Array.isArray(value)) return undefined;
    return value.map((item) => {
      const number = typeof item === "bigint" || typeof item === "boolean" ? Number(item) : item;
      if (typeof number === "number" && Number.isInteger(number)) return number;
      return this.#refuse(key, `the value ${String(item)} is not a whole number`);
    });
  }

  /** One number for each of `n` layers: the key has one for all, or a list of that length. */
  perLayer(key: string, n: number): number[] | undefined {
    const list = this.list(key);
    if (list === undefined) {
      const one = this.count(key);
      return one === undefined ? undefined : Array<number>(n).fill(one);
    }
    if (list.length !== n) this.#refuse(key, `there are ${list.length} values for ${n} layers`);
    return list;
  }
}

function describe(source: OpenSource, scan: Scan, metadata: Map<string, GgufEntry>): GgufHeader {
  const read = new MetadataReader(source.name, metadata);
  const architecture = read.text("general.architecture") ?? "";
  const own = (key: string) => `${architecture}.${key}`;
  const blocks = read.count(own("block_count"), MAX_LAYERS) ?? 0;
  const nextn = read.count(own("nextn_predict_layers"), blocks) ?? 0;
  const nHead = read.perLayer(own("attention.head_count"), blocks) ?? Array<number>(blocks).fill(0);
  const splitCount = Math.max(1, read.count("split.count", 65_535) ?? 1);
  return {
    file: source.name,
    size: source.size,
    version: scan.version,
    alignment: scan.alignment,
    dataOffset: scan.dataOffset,
    metadata,
    tensors: scan.tensors.map((tensor) => ({ ...tensor, shard: 0 })),
    weightBytes: scan.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0),
    architecture,
    name: read.text("general.name"),
    nLayer: blocks - nextn,
    nextn,
    contextLength: read.count(own("context_length")) ?? 0,
    embeddingLength: read.count(own("embedding_length")) ?? 0,
    nHead,
    nHeadKv: read.perLayer(own("attention.head_count_kv"), blocks) ?? nHead,
    fileType: read.count("general.file_type"),
    tokenizerModel: read.text("tokenizer.ggml.model"),
    hasChatTemplate: (read.text("tokenizer.chat_template") ?? "") !== "",
    layerPlan: read.text("rys.layer_plan"),
    splitNo: read.count("split.no", splitCount - 1) ?? 0,
    splitCount,
  };
}

/**
 * Reads the header of a GGUF file. No tensor data are read, but the file must have them all.
 *
 * Every length in the file is checked before anything of that length is allocated, so a damaged or hostile file costs
 * no memory beyond its own size.
 *
 * @param source A path or file URL, or the bytes: a Blob, a Uint8Array, or an object with `size` and `read`.
 * @param options The name for messages.
 * @returns What the file says.
 * @throws {GgufError} If the file is not there, is cut, or is not a sound GGUF file.
 *
 * @example
 * ```ts
 * import { GgufError, readHeader } from "@rys/edge/gguf";
 * import { assertRejects } from "@std/assert";
 *
 * await assertRejects(() => readHeader("no-such-file.gguf"), GgufError, "there is no such file");
 * ```
 */
export async function readHeader(
  source: GgufSource,
  options: ReadHeaderOptions = {},
): Promise<GgufHeader> {
  const open = await openSource(source, options.name);
  try {
    const scan = await scanHeader(open);
    const header = describe(open, scan, await parse(scan, open));
    checkValues(header);
    return header;
  } finally {
    await open.close();
  }
}
