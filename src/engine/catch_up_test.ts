import { assertEquals } from "@std/assert";
import { catchUp } from "./catch_up.ts";

/** Sends a memory through a port; it grows on the way. */
async function received(memory: WebAssembly.Memory, page: number | bigint) {
  const { port1, port2 } = new MessageChannel();
  const message = new Promise<WebAssembly.Memory>((resolve) => {
    port2.onmessage = ({ data }) => resolve(data);
  });
  port1.postMessage(memory);
  memory.grow(page as number);
  const got = await message;
  port1.close();
  port2.close();
  return got;
}

for (const [name, n] of [["32", Number], ["64", BigInt]] as const) {
  Deno.test(`a memory with ${name}-bit addresses that grew on its way is caught up with`, async () => {
    const memory = new WebAssembly.Memory({
      initial: n(1),
      maximum: n(9),
      shared: true,
      ...name === "64" ? { address: "i64" } : {},
    } as WebAssembly.MemoryDescriptor);
    const got = await received(memory, n(1));
    catchUp(got);
    assertEquals(got.buffer.byteLength, 2 * 65536);
    catchUp(got); // harmless again
    new Uint8Array(memory.buffer)[65536] = 7;
    assertEquals(new Uint8Array(got.buffer)[65536], 7);
  });
}
