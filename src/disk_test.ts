import { assert, assertEquals } from "@std/assert";
import { diskReason, freeSpace } from "./disk.ts";

Deno.test("freeSpace() tells bytes, and nothing of a folder that is not there", async () => {
  const free = await freeSpace(Deno.cwd());
  assert(free !== undefined && Number.isSafeInteger(free) && free > 0, `${free}`);
  assertEquals(await freeSpace("/there/is/no/such/folder"), undefined);
});

Deno.test({
  name: "freeSpace() without the permission tells nothing",
  permissions: { read: true, sys: false },
  fn: async () => assertEquals(await freeSpace("."), undefined),
});

Deno.test("diskReason() knows errors that Deno gives no code", () => {
  assertEquals(
    diskReason(new Error("File too large (os error 27)")),
    "the file system or a limit of the process does not allow so large a file",
  );
  assertEquals(
    diskReason(new Error("Disk quota exceeded (os error 122)")),
    "the user's share of the disk is full",
  );
  assertEquals(diskReason(new Error("Something else (os error 5): read 'x'")), "Something else");
});
