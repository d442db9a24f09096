import { assertEquals, assertRejects } from "@std/assert";
import { readInput } from "./read_input.ts";

Deno.test("readInput() reads a file whole", async () => {
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, "Grüße\n".repeat(20_000));
    assertEquals(await readInput(file), "Grüße\n".repeat(20_000));
    await Deno.writeFile(file, new Uint8Array([0x66, 0xff]));
    await assertRejects(() => readInput(file), Error, "it is not UTF-8 text");
    await assertRejects(() => readInput(`${file}.none`), Error, `${file}.none`);
  } finally {
    await Deno.remove(file);
  }
});

Deno.test({
  name: "readInput() ends at a device that does not",
  ignore: Deno.build.os === "windows", // it has none
  fn: async () => {
    await assertRejects(() => readInput("/dev/zero"), Error, "it is longer than 256 MiB");
  },
});
