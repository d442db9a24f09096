import { gguf, GGUFValueType } from "@huggingface/gguf";
import { type GgufSource, type OpenSource, openSource } from "./byte_source.ts";
import type { GgmlType } from "./ggml_types.ts";
import { GgufError } from "./gguf_error.ts";
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

/** A key's value with its type. */
export interface GgufEntry {
  /** The value. */
  value: GgufValue;
  /** Its type. */
  type: GgufValueTypeName;
  /** The type of an array's elements. */
  elementType?: GgufValueTypeName;
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

/** Lets the parser read the header's bytes as if they were on the network. */
function serve(bytes: Uint8Array<ArrayBuffer>, size: number): typeof fetch {
  return (_input, init) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(new Headers(init?.headers).get("range") ?? "");
    const [start, end] = range ? [Number(range[1]), Number(range[2]) + 1] : [0, bytes.length];
    const headers = { "content-range": `bytes ${start}-${end - 1}/${size}` };
    return Promise.resolve(new Response(bytes.subarray(start, end), { status: 206, headers }));
  };
}

async function parse(
  scan: Scan,
  source: OpenSource,
): Promise<{ version: number; metadata: Map<string, GgufEntry> }> {
  try {
    const parsed = await gguf("https://gguf.invalid/", {
      fetch: serve(scan.bytes, source.size),
      typedMetadata: true,
    });
    const metadata = new Map<string, GgufEntry>();
    for (const [key, entry] of Object.entries(parsed.typedMetadata)) {
      // The parser's own, put among the file's keys.
      if (key === "version" || key === "tensor_count" || key === "kv_count") continue;
      const { value, type, subType } = entry as {
        value: GgufValue;
        type: GGUFValueType;
        subType?: GGUFValueType;
      };
      metadata.set(key, {
        value,
        type: TYPE_NAMES[type],
        ...(subType === undefined ? {} : { elementType: TYPE_NAMES[subType] }),
      });
    }
    if (
      Number(parsed.tensorDataOffset) !== scan.dataOffset ||
      parsed.tensorInfos.length !== scan.tensors.length
    ) {
      throw new Error("the parser and the check before it disagree on where tensor data begin");
    }
    return { version: parsed.metadata.version, metadata };
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

  #refuse(key: string, problem: string, limit?: number | string): never {
    throw new GgufError(problem, { file: this.file, field: `key ${JSON.stringify(key)}`, limit });
  }

  text(key: string): string | undefined {
    const value = this.metadata.get(key)?.value;
    if (value !== undefined && typeof value !== "string") {
      this.#refuse(key, "the value is not text");
    }
    return value;
  }

  /** A whole number from 0. */
  count(key: string, limit = 0xffff_ffff): number | undefined {
    const value = this.metadata.get(key)?.value;
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
    const value = this.metadata.get(key)?.value;
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

function describe(
  source: OpenSource,
  scan: Scan,
  version: number,
  metadata: Map<string, GgufEntry>,
): GgufHeader {
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
    version,
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
    const { version, metadata } = await parse(scan, open);
    return describe(open, scan, version, metadata);
  } finally {
    await open.close();
  }
}
