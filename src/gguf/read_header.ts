// Not by way of the import map: so this module can also be imported by its path, from a folder that has none.
// deno-lint-ignore no-import-prefix
import { gguf, GGUFValueType } from "npm:@huggingface/gguf@^0.4.6";
import { type GgufSource, type OpenSource, openSource } from "./byte_source.ts";
import type { GgmlType } from "./ggml_types.ts";
import { GgufError } from "./gguf_error.ts";
import { checkValues } from "./check_values.ts";
import { MAX_KEPT_ARRAY } from "./limits.ts";
import { type Scan, scanHeader } from "./_scan.ts";

/** A value of a key; 64-bit numbers are bigints. */
export type GgufValue = string | number | bigint | boolean | GgufValue[];

/** Types of values. */
export type GgufValueTypeName =
  | "uint8"
  | "int8"
  | "uint16"
  | "int16"
  | "uint32"
  | "int32"
  | "float32"
  | "bool"
  | "string"
  | "array"
  | "uint64"
  | "int64"
  | "float64";

/** A key's value with its type and its place in the file. */
export interface GgufEntry {
  /** The type of the value. */
  type: GgufValueTypeName;
  /** The type of an array's elements. */
  elementType?: GgufValueTypeName;
  /** Elements of an array. */
  length?: number;
  /** The value; undefined if it is an array of more than {@linkcode MAX_KEPT_ARRAY} elements, such as a vocabulary. */
  value: GgufValue | undefined;
  /** Byte in the file where the key begins. */
  start: number;
  /** Byte in the file where the value's type stands. */
  valueAt: number;
  /** Byte in the file after the value. */
  end: number;
}

/** A tensor in a file. */
export interface GgufTensor {
  /** Its name. */
  name: string;
  /** Its number format. */
  type: GgmlType;
  /** Its dimensions, the fastest first. */
  shape: number[];
  /** Where its data begin, from the beginning of the file. */
  offset: number;
  /** Bytes of its data. */
  bytes: number;
  /** Number of the file, from 0, in a model of several. */
  shard: number;
}

/** What a model file says of itself. */
export interface GgufHeader {
  /** The file, as it was named. */
  file: string;
  /** Bytes of the file; of all of them in a model of several. */
  size: number;
  /** Version of the format. */
  version: number;
  /** What tensor data are aligned to. */
  alignment: number;
  /** Where tensor data begin. */
  dataOffset: number;
  /** Every key, in the file's order. */
  metadata: ReadonlyMap<string, GgufEntry>;
  /** Every tensor, in the file's order. */
  tensors: GgufTensor[];
  /** Bytes of all tensors. */
  weightBytes: number;
  /** Architecture; empty if the file does not say. */
  architecture: string;
  /** The model's name, if it has one. */
  name: string | undefined;
  /** Layers, without next-token layers; 0 in a file with a vocabulary only. */
  nLayer: number;
  /** Next-token (MTP) layers. */
  nextn: number;
  /** Tokens of context the model was trained on; 0 if the file does not say. */
  contextLength: number;
  /** Width of an embedding; 0 if the file does not say. */
  embeddingLength: number;
  /** Attention heads of each layer, next-token layers last. */
  nHead: number[];
  /** Key-value heads of each layer, next-token layers last. */
  nHeadKv: number[];
  /** Number of the kind of quantisation, as `general.file_type` has it. */
  fileType: number | undefined;
  /** Model of the tokenizer, if the file has one. */
  tokenizerModel: string | undefined;
  /** Whether the file has a chat template. */
  hasChatTemplate: boolean;
  /** The plan that the file carries in `rys.layer_plan`. */
  layerPlan: string | undefined;
  /** Number of this file, from 0, in a model of several. */
  splitNo: number;
  /** Files of the model. */
  splitCount: number;
}

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
      cause: error,
    });
  }
}

/** Reads values of certain types, and refuses others. */
export class MetadataReader {
  constructor(readonly file: string, readonly metadata: ReadonlyMap<string, GgufEntry>) {}

  #refuse(key: string, problem: string, limit?: number): never {
    throw new GgufError(problem, { file: this.file, field: `key ${JSON.stringify(key)}`, limit });
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
