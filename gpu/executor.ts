/**
 * Executes the words that the C++ side records (gpu/webgpu/rys_gpu.h) on a WebGPU device.
 *
 * @module
 */

import { type AdaptedShader, adaptShader, DialectError, type ShaderTable } from "./dialect.ts";
import type { Readback } from "./readback.ts";

/** The same numbers as `rys_gpu_op`. */
export const Op = {
  BufferCreate: 1,
  BufferDestroy: 2,
  PipelineCreate: 3,
  PipelineDrop: 4,
  BindGroup: 5,
  BindGroupDrop: 6,
  Write: 7,
  PassBegin: 8,
  SetPipeline: 9,
  SetBindGroup: 10,
  Dispatch: 11,
  PassEnd: 12,
  Copy: 13,
  Submit: 14,
  Read: 15,
  Upload: 16,
  Fence: 17,
} as const;

/** What an executor has done so far, and what it holds. */
export interface GpuCounts {
  /** Streams of words executed. */
  crossings: number;
  /** `queue.submit` calls with commands. */
  submits: number;
  /** Dispatches of a compute shader. */
  dispatches: number;
  /** `queue.writeBuffer` calls. */
  writes: number;
  /** Bytes written by them. */
  writtenBytes: number;
  /** Buffers read back. */
  reads: number;
  /** Bind groups made. */
  bindGroups: number;
  /** Shader modules made. */
  shaderModules: number;
  /** Pipelines made. */
  pipelines: number;
  /** Buffers now. */
  buffers: number;
  /** Bytes of the buffers now. */
  bufferBytes: number;
  /** Bind groups now. */
  liveBindGroups: number;
}

interface Pipeline {
  pipeline: GPUComputePipeline;
  layout: GPUBindGroupLayout;
  /** Lookup tables, at group 1. */
  tables: GPUBindGroup | null;
}

/** One device's objects, and the words' interpreter. */
export class Executor {
  readonly #device: GPUDevice;
  readonly #memory: () => ArrayBufferLike;
  readonly #readback: Readback;
  readonly #onError: (message: string) => void;
  readonly #buffers = new Map<number, GPUBuffer>();
  readonly #pipelines = new Map<number, Pipeline>();
  readonly #groups = new Map<number, GPUBindGroup>();
  // by source and constants: every context asks for the same ones
  readonly #modules = new Map<string, { module: GPUShaderModule; tables: ShaderTable[] }>();
  readonly #tables = new Map<string, GPUBuffer>();
  readonly #compiled = new Map<string, Pipeline>();
  #encoder: GPUCommandEncoder | null = null;
  #pass: GPUComputePassEncoder | null = null;
  #finished: GPUCommandBuffer[] = [];
  #fence: [source: GPUBuffer, staging: GPUBuffer] | null = null;
  #fenced: Promise<void> | null = null;

  /** What has been done so far. */
  readonly counts: GpuCounts = {
    crossings: 0,
    submits: 0,
    dispatches: 0,
    writes: 0,
    writtenBytes: 0,
    reads: 0,
    bindGroups: 0,
    shaderModules: 0,
    pipelines: 0,
    buffers: 0,
    bufferBytes: 0,
    liveBindGroups: 0,
  };

  /**
   * @param device The device.
   * @param memory The instance's memory as it is now.
   * @param readback Reads mapped buffers.
   * @param onError Called with what the device refused.
   */
  constructor(
    device: GPUDevice,
    memory: () => ArrayBufferLike,
    readback: Readback,
    onError: (message: string) => void,
  ) {
    this.#device = device;
    this.#memory = memory;
    this.#readback = readback;
    this.#onError = onError;
  }

  /**
   * Executes one stream.
   *
   * @param at Address of the words.
   * @param n Count of the words.
   * @returns Whether the last command worked; a promise if that is known only later.
   * @throws {Error} If the words make no sense or the device is lost.
   */
  run(at: number, n: number): boolean | Promise<boolean> {
    this.counts.crossings++;
    const memory = this.#memory();
    const w = new Uint32Array(memory, at, n);
    const u64 = (i: number) => w[i]! + w[i + 1]! * 2 ** 32;
    let result: boolean | Promise<boolean> = true;
    let i = 0;
    while (i < n) {
      switch (w[i]) {
        case Op.SetBindGroup:
          this.#pass!.setBindGroup(0, find(this.#groups, w[i + 1]!, "bind group"));
          i += 2;
          break;
        case Op.Dispatch:
          this.#pass!.dispatchWorkgroups(w[i + 1]!, w[i + 2]!, w[i + 3]!);
          this.counts.dispatches++;
          i += 4;
          break;
        case Op.SetPipeline: {
          const { pipeline, tables } = find(this.#pipelines, w[i + 1]!, "pipeline");
          this.#pass!.setPipeline(pipeline);
          if (tables) this.#pass!.setBindGroup(1, tables);
          i += 2;
          break;
        }
        case Op.Write:
          this.#write(w[i + 1]!, u64(i + 2), memory, at + 4 * (i + 5), w[i + 4]!);
          i += 5 + (w[i + 4]! + 3 >>> 2);
          break;
        case Op.PassBegin:
          this.#encoder ??= this.#device.createCommandEncoder();
          this.#pass = this.#encoder.beginComputePass();
          i += 1;
          break;
        case Op.PassEnd:
          this.#pass!.end();
          this.#pass = null;
          i += 1;
          break;
        case Op.Copy:
          this.#encoder ??= this.#device.createCommandEncoder();
          this.#encoder.copyBufferToBuffer(
            this.#buffer(w[i + 1]!),
            u64(i + 2),
            this.#buffer(w[i + 4]!),
            u64(i + 5),
            u64(i + 7),
          );
          i += 9;
          break;
        case Op.Submit:
          if (this.#encoder) this.#finished.push(this.#encoder.finish());
          this.#encoder = null;
          i += 1;
          break;
        case Op.BindGroup:
          this.#bindGroup(w, i);
          i += 4 + 6 * w[i + 3]!;
          break;
        case Op.BindGroupDrop:
          if (this.#groups.delete(w[i + 1]!)) this.counts.liveBindGroups--;
          i += 2;
          break;
        case Op.BufferCreate: {
          const label = this.#text(at + 4 * (i + 7), w[i + 6]!);
          result = this.#createBuffer(w[i + 1]!, u64(i + 2), w[i + 4]!, label, w[i + 5] !== 0);
          i += 7 + (w[i + 6]! + 3 >>> 2);
          break;
        }
        case Op.BufferDestroy: {
          const buffer = this.#buffers.get(w[i + 1]!);
          if (buffer) {
            this.#buffers.delete(w[i + 1]!);
            this.counts.buffers--;
            this.counts.bufferBytes -= buffer.size;
            this.#submit(); // recorded commands may use it
            buffer.destroy();
          }
          i += 2;
          break;
        }
        case Op.PipelineCreate:
          i = this.#createPipeline(w, i, at);
          break;
        case Op.PipelineDrop:
          this.#pipelines.delete(w[i + 1]!);
          i += 2;
          break;
        case Op.Read:
          this.#submit();
          result = this.#read(this.#buffer(w[i + 1]!), u64(i + 2), u64(i + 4), u64(i + 6));
          i += 8;
          break;
        case Op.Upload:
          this.#write(w[i + 1]!, u64(i + 2), memory, u64(i + 6), u64(i + 4));
          this.#device.queue.submit([]); // starts the copy, so that staging memory does not pile up
          i += 8;
          break;
        case Op.Fence:
          this.#submit();
          result = this.#waitForFence();
          i += 1;
          break;
        default:
          throw new Error(`the GPU bridge met the unknown command ${w[i]} at word ${i} of ${n}`);
      }
    }
    this.#submit();
    return result;
  }

  /** Frees what the device holds. */
  dispose(): void {
    for (const buffer of this.#buffers.values()) buffer.destroy();
    this.#buffers.clear();
    this.#fence?.forEach((buffer) => buffer.destroy());
    this.#fence = null;
    for (const buffer of this.#tables.values()) buffer.destroy();
    this.#tables.clear();
    this.#device.destroy();
  }

  #buffer(id: number): GPUBuffer {
    return find(this.#buffers, id, "buffer");
  }

  #text(at: number, n: number): string {
    return new TextDecoder().decode(new Uint8Array(this.#memory(), at, n).slice());
  }

  #submit(): void {
    if (this.#finished.length === 0) return;
    this.#device.queue.submit(this.#finished);
    this.#finished = [];
    this.counts.submits++;
  }

  // An offset or a size that does not fit would end Deno's process, so none gets that far.
  #write(id: number, offset: number, memory: ArrayBufferLike, at: number, n: number): void {
    const buffer = this.#buffer(id);
    if (n === 0) return;
    if (offset % 4 !== 0 || n % 4 !== 0 || offset + n > buffer.size || at + n > memory.byteLength) {
      throw new RangeError(
        `a write of ${n} bytes at ${offset} does not fit the GPU buffer "${buffer.label}" of ${buffer.size}`,
      );
    }
    this.#submit(); // earlier commands must not see it
    const data = new Uint8Array(memory, at, n); // Deno accepts a view of shared memory, not the memory itself
    this.#device.queue.writeBuffer(buffer, offset, data as Uint8Array<ArrayBuffer>);
    this.counts.writes++;
    this.counts.writtenBytes += n;
  }

  #bindGroup(w: Uint32Array, i: number): void {
    const { layout } = find(this.#pipelines, w[i + 2]!, "pipeline");
    const entries: GPUBindGroupEntry[] = [];
    for (let k = 0, j = i + 4; k < w[i + 3]!; k++, j += 6) {
      entries.push({
        binding: w[j]!,
        resource: {
          buffer: this.#buffer(w[j + 1]!),
          offset: w[j + 2]! + w[j + 3]! * 2 ** 32,
          size: w[j + 4]! + w[j + 5]! * 2 ** 32,
        },
      });
    }
    this.#groups.set(w[i + 1]!, this.#device.createBindGroup({ layout, entries }));
    this.counts.bindGroups++;
    this.counts.liveBindGroups++;
  }

  #createBuffer(
    id: number,
    size: number,
    usage: number,
    label: string,
    checked: boolean,
  ): boolean | Promise<boolean> {
    const device = this.#device;
    if (checked) {
      device.pushErrorScope("out-of-memory");
      device.pushErrorScope("validation");
    }
    const buffer = device.createBuffer({ label, size, usage });
    this.#buffers.set(id, buffer);
    this.counts.buffers++;
    this.counts.bufferBytes += size;
    if (!checked) return true;
    return Promise.all([device.popErrorScope(), device.popErrorScope()]).then((errors) => {
      if (errors.every((error) => error === null)) return true;
      if (this.#buffers.delete(id)) {
        this.counts.buffers--;
        this.counts.bufferBytes -= size;
      }
      return false;
    });
  }

  #createPipeline(w: Uint32Array, i: number, base: number): number {
    const [id, nLabel, nEntry, nSource, nConstants] = w.subarray(
      i + 1,
      i + 6,
    ) as unknown as number[];
    const values = new Float64Array(nConstants!);
    const keyBytes: number[] = [];
    const view = new DataView(this.#memory());
    let at = i + 6;
    for (let k = 0; k < nConstants!; k++, at += 3) {
      values[k] = view.getFloat64(base + 4 * at, true);
      keyBytes.push(w[at + 2]!);
    }
    const take = (n: number) => {
      const text = this.#text(base + 4 * at, n);
      at += n + 3 >>> 2;
      return text;
    };
    const label = take(nLabel!);
    const entryPoint = take(nEntry!);
    const source = take(nSource!);
    const constants = Object.fromEntries(keyBytes.map((n, k) => [take(n), values[k]!]));
    const key = `${entryPoint}\0${JSON.stringify(constants)}\0${source}`;
    let made = this.#compiled.get(key);
    if (!made) {
      made = this.#compile(label, entryPoint, source, constants);
      this.#compiled.set(key, made);
    }
    this.#pipelines.set(id!, made);
    return at;
  }

  #compile(
    label: string,
    entryPoint: string,
    source: string,
    constants: Record<string, number>,
  ): Pipeline {
    const device = this.#device;
    let made = this.#modules.get(source);
    const adapted = made ? undefined : adapt(source, label); // throws, so before the scope
    device.pushErrorScope("validation");
    if (!made) {
      const module = device.createShaderModule({ label, code: adapted!.code });
      made = { module, tables: adapted!.tables };
      this.#modules.set(source, made);
      this.counts.shaderModules++;
    }
    const { module, tables } = made;
    const pipeline = device.createComputePipeline({
      label,
      layout: "auto",
      compute: { module, entryPoint, constants },
    });
    this.counts.pipelines++;
    const group = tables.length === 0 ? null : device.createBindGroup({
      label,
      layout: pipeline.getBindGroupLayout(1),
      entries: tables.map((table) => ({
        binding: table.binding,
        resource: { buffer: this.#table(table) },
      })),
    });
    device.popErrorScope().then((error) => {
      if (error) this.#onError(`the GPU shader "${label}" does not compile: ${error.message}`);
    }, () => {}); // a lost device is reported elsewhere
    return { pipeline, layout: pipeline.getBindGroupLayout(0), tables: group };
  }

  #table({ name, data }: ShaderTable): GPUBuffer {
    let buffer = this.#tables.get(name);
    if (!buffer) {
      buffer = this.#device.createBuffer({ label: name, size: data.byteLength, usage: 0x80 | 0x8 });
      this.#device.queue.writeBuffer(buffer, 0, data);
      this.#tables.set(name, buffer);
    }
    return buffer;
  }

  #read(
    buffer: GPUBuffer,
    offset: number,
    size: number,
    at: number,
  ): boolean | Promise<boolean> {
    if (size === 0) return true;
    if (offset % 8 !== 0 || size % 4 !== 0 || offset + size > buffer.size) {
      throw new RangeError(
        `a read of ${size} bytes at ${offset} does not fit the GPU buffer "${buffer.label}" of ${buffer.size}`,
      );
    }
    this.counts.reads++;
    const later = this.#readback.read(buffer, offset, new Uint8Array(this.#memory(), at, size));
    return later ? later.then(() => true) : true;
  }

  // Several threads may ask at once, but a buffer has only one mapping at a time.
  #waitForFence(): boolean | Promise<boolean> {
    const later = this.#fenced ? this.#fenced.then(() => this.#fenceOnce()) : this.#fenceOnce();
    if (!later) return true;
    const mine = later.finally(() => {
      if (this.#fenced === mine) this.#fenced = null;
    });
    this.#fenced = mine;
    return mine.then(() => true);
  }

  #fenceOnce(): void | Promise<void> {
    this.#fence ??= [
      this.#device.createBuffer({ label: "fence", size: 4, usage: 0x4 }),
      this.#device.createBuffer({ label: "fence", size: 4, usage: 0x1 | 0x8 }),
    ];
    const encoder = this.#device.createCommandEncoder();
    encoder.copyBufferToBuffer(this.#fence[0], 0, this.#fence[1], 0, 4);
    this.#device.queue.submit([encoder.finish()]);
    this.counts.submits++;
    this.counts.reads++;
    return this.#readback.read(this.#fence[1], 0, new Uint8Array(4));
  }
}

/** Whether Deno's compiler writes SPIR-V; on macOS and Windows it writes Metal's and Direct3D's languages. */
export function emitsSpirv(): boolean {
  return Deno.build.os !== "darwin" && Deno.build.os !== "windows";
}

function adapt(source: string, label: string): AdaptedShader {
  try {
    if (!("Deno" in globalThis)) return adaptShader(source, "tint");
    return adaptShader(source, "naga", { spirv: emitsSpirv() });
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    throw new DialectError(`the GPU shader "${label}" is refused: ${error.message}`);
  }
}

function find<T>(map: Map<number, T>, id: number, what: string): T {
  const found = map.get(id);
  if (found === undefined) throw new Error(`the GPU bridge met the unknown ${what} ${id}`);
  return found;
}
