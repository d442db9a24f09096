import { type OpenSource, openSource, pathOf } from "../gguf/byte_source.ts";
import { scanHeader } from "../gguf/_scan.ts";
import { type GgufModel, readModel } from "../gguf/read_model.ts";
import type { GgufHeader, GgufTensor } from "../gguf/types.ts";
import { headerBytes, keyBytes, pickedListBytes } from "../gguf/write_header.ts";
import { planRefusal } from "../gguf/plan_support.ts";
import { isRemoteName } from "../hub/model_name.ts";
import type { NamedModel } from "../hub/read_named_model.ts";
import type { HubOptions } from "../hub/settings.ts";
import {
  type EffectivePlan,
  formatPlan,
  PLAN_KEY,
  type PlanInput,
  readPlan,
  resolvePlan,
} from "../plan/mod.ts";
import { ExportError } from "./export_error.ts";
import { type KeyChange, layerKeys } from "./layer_keys.ts";
import { outputNames, splitTensors } from "./split.ts";
import { checkTargets, type OutputFile, type Piece, writeFiles } from "./write_files.ts";

/** Options of {@linkcode exportModel}. */
export interface ExportOptions {
  /** The plan. Default: the model file's own `rys.layer_plan`, else none. */
  repeatLayers?: PlanInput | undefined;
  /** Copy the layers as they are, and write the plan into the file as `rys.layer_plan`. */
  planOnly?: boolean | undefined;
  /** Most bytes of tensors in one file; more make shards. Default: no limit. */
  splitMaxBytes?: number | undefined;
  /** Most tensors in one file; more make shards. Default: no limit. */
  splitMaxTensors?: number | undefined;
  /** Replace files that are there. */
  force?: boolean | undefined;
  /** Stops the writing; nothing is left of it. */
  signal?: AbortSignal | undefined;
  /** Called as bytes are written. */
  onProgress?: ((written: number, total: number) => void) | undefined;
  /** How a model on the hub or at a URL is fetched: token, cache, progress. */
  hub?: HubOptions | undefined;
}

/** What {@linkcode exportModel} wrote. */
export interface ExportReport {
  /** The files, in order: one, or all shards. */
  files: string[];
  /** Bytes of all files. */
  bytes: number;
  /** Tensors in all files. */
  nTensors: number;
  /** Layers in the files, without next-token layers. */
  nLayer: number;
  /** Next-token (MTP) layers in the files. */
  nextn: number;
  /** The plan, on the model that was exported. */
  plan: EffectivePlan;
}

/** What is to be written, as the header alone tells it. */
interface Outline {
  plan: EffectivePlan;
  changes: ReadonlyMap<string, KeyChange>;
  tensors: OutTensor[];
  /** Each file's tensors, from one number to before another. */
  parts: readonly (readonly [from: number, to: number])[];
  /** Each file's path. */
  paths: string[];
}

/** A tensor of the output. */
interface OutTensor {
  name: string;
  /** Where its data are, with the format. */
  source: GgufTensor;
  /** Its dimensions. */
  shape: readonly number[];
  /** Bytes of its data. */
  bytes: number;
  /** Where each row, or the whole, is made of slices, one for each layer: which, in order. */
  slices?: { rows: number; layers: readonly number[] };
}

/**
 * Writes a model with a plan to files: with its layers written out in the plan's order, for any program that reads GGUF,
 * or as it is with the plan in its metadata. Tensors are streamed, so a model may be larger than memory. Files appear
 * under their names when they are whole.
 *
 * @param model The path or file URL of the model, or of any of its shards; a name on the hub (`hf:owner/repo:Q4_K_M`) or
 * an `https:` URL, which is fetched into the cache once it is known that it can be exported; or what {@linkcode readModel}
 * or `readNamedModel` gave, whose header is then not read again.
 * @param output The path to write to; shards are named after it as llama.cpp names them.
 * @param options The plan, limits of files, and what happens on the way.
 * @returns The files, their size and layers.
 * @throws {ExportError} If no file can say this plan, an output exists, or the disk is full.
 * @throws {HubError} If the model cannot be fetched.
 * @throws {GgufError} If the model is missing or not sound.
 * @throws {SyntaxError} If the plan cannot be parsed.
 * @throws {RangeError} If the plan does not fit the model.
 *
 * @example
 * ```ts
 * import { exportModel, readHeader } from "@rys/edge";
 * import { assertEquals } from "@std/assert";
 *
 * const folder = await Deno.makeTempDir();
 * const report = await exportModel("models/demo.gguf", `${folder}/deep.gguf`, { repeatLayers: "26,34" });
 * assertEquals(report.nLayer, 48);
 * assertEquals((await readHeader(report.files[0]!)).nLayer, 48);
 * await Deno.remove(folder, { recursive: true });
 * ```
 */
export async function exportModel(
  model: string | URL | GgufModel | NamedModel,
  output: string,
  options: ExportOptions = {},
): Promise<ExportReport> {
  const { header, files } = await localModel(model, output, options);
  const { plan, changes, tensors, parts, paths } = outlineOf(header, output, options);
  const sources: OpenSource[] = [];
  try {
    for (const file of files) sources.push(await openSource(await pathOf(file)));
    const keys = await outputKeys(sources[0]!, changes);
    const outputs = layOut(header, tensors, keys, parts, paths);
    await writeFiles(outputs, sources, options);
    return {
      files: paths,
      bytes: outputs.reduce((sum, { size }) => sum + size, 0),
      nTensors: tensors.length,
      nLayer: options.planOnly ? header.nLayer : plan.nLayerEff,
      nextn: header.nextn,
      plan,
    };
  } finally {
    for (const source of sources) await source.close();
  }
}

function nameOf(model: string | URL | GgufModel | NamedModel): string {
  if (typeof model === "string" || model instanceof URL) return String(model);
  return "name" in model ? model.name : "";
}

/** The model on this machine. What cannot be exported is told before anything is fetched. */
async function localModel(
  model: string | URL | GgufModel | NamedModel,
  output: string,
  options: ExportOptions,
): Promise<GgufModel> {
  const name = nameOf(model);
  const isGiven = typeof model === "object" && "header" in model;
  if (!isRemoteName(name)) return isGiven ? model : await readModel(model);
  // Only here: a model on this machine needs neither the network nor its permissions.
  const { fetchModel } = await import("../hub/fetch_model.ts");
  const { readNamedModel } = await import("../hub/read_named_model.ts");
  const hub = { signal: options.signal, ...options.hub };
  const { header } = isGiven ? model : await readNamedModel(name, hub);
  await checkTargets(outlineOf(header, output, options).paths, [], options.force);
  return await readModel((await fetchModel(name, hub))[0]!);
}

function outlineOf(header: GgufHeader, output: string, options: ExportOptions): Outline {
  const plan = resolvePlan(options.repeatLayers, header);
  const isPhysical = options.planOnly !== true;
  const changes = isPhysical ? physicalKeys(header, plan) : planKey(header, plan);
  const tensors = isPhysical ? layersInOrder(header, plan.layers) : sameLayers(header);
  const parts = splitTensors(tensors.map(({ bytes }) => padded(header, bytes)), {
    maxBytes: options.splitMaxBytes,
    maxTensors: options.splitMaxTensors,
  });
  return { plan, changes, tensors, parts, paths: outputNames(output, parts.length) };
}

/** Bytes of a tensor's data with what follows to the next one. */
const padded = ({ alignment }: GgufHeader, bytes: number): number =>
  Math.ceil(bytes / alignment) * alignment;

function physicalKeys(header: GgufHeader, plan: EffectivePlan): ReadonlyMap<string, KeyChange> {
  const keys = layerKeys(header, plan.layers);
  if (keys.changes !== undefined) return keys.changes;
  throw new ExportError(`cannot export ${header.file}: ${keys.refusal}`);
}

function planKey(header: GgufHeader, plan: EffectivePlan): ReadonlyMap<string, KeyChange> {
  const refusal = planRefusal(header, plan.layers);
  if (refusal !== undefined) throw new ExportError(`cannot export ${header.file}: ${refusal}`);
  const isIdentity = plan.nLayerEff === plan.nLayer && plan.layers.every((il, e) => il === e);
  const value = formatPlan(readPlan(plan.spec));
  return new Map(isIdentity ? [] : [[PLAN_KEY, { value: { type: "string", value } }]]);
}

const same = (name: string, source: GgufTensor): OutTensor => {
  const { shape, bytes } = source;
  return { name, source, shape, bytes };
};

const sameLayers = ({ tensors }: GgufHeader): OutTensor[] =>
  tensors.map((source) => same(source.name, source));

/** A tensor that holds something of every layer, side by side: the per-layer embeddings of gemma3n and gemma4. */
function sliced(header: GgufHeader, source: GgufTensor, plan: readonly number[]): OutTensor {
  const { architecture, nLayer } = header;
  const isTable = source.name === "per_layer_token_embd.weight"; // its rows are slices, else groups of rows are
  const isSliced = (architecture === "gemma3n" || architecture === "gemma4") &&
    (isTable || source.name === "per_layer_model_proj.weight");
  if (!isSliced) return same(source.name, source);
  const [width = 1, height = 1] = source.shape;
  const long = isTable ? width : height;
  if (long % nLayer !== 0 || (isTable && (long / nLayer) % source.type.blockSize !== 0)) {
    throw new ExportError(
      `cannot export ${header.file}: ${source.name}, of ${long} by ${nLayer} layers in ${source.type.name}, cannot be divided by layers`,
    );
  }
  const grown = long / nLayer * plan.length;
  return {
    name: source.name,
    source,
    shape: isTable ? [grown, height] : [width, grown],
    bytes: source.bytes / nLayer * plan.length,
    slices: { rows: isTable ? height : 1, layers: plan },
  };
}

/** Where a tensor's data come from. */
function piecesOf({ source, bytes, slices }: OutTensor, nLayer: number, at: number): Piece[] {
  const { shard, offset: from } = source;
  if (slices === undefined) return [{ shard, from, bytes, at }];
  const slice = source.bytes / slices.rows / nLayer;
  if (slices.rows > 1) {
    return [{
      shard,
      from,
      bytes: source.bytes,
      at,
      slices: { slice, nLayer, layers: slices.layers },
    }];
  }
  return slices.layers.map((il, place) => ({
    shard,
    from: from + il * slice,
    bytes: slice,
    at: at + place * slice,
  }));
}

/** The tensors of all layers in the plan's order, where the file has those of the first. */
function layersInOrder(header: GgufHeader, plan: readonly number[]): OutTensor[] {
  const { nLayer, nextn, tensors } = header;
  const order = [...plan, ...Array.from({ length: nextn }, (_, i) => nLayer + i)];
  // Encoder and decoder have layers of their own.
  const stacks = new Map<string, Map<number, { rest: string; source: GgufTensor }[]>>();
  const partsOf = (name: string) => /^((?:.*\.)?)blk\.(\d+)\.(.*)$/.exec(name);
  for (const source of tensors) {
    const [, stack = "", il, rest = ""] = partsOf(source.name) ?? [];
    if (il === undefined) continue;
    const layers = stacks.get(stack) ?? new Map<number, { rest: string; source: GgufTensor }[]>();
    stacks.set(stack, layers);
    const layer = layers.get(Number(il)) ?? [];
    layers.set(Number(il), layer);
    layer.push({ rest, source });
  }
  const out: OutTensor[] = [];
  for (const source of tensors) {
    const parts = partsOf(source.name);
    if (!parts) {
      out.push(sliced(header, source, plan));
      continue;
    }
    const stack = parts[1]!;
    const layers = stacks.get(stack);
    stacks.delete(stack);
    if (!layers) continue;
    for (const [place, il] of order.entries()) {
      for (const { rest, source } of layers.get(il) ?? []) {
        out.push(same(`${stack}blk.${place}.${rest}`, source));
      }
    }
  }
  return out;
}

/** The first file's keys with what changes, the others byte for byte; keys of shards and of a plan are left out. */
async function outputKeys(
  source: OpenSource,
  changes: ReadonlyMap<string, KeyChange>,
): Promise<{ all: Uint8Array[]; alignment: Uint8Array | undefined }> {
  const { bytes, keys } = await scanHeader(source);
  const left = new Map(changes);
  const all: Uint8Array[] = [];
  let alignment: Uint8Array | undefined;
  for (const { key, start, valueAt, end } of keys) {
    const change = left.get(key);
    left.delete(key);
    if (change !== undefined) {
      all.push(
        "value" in change
          ? keyBytes(key, change.value)
          : pickedListBytes(key, bytes.subarray(valueAt, end), change.places),
      );
      continue;
    }
    if (key === PLAN_KEY || key.startsWith("split.")) continue;
    const whole = bytes.subarray(start, end);
    if (key === "general.alignment") alignment = whole;
    all.push(whole);
  }
  for (const [key, change] of left) if ("value" in change) all.push(keyBytes(key, change.value));
  return { all, alignment };
}

/** Each file with its header and where its tensors come from. */
function layOut(
  header: GgufHeader,
  tensors: readonly OutTensor[],
  keys: { all: Uint8Array[]; alignment: Uint8Array | undefined },
  parts: Outline["parts"],
  paths: readonly string[],
): OutputFile[] {
  return paths.map((path, i) => {
    const [from, to] = parts[i]!;
    const entries = [];
    const pieces = [];
    let offset = 0;
    for (const tensor of tensors.slice(from, to)) {
      const { name, source: { type }, shape, bytes } = tensor;
      entries.push({ name, type, shape, offset });
      pieces.push(...piecesOf(tensor, header.nLayer, offset));
      offset += padded(header, bytes);
    }
    const own = i === 0 ? [...keys.all] : keys.alignment ? [keys.alignment] : [];
    if (parts.length > 1) {
      own.push(
        keyBytes("split.no", { type: "uint16", value: i }),
        keyBytes("split.count", { type: "uint16", value: parts.length }),
        keyBytes("split.tensors.count", { type: "int32", value: tensors.length }),
      );
    }
    const head = headerBytes(own, entries, header.alignment);
    return { path, head, pieces, size: head.length + offset };
  });
}
