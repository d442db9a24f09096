/**
 * Brings a shared memory that came in a message up to its present size. What is received is as large as the memory was
 * when the message was sent, and V8 tells an isolate of growth only from then on: pointers beyond would read as
 * undefined, and what is written there be lost, until the memory grows the next time.
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
