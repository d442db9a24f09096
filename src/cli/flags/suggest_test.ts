import { assertEquals } from "@std/assert";
import { suggest } from "./suggest.ts";

Deno.test("suggest() finds the nearest name", () => {
  const names = ["--repeat-layers", "--repeat-penalty", "--temp", "-m", "-md"];
  assertEquals(suggest("--repeat-layer", names), "--repeat-layers");
  assertEquals(suggest("--Temp", names), "--temp");
  assertEquals(suggest("--tmep", names), "--temp");
  assertEquals(suggest("-M", names), "-m");
  assertEquals(suggest("--repeat", names), "--repeat-layers");
});

Deno.test("suggest() stays silent where nothing is near", () => {
  assertEquals(suggest("--quux", ["--repeat-layers", "--temp"]), undefined);
  assertEquals(suggest("-", ["--temp"]), undefined);
});
