// The package as it is published: what it ships, and that it runs from a URL.

import { assert, assertEquals } from "@std/assert";
import { publishedFiles, ROOT } from "./_published.ts";

/** JSR's limit for all files of a version together, and for each. */
const JSR_BYTES = 20 * 2 ** 20;

Deno.test("the published package is within JSR's limit, and ships what runs and nothing else", async () => {
  const files = await publishedFiles();
  const bytes = files.reduce((n, { size }) => n + size, 0);
  assert(
    bytes < JSR_BYTES,
    `${bytes} bytes:\n${files.map(({ path, size }) => `${size} ${path}`).join("\n")}`,
  );
  const folders = new Set(files.map(({ path }) => path.split("/")[0]));
  assertEquals(
    [...folders].sort(),
    ["LICENSE", "README.md", "THIRD_PARTY_NOTICES.md", "deno.json", "gpu", "mod.ts", "src", "wasm"],
  );
  assertEquals(
    files.filter(({ path }) => path.startsWith("wasm/")).map(({ path }) => path).sort(),
    ["wasm/dist/build.json", "wasm/dist/rys.js", "wasm/dist/rys.wasm"],
  );
  const tests = files.filter(({ path }) => /_test\.|testdata|_testing\./.test(path));
  assertEquals(tests, []);
});

Deno.test("imported from a URL, every file is fetched once, however often it starts", async () => {
  const paths = new Set((await publishedFiles()).map(({ path }) => path));
  const fetched: string[] = [];
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const path = new URL(request.url).pathname.slice(1);
      fetched.push(path);
      if (!paths.has(path)) return new Response(null, { status: 404 });
      const type = path.endsWith(".ts")
        ? "application/typescript"
        : path.endsWith(".js")
        ? "text/javascript"
        : path.endsWith(".wasm")
        ? "application/wasm"
        : "application/json";
      return new Response(await Deno.readFile(new URL(path, ROOT)), {
        headers: { "content-type": type },
      });
    },
  );
  const host = `127.0.0.1:${server.addr.port}`;
  const folder = await Deno.makeTempDir({ prefix: "rys-package-" });
  try {
    await Deno.writeTextFile(
      `${folder}/main.ts`,
      `import { loadModel } from "http://${host}/mod.ts";
await using model = await loadModel(Deno.args[0], { gpu: "off" });
await using context = await model.createContext({ nCtx: 256, repeatLayers: "20,22" });
console.log(JSON.stringify([context.info.plan.nLayerEff, (await context.generate("Once", { maxTokens: 2 }).text()).length > 0]));
`,
    );
    // A registry would have written the versions into the modules themselves.
    const { imports } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
    await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify({ imports }));
    await linkNpm(`${folder}/cache`);
    const run = async () => {
      const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
        args: [
          "run",
          "--no-lock",
          `--allow-import=${host}`,
          "--allow-read",
          "main.ts",
          decodeURIComponent(new URL("models/demo.gguf", ROOT).pathname),
        ],
        cwd: folder,
        env: { DENO_DIR: `${folder}/cache`, NO_COLOR: "1" },
      }).output();
      const text = new TextDecoder();
      assertEquals([text.decode(stdout).trim(), code], ["[42,true]", 0], text.decode(stderr));
    };
    await run();
    const first = [...fetched];
    assertEquals(first.filter((path) => path === "wasm/dist/rys.wasm").length, 1);
    assertEquals(first.filter((path) => !paths.has(path)), []);
    await run();
    assertEquals(fetched.slice(first.length), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** A cache of its own that has what npm gave already. */
async function linkNpm(cache: string): Promise<void> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  const { npmCache } = JSON.parse(new TextDecoder().decode(stdout));
  await Deno.mkdir(cache);
  await Deno.symlink(npmCache, `${cache}/npm`);
}
