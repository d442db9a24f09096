// Tokens and places by the hub's variables and files, and a model loaded by its name.

import { assertEquals, assertStringIncludes } from "@std/assert";
import { loadModel } from "../../mod.ts";
import { MODEL, program } from "../cli/_program.ts";
import { TOKEN, withHub } from "./_hub.ts";

const DEMO = await Deno.readFile(MODEL);
const files = { "demo-Q8_0.gguf": DEMO };

Deno.test("the token is read from HF_TOKEN_PATH or from the file in HF_HOME, where the cache is as well", async () => {
  await withHub({ "o/demo": { files, access: "gated" } }, async (hub, home) => {
    const env = { HF_ENDPOINT: hub.endpoint, HF_HOME: home, HF_TOKEN: "" };
    await Deno.writeTextFile(`${home}/token`, `${TOKEN}\n`);
    const pulled = await program(["pull", "hf:o/demo"], { env });
    assertEquals(pulled.code, 0, pulled.err);
    assertStringIncludes(pulled.out, `${home}/hub/models--o--demo/snapshots/`);
    await Deno.rename(`${home}/token`, `${home}/mine`);
    const path = { ...env, HF_HUB_CACHE: `${home}/second`, HF_TOKEN_PATH: `${home}/mine` };
    const other = await program(["pull", "hf:o/demo"], { env: path });
    assertEquals(other.code, 0, other.err);
    const none = await program(["pull", "hf:o/demo"], {
      env: { ...path, HF_TOKEN_PATH: `${home}/none` },
    });
    assertEquals(none.code, 1);
    assertStringIncludes(none.err, `HF_TOKEN_PATH=${home}/none cannot be read`);
  });
});

Deno.test("loadModel() loads a model by its name on the hub", async () => {
  await withHub({ "o/demo": { files } }, async (hub, cacheDir) => {
    const options = { endpoint: hub.endpoint, cacheDir, token: "", offline: false };
    await using model = await loadModel("hf:o/demo:Q8_0", { hub: options, gpu: "off" });
    assertEquals(model.info.nLayer, 40);
  });
});

Deno.test("serve tells a malformed plan before the hub is asked, as wrong usage", async () => {
  await withHub({ "o/demo": { files } }, async (hub, cache) => {
    const env = { HF_ENDPOINT: hub.endpoint, HF_HUB_CACHE: cache, HF_TOKEN: "" };
    const args = ["serve", "-hf", "o/demo", "--port", "0", "--repeat-layers", "33,"];
    const { code, err } = await program(args, { env });
    assertEquals([code, hub.seen.length], [2, 0], err);
  });
});
