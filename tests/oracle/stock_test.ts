// "Off is stock": a plain context of the hooked sources computes and saves what upstream's own sources do, bit for bit.

import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { runOracle } from "./run_oracle.ts";

const program = (sources: "upstream" | "hooked") =>
  new URL(`../../wasm/stock/${sources}/rys-stock.js`, import.meta.url);

async function linesOf(
  sources: "upstream" | "hooked",
  models: ReadonlyMap<string, Uint8Array<ArrayBuffer>>,
): Promise<string[]> {
  const copies = new Map([...models].map(([name, bytes]) => [name, bytes.slice()]));
  const args = [...models.keys()].map((name) => `/in/${name}`);
  const { lines, code } = await runOracle(args, undefined, copies, program(sources));
  assertEquals(code, 0, lines.join("\n"));
  return lines;
}

const HASHES =
  /^\/in\/\S+\.gguf: logits [0-9a-f]{16}, state \d+ [0-9a-f]{16}, sequence \d+ [0-9a-f]{16}$/;

Deno.test({
  name: "without a plan, logits and states are those of upstream's own sources, bit for bit",
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    const { files, code } = await runOracle(["--write", "/out"]);
    assertEquals(code, 0);
    for (const name of ["demo.gguf", "demo-q8_0.gguf"]) {
      files.set(name, await Deno.readFile(new URL(`../../models/${name}`, import.meta.url)));
    }
    const upstream = await linesOf("upstream", files);
    assertEquals(upstream.length, files.size);
    for (const line of upstream) assertMatch(line, HASHES);
    const logits = upstream.map((line) => /logits (\w+)/.exec(line)![1]);
    assertEquals(new Set(logits).size, logits.length); // models differ, so do their hashes
    assertEquals(await linesOf("hooked", files), upstream);
    // A changed weight changes the line: the comparison sees what it should.
    const demo = files.get("demo.gguf")!;
    demo[demo.length - 1] = demo.at(-1)! ^ 0x40;
    const [changed] = await linesOf("hooked", new Map([["demo.gguf", demo]]));
    assertNotEquals(changed, upstream[[...files.keys()].indexOf("demo.gguf")]);
  },
});
