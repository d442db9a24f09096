import { assertEquals } from "@std/assert";
import { startChild } from "../server/_child.ts";
import { MODEL, start } from "./_program.ts";

/** How often Deno was asked to read a file, as its own record of permissions tells. */
async function reads(record: string): Promise<number> {
  return (await Deno.readTextFile(record)).split("\n")
    .filter((line) => line.includes('"permission":"read"') && line.includes("demo.gguf")).length;
}

/** A look at its header, one at its size, and the engine's own reading. */
const ONCE = 3;

Deno.test("run and serve read a model's header once", async () => {
  const record = await Deno.makeTempFile();
  try {
    const env = { DENO_AUDIT_PERMISSIONS: record };
    const run = start(["-m", MODEL, "-p", "Once", "-n", "1", "--quiet"], { env });
    const [{ code }] = await Promise.all([
      run.status,
      new Response(run.stdout).text(),
      new Response(run.stderr).text(),
    ]);
    await run.stdin.close();
    assertEquals([code, await reads(record)], [0, ONCE]);
    await Deno.truncate(record);
    const server = await startChild({}, { env });
    assertEquals((await server.stop()).code, 0);
    assertEquals(await reads(record), ONCE);
  } finally {
    await Deno.remove(record);
  }
});
