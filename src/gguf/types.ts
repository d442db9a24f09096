import type { GgmlType } from "./ggml_types.ts";

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
  /** The value; undefined if it is an array of more than `MAX_KEPT_ARRAY` elements, such as a vocabulary. */
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
  /** Byte in the file where the header describes it. */
  describedAt: number;
  /** Number of the file, from 0, in a model of several. */
  shard: number;
}

/** What a model file says about itself. */
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
