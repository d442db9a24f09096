/**
 * Reading a mapped buffer. `mapAsync` under Deno 2.9 blocks until the device is done and then sleeps 10 ms before its
 * promise resolves, although the data is there at once. So a buffer that has been mapped before is mapped without awaiting. That
 * relies on Deno's implementation: a check at start decides, and anything unexpected means the awaited form.
 *
 * @module
 */

const MAP_READ = 1; // GPUMapMode.READ
const USAGE_READ = 0x1 | 0x8; // MAP_READ | COPY_DST
const USAGE_SOURCE = 0x4 | 0x8; // COPY_SRC | COPY_DST

/** Reads the buffers of one device. */
export class Readback {
  readonly #ready = new WeakSet<GPUBuffer>();
  /** The form in use. */
  form: "sync" | "awaited";

  constructor(form: "sync" | "awaited") {
    this.form = form;
  }

  /**
   * Copies a range of a buffer that has the usage MAP_READ, after all work submitted before.
   *
   * @param buffer The buffer; nobody maps it at the same time.
   * @param offset Bytes, a multiple of 8.
   * @param dst Where the bytes go; a multiple of 4 of them.
   * @returns A promise if the bytes come later.
   * @throws {Error} If the device is lost.
   */
  read(buffer: GPUBuffer, offset: number, dst: Uint8Array): void | Promise<void> {
    if (this.form === "sync" && this.#ready.has(buffer)) {
      // Its promise rejects at the unmap below, or resolves later; neither matters.
      buffer.mapAsync(MAP_READ, offset, dst.length).catch(() => {});
      this.#take(buffer, offset, dst);
      return;
    }
    return this.#awaited(buffer, offset, dst);
  }

  async #awaited(buffer: GPUBuffer, offset: number, dst: Uint8Array): Promise<void> {
    await buffer.mapAsync(MAP_READ, offset, dst.length);
    this.#take(buffer, offset, dst);
    this.#ready.add(buffer);
  }

  #take(buffer: GPUBuffer, offset: number, dst: Uint8Array): void {
    try {
      dst.set(new Uint8Array(buffer.getMappedRange(offset, dst.length)));
    } finally {
      buffer.unmap();
    }
  }
}

/**
 * A read-back in the synchronous form if that is seen to work on this device, else in the awaited one.
 *
 * @param device The device.
 * @param form What to try.
 */
export async function makeReadback(
  device: GPUDevice,
  form: "sync" | "awaited" = "sync",
): Promise<Readback> {
  const readback = new Readback(form);
  if (form === "awaited" || !("Deno" in globalThis)) {
    readback.form = "awaited";
    return readback;
  }
  const n = 256;
  const source = device.createBuffer({ label: "check", size: n, usage: USAGE_SOURCE });
  const staging = device.createBuffer({ label: "check", size: n, usage: USAGE_READ });
  try {
    for (let round = 0; round < 4; round++) {
      const pattern = new Uint8Array(n).map((_, i) => (i * 7 + round * 31 + 1) & 255);
      device.queue.writeBuffer(source, 0, pattern);
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(source, 0, staging, 0, n);
      device.queue.submit([encoder.finish()]);
      const got = new Uint8Array(n);
      const later = readback.read(staging, 0, got);
      if (later) await later; // the first time
      if (got.some((byte, i) => byte !== pattern[i])) throw new Error("other bytes");
    }
  } catch {
    readback.form = "awaited";
  } finally {
    source.destroy();
    staging.destroy();
  }
  return readback;
}
