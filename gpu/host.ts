/**
 * A WASM instance's GPU: chosen before the instance starts, then driven by the words that its threads record.
 *
 * @module
 */

import { chooseGpu, type GpuChoice, type GpuInfo, type GpuProvider, packFacts } from "./device.ts";
import { prepareDriverEnv } from "./driver_env.ts";
import { Executor, type GpuCounts } from "./executor.ts";
import { makeReadback } from "./readback.ts";

/** The part of an instance that is used; pointers are bigint if its memory is 64-bit. */
export interface GpuInstance {
  wasmMemory: WebAssembly.Memory;
  _malloc?(n: number): number | bigint;
  [name: `_rys_${string}`]: (...args: (number | bigint)[]) => number | bigint | undefined;
}

/** The GPU of one instance. */
export class GpuHost {
  /** What it is. */
  readonly info: GpuInfo;
  /** The read-back in use. */
  readonly readback: "sync" | "awaited";
  readonly #facts: Uint8Array;
  readonly #executor: Executor;
  readonly #fatal: (message: string) => void;
  #instance: GpuInstance | null = null;
  #failed = false;
  /** Set from the moment a command throws until it is reported: later commands meet a broken encoder and say nothing new. */
  #failing: Promise<void> | null = null;

  private constructor(
    info: GpuInfo,
    facts: Uint8Array,
    device: GPUDevice,
    readback: Awaited<ReturnType<typeof makeReadback>>,
    fatal: (message: string) => void,
  ) {
    this.info = info;
    this.readback = readback.form;
    this.#facts = facts;
    this.#fatal = fatal;
    this.#executor = new Executor(
      device,
      () => this.#instance!.wasmMemory.buffer,
      readback,
      (message) => this.#fail(message),
    );
    device.lost.then(({ reason, message }) => {
      if (reason !== "destroyed") this.#fail(`the GPU device was lost: ${message}`);
    });
    device.addEventListener("uncapturederror", (event) => {
      event.preventDefault();
      this.#fail(`the GPU refused a command: ${(event as GPUUncapturedErrorEvent).error.message}`);
    });
  }

  /**
   * Chooses and opens a device.
   *
   * @param choice What was asked for.
   * @param fatal Called once when the device is gone; the instance is then useless.
   * @returns The GPU, or why there is none.
   */
  static async open(
    choice: GpuChoice,
    fatal: (message: string) => void,
  ): Promise<GpuHost | { why: string }> {
    if (choice.mode === "off") return { why: "switched off" };
    if ("Deno" in globalThis && !choice.provider) prepareDriverEnv();
    const provider: GpuProvider | undefined = choice.provider
      ? (await import(choice.provider)).gpu
      : navigator.gpu;
    const gpu = await chooseGpu(choice, provider);
    if ("why" in gpu) return gpu;
    const readback = await makeReadback(gpu.device, choice.readback);
    const facts = packFacts(gpu, choice.immediate ?? false);
    return new GpuHost(gpu.info, facts, gpu.device, readback, fatal);
  }

  /**
   * Tells an instance about its device, before anything in it looks for one.
   *
   * @param instance The instance.
   */
  attach(instance: GpuInstance): void {
    this.#instance = instance;
    const at = Number(instance._rys_gpu_facts_at!());
    new Uint8Array(instance.wasmMemory.buffer, at, this.#facts.length).set(this.#facts);
  }

  /** Executes a stream of words for the instance (`rys_js_gpu`). */
  run(job: number | bigint, words: number, n: number, waits: boolean): void {
    const done = (ok: boolean) => {
      if (waits) this.#instance!._rys_gpu_done!(job, Number(ok));
    };
    if (this.#failed) return done(false);
    if (this.#failing) return void this.#failing.then(() => done(false));
    try {
      const result = this.#executor.run(words, n);
      if (typeof result === "boolean") return done(result);
      result.then(done, (error) => this.#failSoon(error, done));
    } catch (error) {
      this.#failSoon(error, done);
    }
  }

  /** What a lost device refuses is a consequence: the loss itself is reported a moment later, and takes precedence. */
  #failSoon(error: unknown, done: (ok: boolean) => void): void {
    this.#failing ??= new Promise((resolve) =>
      setTimeout(() => {
        this.#fail((error as Error).message);
        resolve();
      }, 20)
    );
    this.#failing.then(() => done(false));
  }

  /** What has been done so far. */
  get counts(): GpuCounts & { recorded: number } {
    return {
      ...this.#executor.counts,
      recorded: Number(this.#instance?._rys_gpu_crossings?.() ?? 0),
    };
  }

  /** Frees what the device holds. */
  dispose(): void {
    this.#failed = true;
    this.#executor.dispose();
  }

  #fail(message: string): void {
    if (this.#failed) return;
    this.#failed = true;
    const instance = this.#instance;
    if (instance) {
      const bytes = new TextEncoder().encode(message + "\0");
      const at = Number(instance._malloc!(bytes.length)); // never freed: the instance is ending
      new Uint8Array(instance.wasmMemory.buffer, at, bytes.length).set(bytes);
      const wide = typeof instance._rys_gpu_facts_at!() === "bigint";
      instance._rys_gpu_fail!(wide ? BigInt(at) : at);
    }
    this.#fatal(message);
  }
}
