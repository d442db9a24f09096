/**
 * Brings a shared memory that arrived in a message up to its present size. It arrives as large as the memory was
 * when the message was sent, and V8 tells an isolate only about later growth: reads beyond that size would give
 * undefined, and writes would be lost, until the memory grows again.
 *
 * @param memory The memory, of either address type.
 */
export function catchUp(memory: WebAssembly.Memory): void {
  const grow = (pages: number | bigint) => memory.grow(pages as number);
  try {
    grow(0n);
  } catch {
    grow(0); // 32-bit addresses
  }
}
