import { assertEquals, assertRejects } from "@std/assert";
import { folderSize } from "./folder_size.ts";

Deno.test("folderSize() counts files however deep, and no link", async () => {
  const folder = await Deno.makeTempDir();
  try {
    assertEquals(await folderSize(folder), { bytes: 0, isPartial: false });
    await Deno.mkdir(`${folder}/a/b/c`, { recursive: true });
    await Deno.writeFile(`${folder}/one`, new Uint8Array(10));
    await Deno.writeFile(`${folder}/a/b/c/two`, new Uint8Array(500));
    await Deno.writeFile(`${folder}/a/three`, new Uint8Array(7000));
    if (Deno.build.os !== "windows") {
      await Deno.symlink(`${folder}/a`, `${folder}/again`);
      await Deno.symlink(`${folder}/a/three`, `${folder}/three`);
    }
    assertEquals(await folderSize(folder), { bytes: 7510, isPartial: false });
    await assertRejects(() => folderSize(`${folder}/none`), Deno.errors.NotFound);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
