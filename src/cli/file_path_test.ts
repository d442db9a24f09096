import { assertEquals } from "@std/assert";
import { filePath } from "./file_path.ts";

Deno.test({
  name: "filePath() decodes",
  ignore: Deno.build.os === "windows",
  fn() {
    assertEquals(filePath(new URL("file:///my%20space/%C3%A4/100%/")), "/my space/ä/100%/");
    assertEquals(filePath(new URL("https://jsr.io/a%20b")), "https://jsr.io/a%20b");
  },
});
