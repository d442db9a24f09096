/**
 * A GPU that computes nothing: it checks every call as the WebGPU standard asks, counts it, and notes what was written
 * where. For tests and for measuring what the host does. What a shader would write stays zero.
 *
 * Its properties stand in the query of the module's URL, e.g. `recording_device.ts?maxBufferSize=1073741824&f16=0`: any of
 * {@linkcode RecordingOptions} and any limit by name.
 *
 * @module
 */

/** What the device is like, and what goes wrong with it; all of them can stand in the module's query. */
export interface RecordingOptions {
  /** Vendor as the adapter's info has it. Default: "4318", NVIDIA's number, which is what Deno shows. */
  vendor?: string;
  /** Description in the adapter's info. */
  description?: string;
  /** Whether there is shader-f16; 0 or 1. Default 1. */
  f16?: number;
  /** Whether subgroups are granted; 0 or 1. Default 1. */
  subgroups?: number;
  /** 1: there is no adapter. */
  noAdapter?: number;
  /** 1: the adapter gives no device. */
  refuseDevice?: number;
  /** Bytes of a buffer from which on there is no room for it. */
  outOfMemoryAt?: number;
  /** Bytes of all buffers together, above which there is no room. */
  memory?: number;
  /** The device is lost at the submit after so many. */
  loseAfterSubmits?: number;
  /** Part of a pipeline's label; such a pipeline is refused. */
  refusePipeline?: string;
  /** `standard`: a map can be read when its promise has resolved; `deno` (default): at once, but for a buffer's first. */
  map?: string;
  /** 1: note the ranges that were written to each buffer, and bytes in them that are not zero. */
  ranges?: number;
  /** Posted to the BroadcastChannel {@linkcode REPORTS}, it is answered by `{ id, report }`. */
  id?: string;
}

/** A buffer and what was written to it. */
export interface RecordedBuffer {
  label: string;
  /** Bytes. */
  size: number;
  usage: number;
  /** Ranges [from, to) that `writeBuffer` wrote, sorted, those that touch made one; empty unless asked for. */
  ranges: [number, number][];
  /** Bytes that were written more than once. */
  rewritten: number;
  /** Words of 8 bytes that are not zero in what was written: where, and their value; the first 4096. */
  marks: [at: number, value: bigint][];
}

/** What was done with the device so far. */
export interface RecordingReport {
  /** Calls by name, e.g. `dispatchWorkgroups`. */
  calls: Record<string, number>;
  /** What was wrong: each an `uncapturederror` unless an error scope took it. */
  errors: string[];
  /** Buffers that are not destroyed. */
  buffers: RecordedBuffer[];
  /** Bytes of buffers at their most. */
  peakBytes: number;
  /** Bytes of the largest `writeBuffer`. */
  largestWrite: number;
}

/** Where a device in a Worker is asked for its {@linkcode RecordingReport}. */
export const REPORTS = "rys-recording";

type Filter = "validation" | "out-of-memory" | "internal";
type Binding = "uniform" | "storage" | "read-only-storage";

const USAGE = {
  MAP_READ: 1,
  MAP_WRITE: 2,
  COPY_SRC: 4,
  COPY_DST: 8,
  UNIFORM: 0x40,
  STORAGE: 0x80,
} as const;

/** Those of a large NVIDIA GPU under Deno. */
const LIMITS: Record<string, number> = {
  maxBufferSize: 2 ** 40,
  maxStorageBufferBindingSize: 2 ** 31 - 4,
  maxUniformBufferBindingSize: 65536,
  maxStorageBuffersPerShaderStage: 64,
  maxUniformBuffersPerShaderStage: 12,
  maxBindGroups: 8,
  maxBindingsPerBindGroup: 1000,
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupSizeX: 1024,
  maxComputeWorkgroupSizeY: 1024,
  maxComputeWorkgroupSizeZ: 64,
  maxComputeWorkgroupStorageSize: 49152,
  maxComputeWorkgroupsPerDimension: 65535,
  minStorageBufferOffsetAlignment: 32,
  minUniformBufferOffsetAlignment: 64,
};

const N_KEPT = 4096; // bytes; smaller buffers keep what is written, so that a check of the read-back finds it
const N_MARKS = 4096;

class Buffer {
  readonly kept: Uint8Array | undefined;
  readonly ranges: [number, number][] = [];
  readonly marks: [number, bigint][] = [];
  destroyed = false;
  mapped: [from: number, to: number] | null = null;
  pending: ((error: Error) => void) | null = null;
  wasMapped = false;

  constructor(
    readonly device: Device,
    readonly label: string,
    readonly size: number,
    readonly usage: number,
    readonly valid: boolean,
  ) {
    if (size <= N_KEPT) this.kept = new Uint8Array(size);
  }

  mapAsync(mode: number, offset = 0, size = this.size - offset): Promise<void> {
    const { device } = this;
    device.count("mapAsync");
    const wrong = !this.valid || this.destroyed
      ? "it is destroyed or was never made"
      : this.mapped || this.pending
      ? "it is mapped, or about to be"
      : mode !== 1 || !(this.usage & USAGE.MAP_READ)
      ? "its usage has no MAP_READ"
      : offset % 8 || size % 4 || size < 0 || offset + size > this.size
      ? `the range ${offset}+${size} of ${this.size} bytes is misaligned or too long`
      : device.gone
      ? "the device is lost"
      : "";
    if (wrong) {
      const message = `mapAsync of the buffer "${this.label}": ${wrong}`;
      if (!device.gone) device.error("validation", message);
      return Promise.reject(new DOMException(message, "OperationError"));
    }
    // As Deno has it, the bytes of a buffer's later maps are there before the promise says so.
    if (this.wasMapped && device.options.map !== "standard") this.mapped = [offset, offset + size];
    return new Promise((resolve, reject) => {
      this.pending = reject;
      setTimeout(() => {
        if (this.pending !== reject) return; // unmapped meanwhile
        this.pending = null;
        this.mapped = [offset, offset + size];
        this.wasMapped = true;
        resolve();
      });
    });
  }

  getMappedRange(offset = 0, size = this.size - offset): ArrayBuffer {
    this.device.count("getMappedRange");
    if (
      !this.mapped || offset % 8 || size % 4 || offset < this.mapped[0] ||
      offset + size > this.mapped[1]
    ) {
      const message =
        `getMappedRange of the buffer "${this.label}": ${offset}+${size} is not mapped`;
      this.device.note(message);
      throw new DOMException(message, "OperationError");
    }
    return this.kept ? this.kept.slice(offset, offset + size).buffer : new ArrayBuffer(size);
  }

  unmap(): void {
    this.device.count("unmap");
    this.mapped = null;
    const reject = this.pending;
    this.pending = null;
    reject?.(new DOMException("unmapped before it was mapped", "AbortError"));
  }

  destroy(): void {
    this.device.count("destroyBuffer");
    if (this.mapped || this.pending) this.unmap();
    if (!this.destroyed) this.device.forget(this);
    this.destroyed = true;
  }

  /** Why a command cannot use it, or "". Commands are checked for destroyed buffers when they are submitted. */
  unusable(usage: number, name: string, later = false): string {
    if (!this.valid) return `the buffer "${this.label}" was never made`;
    if (!(this.usage & usage)) return `the usage of "${this.label}" has no ${name}`;
    if (later) return "";
    if (this.destroyed) return `the buffer "${this.label}" is destroyed`;
    return this.mapped || this.pending ? `the buffer "${this.label}" is mapped` : "";
  }

  written(offset: number, data: Uint8Array): void {
    this.kept?.set(data, offset);
    if (!this.device.options.ranges) return;
    const last = this.ranges.at(-1);
    if (last && last[1] === offset) last[1] += data.length;
    else this.ranges.push([offset, offset + data.length]);
    if (data.byteOffset % 8 !== 0) data = data.slice();
    const words = new BigUint64Array(data.buffer, data.byteOffset, data.length >> 3);
    for (let i = 0; i < words.length && this.marks.length < N_MARKS; i++) {
      if (words[i] !== 0n) this.marks.push([offset + 8 * i, words[i]!]);
    }
  }

  record(): RecordedBuffer {
    const { label, size, usage, marks } = this;
    const ranges: [number, number][] = [];
    let rewritten = 0;
    for (const [from, to] of this.ranges.toSorted((a, b) => a[0] - b[0])) {
      const last = ranges.at(-1);
      if (!last || from > last[1]) {
        ranges.push([from, to]);
        continue;
      }
      rewritten += Math.min(to, last[1]) - from;
      last[1] = Math.max(to, last[1]);
    }
    return { label, size, usage, ranges, rewritten, marks };
  }
}

interface Layout {
  /** Of its pipeline. */
  label: string;
  bindings: Map<number, Binding>;
}

interface Module {
  bindings: Map<string, { binding: number; type: Binding }>;
  functions: Map<string, { compute: boolean; names: Set<string> }>;
  overrides: Map<string, boolean>;
}

interface Pipeline {
  label: string;
  layout: Layout;
  valid: boolean;
  getBindGroupLayout(index: number): Layout;
}

interface Group {
  layout: Layout;
  buffers: Buffer[];
  valid: boolean;
  /** Why no dispatch may use it. */
  conflict: string;
}

interface Commands {
  buffers: Set<Buffer>;
  wrong: string;
  submitted: boolean;
}

interface Entry {
  binding: number;
  resource: { buffer: Buffer; offset?: number; size?: number };
}

/** Takes a shader's declarations apart: what it binds, its functions and the names in them, its overrides. */
export function readShader(code: string): Module {
  const text = code.replace(/\/\*[^]*?\*\//g, " ").replace(/\/\/.*/g, " ");
  const module: Module = { bindings: new Map(), functions: new Map(), overrides: new Map() };
  const declared =
    /@group\s*\([^)]*\)\s*@binding\s*\(([\d\s+u()]*)\)\s*var\s*<\s*(uniform|storage)\s*(?:,\s*(\w+)\s*)?>\s*(\w+)/g;
  for (const [, sum, space, access, name] of text.matchAll(declared)) {
    const binding = sum!.match(/\d+/g)!.reduce((n, part) => n + Number(part), 0); // e.g. "(2 + 1) + 1"
    const type = space === "uniform"
      ? "uniform"
      : access === "read_write"
      ? "storage"
      : "read-only-storage";
    module.bindings.set(name!, { binding, type });
  }
  for (
    const [, id, name, init] of text.matchAll(
      /(?:@id\s*\(\s*(\d+)\s*\)\s*)?\boverride\s+(\w+)[^;=]*(=)?/g,
    )
  ) {
    module.overrides.set(id ?? name!, init !== undefined);
  }
  for (const match of text.matchAll(/((?:@\w+\s*(?:\([^)]*\))?\s*)*)\bfn\s+(\w+)/g)) {
    const from = text.indexOf("{", match.index);
    let to = from;
    for (let depth = 0; to < text.length; to++) {
      if (text[to] === "{") depth++;
      else if (text[to] === "}" && --depth === 0) break;
    }
    module.functions.set(match[2]!, {
      compute: match[1]!.includes("@compute"),
      names: new Set(text.slice(from, to).match(/[A-Za-z_]\w*/g)),
    });
  }
  return module;
}

/** What an entry point can reach, which is what its derived layout binds. */
function layoutOf(label: string, module: Module, entryPoint: string): Layout {
  const bindings = new Map<number, Binding>();
  const seen = new Set<string>();
  const open = [entryPoint];
  for (let name; (name = open.pop()) !== undefined;) {
    if (seen.has(name)) continue;
    seen.add(name);
    const bound = module.bindings.get(name);
    if (bound) bindings.set(bound.binding, bound.type);
    open.push(...module.functions.get(name)?.names ?? []);
  }
  return { label, bindings };
}

class Queue {
  constructor(readonly device: Device) {}

  writeBuffer(buffer: Buffer, offset: number, data: Uint8Array): void {
    const { device } = this;
    device.count("writeBuffer");
    if (data.length % 4 !== 0) {
      const message =
        `writeBuffer to "${buffer.label}": ${data.length} bytes are not a multiple of 4`;
      device.note(message);
      throw new DOMException(message, "OperationError");
    }
    if (data.length === 0) return device.error("validation", "writeBuffer of no bytes ends Deno");
    const wrong = buffer.unusable(USAGE.COPY_DST, "COPY_DST") ||
      (offset % 4 || offset < 0 || offset + data.length > buffer.size
        ? `${data.length} bytes at ${offset} do not fit ${buffer.size}`
        : "");
    if (wrong) return device.error("validation", `writeBuffer to "${buffer.label}": ${wrong}`);
    device.largestWrite = Math.max(device.largestWrite, data.length);
    if (!device.gone) buffer.written(offset, data);
  }

  submit(list: Commands[]): void {
    const { device } = this;
    device.count("submit");
    if (device.gone) return;
    if (list.length > 0 && ++device.submits > (device.options.loseAfterSubmits ?? Infinity)) {
      return device.lose("the test takes it away");
    }
    for (const commands of list) {
      let wrong = commands.wrong || (commands.submitted ? "commands were submitted before" : "");
      for (const buffer of commands.buffers) {
        if (wrong) break;
        if (buffer.destroyed) wrong = `the buffer "${buffer.label}" is destroyed`;
        else if (buffer.mapped || buffer.pending) wrong = `the buffer "${buffer.label}" is mapped`;
      }
      commands.submitted = true;
      if (wrong) device.error("validation", `submit: ${wrong}`);
    }
  }

  onSubmittedWorkDone(): Promise<void> {
    this.device.count("onSubmittedWorkDone");
    return Promise.resolve();
  }
}

class Pass {
  #pipeline: Pipeline | null = null;
  #group: Group | null = null;
  #ended = false;

  constructor(readonly encoder: Encoder) {}

  setPipeline(pipeline: Pipeline): void {
    this.encoder.device.count("setPipeline");
    if (this.#ended) this.encoder.fail("setPipeline in a pass that has ended");
    this.#pipeline = pipeline;
  }

  setBindGroup(index: number, group: Group): void {
    this.encoder.device.count("setBindGroup");
    if (index !== 0) this.encoder.fail(`bind group ${index} of 1`);
    if (this.#ended) this.encoder.fail("setBindGroup in a pass that has ended");
    this.#group = group;
    this.encoder.use(group.buffers);
  }

  dispatchWorkgroups(x: number, y = 1, z = 1): void {
    const { encoder } = this;
    encoder.device.count("dispatchWorkgroups");
    const most = encoder.device.limits.maxComputeWorkgroupsPerDimension!;
    const pipeline = this.#pipeline;
    const group = this.#group;
    if (this.#ended) encoder.fail("a dispatch in a pass that has ended");
    else if (!pipeline?.valid) encoder.fail("a dispatch without a valid pipeline");
    else if (pipeline.layout.bindings.size > 0 && group?.layout !== pipeline.layout) {
      encoder.fail(`a dispatch of "${pipeline.label}" with no bind group or another pipeline's`);
    } else if (group && !group.valid) {
      encoder.fail(`a dispatch of "${pipeline.label}" with an invalid bind group`);
    } else if (group?.conflict) {
      encoder.fail(`a dispatch of "${pipeline.label}": ${group.conflict}`);
    } else if (x > most || y > most || z > most) {
      encoder.fail(`a dispatch of ${x} x ${y} x ${z} workgroups, at most ${most} each`);
    }
  }

  end(): void {
    this.encoder.device.count("endPass");
    if (this.#ended) this.encoder.fail("a pass that ends twice");
    this.#ended = true;
    this.encoder.open = null;
  }
}

class Encoder {
  open: Pass | null = null;
  readonly #buffers = new Set<Buffer>();
  #wrong = "";
  #finished = false;

  constructor(readonly device: Device) {}

  fail(why: string): void {
    this.#wrong ||= why;
  }

  use(buffers: Buffer[]): void {
    for (const buffer of buffers) this.#buffers.add(buffer);
  }

  beginComputePass(): Pass {
    this.device.count("beginComputePass");
    if (this.open || this.#finished) this.fail("a pass in an encoder that is busy or finished");
    return this.open = new Pass(this);
  }

  copyBufferToBuffer(from: Buffer, at: number, to: Buffer, toAt: number, size: number): void {
    this.device.count("copyBufferToBuffer");
    const wrong = from.unusable(USAGE.COPY_SRC, "COPY_SRC", true) ||
      to.unusable(USAGE.COPY_DST, "COPY_DST", true) ||
      (from === to
        ? "source and destination are the same buffer"
        : at % 4 || toAt % 4 || size % 4 || at < 0 || toAt < 0 || size < 0
        ? `offsets ${at} and ${toAt} and size ${size} must be multiples of 4`
        : at + size > from.size || toAt + size > to.size
        ? `${size} bytes from ${at} of ${from.size} to ${toAt} of ${to.size}`
        : this.open || this.#finished
        ? "the encoder is busy or finished"
        : "");
    if (wrong) return this.fail(`copyBufferToBuffer "${from.label}" to "${to.label}": ${wrong}`);
    this.use([from, to]);
    if (from.kept && to.kept) to.kept.set(from.kept.subarray(at, at + size), toAt);
  }

  finish(): Commands {
    this.device.count("finish");
    if (this.open) this.fail("finish with an open pass");
    if (this.#finished) this.fail("finish twice");
    this.#finished = true;
    if (this.#wrong) this.device.error("validation", this.#wrong);
    // Commands that are wrong were complained of here.
    return { buffers: this.#buffers, wrong: this.#wrong, submitted: false };
  }
}

/** An error that no scope took. */
class UncapturedError extends Event {
  constructor(readonly error: { message: string }) {
    super("uncapturederror", { cancelable: true });
  }
}

class Device extends EventTarget {
  readonly queue: Queue;
  readonly lost: Promise<{ reason: string; message: string }>;
  readonly errors: string[] = [];
  readonly calls: Record<string, number> = {};
  readonly live = new Set<Buffer>();
  gone = false;
  submits = 0;
  bytes = 0;
  peakBytes = 0;
  largestWrite = 0;
  #lose!: (info: { reason: string; message: string }) => void;
  readonly #scopes: { filter: string; error: { message: string } | null }[] = [];

  constructor(
    readonly options: RecordingOptions,
    readonly features: Set<string>,
    readonly limits: Record<string, number>,
  ) {
    super();
    this.queue = new Queue(this);
    this.lost = new Promise((resolve) => this.#lose = resolve);
  }

  count(name: string): void {
    this.calls[name] = (this.calls[name] ?? 0) + 1;
  }

  note(message: string): void {
    if (this.errors.length < 1000) this.errors.push(message);
  }

  error(filter: Filter, message: string): void {
    if (this.gone) return; // a lost device complains no more
    this.note(message);
    const scope = this.#scopes.findLast((scope) => scope.filter === filter);
    if (scope) scope.error ??= { message };
    else queueMicrotask(() => this.dispatchEvent(new UncapturedError({ message })));
  }

  lose(message: string): void {
    if (this.gone) return;
    this.gone = true;
    for (const buffer of this.live) if (buffer.pending) buffer.unmap();
    this.#lose({ reason: "unknown", message });
  }

  destroy(): void {
    this.count("destroyDevice");
    if (this.gone) return;
    for (const buffer of [...this.live]) buffer.destroy();
    this.gone = true;
    this.#lose({ reason: "destroyed", message: "destroyed" });
  }

  forget(buffer: Buffer): void {
    if (this.live.delete(buffer)) this.bytes -= buffer.size;
  }

  pushErrorScope(filter: Filter): void {
    this.#scopes.push({ filter, error: null });
  }

  popErrorScope(): Promise<{ message: string } | null> {
    const scope = this.#scopes.pop();
    if (this.gone) return Promise.resolve(null);
    if (!scope) return Promise.reject(new DOMException("no error scope", "OperationError"));
    return Promise.resolve(scope.error);
  }

  createBuffer(
    { label = "", size, usage, mappedAtCreation }: {
      label?: string;
      size: number;
      usage: number;
      mappedAtCreation?: boolean;
    },
  ): Buffer {
    this.count("createBuffer");
    const { outOfMemoryAt = Infinity, memory = Infinity } = this.options;
    const most = this.limits.maxBufferSize!;
    const wrong = !Number.isSafeInteger(size) || size < 0
      ? `the size ${size}`
      : size > most
      ? `${size} bytes, at most ${most}`
      : usage === 0 || (usage & ~0x3ff) !== 0
      ? `the usage ${usage}`
      : (usage & USAGE.MAP_READ) && (usage & ~(USAGE.MAP_READ | USAGE.COPY_DST))
      ? "MAP_READ goes with COPY_DST alone"
      : (usage & USAGE.MAP_WRITE) && (usage & ~(USAGE.MAP_WRITE | USAGE.COPY_SRC))
      ? "MAP_WRITE goes with COPY_SRC alone"
      : mappedAtCreation
      ? "mappedAtCreation is not recorded"
      : "";
    const noRoom = !wrong && (size >= outOfMemoryAt || this.bytes + size > memory);
    const buffer = new Buffer(this, label, size, usage, !wrong && !noRoom);
    if (wrong) this.error("validation", `createBuffer "${label}": ${wrong}`);
    else if (noRoom) this.error("out-of-memory", `createBuffer "${label}": no room for ${size}`);
    else {
      this.live.add(buffer);
      this.bytes += size;
      this.peakBytes = Math.max(this.peakBytes, this.bytes);
    }
    return buffer;
  }

  createShaderModule({ code }: { code: string }): Module {
    this.count("createShaderModule");
    return readShader(code);
  }

  createComputePipeline(
    { label = "", layout, compute: { module, entryPoint, constants = {} } }: {
      label?: string;
      layout: string;
      compute: { module: Module; entryPoint: string; constants?: Record<string, number> };
    },
  ): Pipeline {
    this.count("createComputePipeline");
    const derived = layoutOf(label, module, entryPoint);
    const types = [...derived.bindings.values()];
    const n = (uniform: boolean) => types.filter((t) => (t === "uniform") === uniform).length;
    const { refusePipeline } = this.options;
    const unknown = Object.keys(constants).find((key) => !module.overrides.has(key));
    const unset = [...module.overrides].find(([key, has]) => !has && !(key in constants));
    const wrong = layout !== "auto"
      ? "a layout that is not derived"
      : !module.functions.get(entryPoint)?.compute
      ? `no entry point "${entryPoint}"`
      : n(false) > this.limits.maxStorageBuffersPerShaderStage!
      ? `${n(false)} storage buffers, at most ${this.limits.maxStorageBuffersPerShaderStage}`
      : n(true) > this.limits.maxUniformBuffersPerShaderStage!
      ? `${n(true)} uniform buffers`
      : unknown !== undefined
      ? `no override "${unknown}"`
      : unset
      ? `the override "${unset[0]}" has no value`
      : refusePipeline && label.includes(refusePipeline)
      ? "the test refuses it"
      : "";
    if (wrong) this.error("validation", `createComputePipeline "${label}": ${wrong}`);
    return {
      label,
      layout: derived,
      valid: !wrong,
      getBindGroupLayout: (index) => {
        if (index !== 0) this.error("validation", `bind group layout ${index} of 1`);
        return derived;
      },
    };
  }

  createBindGroup({ layout, entries }: { layout: Layout; entries: Entry[] }): Group {
    this.count("createBindGroup");
    const parts: { buffer: Buffer; from: number; to: number; type: Binding }[] = [];
    const seen = new Set<number>();
    let wrong = entries.length === layout.bindings.size
      ? ""
      : `entries ${entries.map((entry) => entry.binding)} for bindings ${[
        ...layout.bindings.keys(),
      ]}`;
    for (
      const { binding, resource: { buffer, offset = 0, size = buffer.size - offset } } of entries
    ) {
      const type = layout.bindings.get(binding);
      const kind = type === "uniform" ? "Uniform" : "Storage";
      const align = this.limits[`min${kind}BufferOffsetAlignment`]!;
      const most = this.limits[`max${kind}BufferBindingSize`]!;
      wrong ||= !type
        ? `the shader has no binding ${binding}`
        : seen.has(binding)
        ? `binding ${binding} twice`
        : buffer.unusable(
          type === "uniform" ? USAGE.UNIFORM : USAGE.STORAGE,
          kind.toUpperCase(),
          true,
        ) ||
          (offset % align !== 0
            ? `the offset ${offset} of binding ${binding} is not a multiple of ${align}`
            : size <= 0 || size > most
            ? `${size} bytes at binding ${binding}, at most ${most}`
            : offset < 0 || offset + size > buffer.size
            ? `${size} bytes at ${offset} of ${buffer.size} at binding ${binding}`
            : type !== "uniform" && size % 4 !== 0
            ? `${size} bytes at binding ${binding} are not a multiple of 4`
            : "");
      seen.add(binding);
      if (type) parts.push({ buffer, from: offset, to: offset + size, type });
    }
    if (wrong) this.error("validation", `createBindGroup for "${layout.label}": ${wrong}`);
    return {
      layout,
      buffers: [...new Set(parts.map((part) => part.buffer))],
      valid: !wrong,
      conflict: conflictIn(parts),
    };
  }

  createCommandEncoder(): Encoder {
    this.count("createCommandEncoder");
    return new Encoder(this);
  }

  report(): RecordingReport {
    const { calls, errors, peakBytes, largestWrite } = this;
    const buffers = [...this.live].map((buffer) => buffer.record());
    return { calls, errors, buffers, peakBytes, largestWrite };
  }
}

/** A buffer may be read several times in a dispatch, or written, not both; and no byte through two bindings. */
function conflictIn(
  parts: { buffer: Buffer; from: number; to: number; type: Binding }[],
): string {
  for (const [i, a] of parts.entries()) {
    if (a.type !== "storage") continue;
    for (const [k, b] of parts.entries()) {
      if (a.buffer !== b.buffer || k === i) continue;
      if (b.type !== "storage") return `"${a.buffer.label}" is both read and written`;
      if (a.from < b.to && b.from < a.to) {
        return `bytes of "${a.buffer.label}" are written through two bindings`;
      }
    }
  }
  return "";
}

/**
 * A provider of the recording device.
 *
 * @param options What it is like.
 * @param limits Limits that differ from those of a large GPU.
 * @returns What stands in for `navigator.gpu`, and what was done with its last device.
 */
export function recordingGpu(
  options: RecordingOptions = {},
  limits: Record<string, number> = {},
): { gpu: Pick<GPU, "requestAdapter">; report(): RecordingReport } {
  const has = { ...LIMITS, ...limits };
  const features = new Set(options.f16 === 0 ? [] : ["shader-f16"]);
  let device: Device | undefined;
  const adapter = {
    features, // as Deno has it, without subgroups
    limits: has,
    info: {
      vendor: options.vendor ?? "4318",
      architecture: "",
      device: "0",
      description: options.description ?? "recording device",
      subgroupMinSize: 32,
      subgroupMaxSize: 32,
      isFallbackAdapter: false,
    },
    requestDevice(
      { requiredFeatures = [], requiredLimits = {} }: {
        requiredFeatures?: string[];
        requiredLimits?: Record<string, number>;
      } = {},
    ): Promise<Device> {
      const lacks = requiredFeatures.find((name) =>
        !(name === "subgroups" ? options.subgroups !== 0 : features.has(name))
      );
      if (lacks) return Promise.reject(new TypeError(`no feature "${lacks}"`));
      const over = Object.entries(requiredLimits).find(([name, value]) =>
        has[name] === undefined || (name.startsWith("min") ? value < has[name] : value > has[name])
      );
      if (over) return Promise.reject(new DOMException(`the limit ${over}`, "OperationError"));
      if (options.refuseDevice) {
        return Promise.reject(new DOMException("the test refuses it", "OperationError"));
      }
      device = new Device(options, new Set(requiredFeatures), { ...has, ...requiredLimits });
      return Promise.resolve(device);
    },
  };
  return {
    gpu: {
      requestAdapter: () =>
        Promise.resolve(options.noAdapter ? null : adapter as unknown as GPUAdapter),
    },
    report: () =>
      device?.report() ?? { calls: {}, errors: [], buffers: [], peakBytes: 0, largestWrite: 0 },
  };
}

const TEXTS = ["vendor", "description", "refusePipeline", "map", "id"];

function fromQuery(query: URLSearchParams): ReturnType<typeof recordingGpu> {
  const options: Record<string, string | number> = {};
  const limits: Record<string, number> = {};
  for (const [name, value] of query) {
    if (TEXTS.includes(name)) options[name] = value;
    else if (name in LIMITS) limits[name] = Number(value);
    else options[name] = Number(value);
  }
  return recordingGpu(options, limits);
}

const own = fromQuery(new URL(import.meta.url).searchParams);

/** What stands in for `navigator.gpu`. */
export const gpu: Pick<GPU, "requestAdapter"> = own.gpu;

const id = new URL(import.meta.url).searchParams.get("id");
if (id) {
  const channel = new BroadcastChannel(REPORTS);
  channel.onmessage = ({ data }) => {
    if (data === id) channel.postMessage({ id, report: own.report() });
  };
}
