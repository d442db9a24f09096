import { assertEquals } from "@std/assert";
import { fetchLine } from "./fetch_progress.ts";

Deno.test("fetchLine() tells the part, the rate and the time that is left", () => {
  const progress = {
    doing: "fetching",
    file: "m.gguf",
    number: 1,
    count: 1,
    bytes: 1 << 20,
    size: 4 << 20,
  } as const;
  assertEquals(fetchLine(progress, 0), "fetching m.gguf: 25 % of 4.00 MiB");
  assertEquals(
    fetchLine(progress, 1 << 20),
    "fetching m.gguf: 25 % of 4.00 MiB, 1.00 MiB/s, 3 s left",
  );
  assertEquals(
    fetchLine({ ...progress, number: 2, count: 3 }, 1 << 15),
    "fetching m.gguf (2 of 3): 25 % of 4.00 MiB, 32.0 KiB/s, 1 min 36 s left",
  );
  assertEquals(
    fetchLine({ ...progress, doing: "waiting" }, 1 << 20),
    "another process is fetching m.gguf: 25 % of 4.00 MiB",
  );
});
