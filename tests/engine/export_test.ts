// A model that was exported with a plan computes what the model computes with the plan, bit for bit; and a stock
// llama.cpp, node-llama-cpp, reads it.

import { assert, assertEquals } from "@std/assert";
import { exportModel, loadModel } from "@rys/edge";
import { compareWithPeer, startPeer, whyNoPeer } from "../models/_peer.ts";
import { inRepo } from "./_engine.ts";

const TOKENS = Array.from({ length: 40 }, (_, i) => (i * 37 + 11) % 3000);

for (const name of ["demo", "demo-q8_0"]) {
  Deno.test({
    name: `${name}.gguf with plans: exported == run, bit for bit, whole and in shards`,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      const folder = await Deno.makeTempDir({ prefix: "rys-export-" });
      try {
        const path = inRepo(`models/${name}.gguf`);
        await using model = await loadModel(path, { gpu: "off" });
        const plans = ["26,34", "33,34x3", "layers:0..20,20,19,21..39"];
        for (const [i, repeatLayers] of plans.entries()) {
          const { files } = await exportModel(path, `${folder}/${i}.gguf`, {
            repeatLayers,
            splitMaxTensors: i === 0 ? 100 : undefined,
          });
          assertEquals(files.length > 1, i === 0);
          await using exported = await loadModel(files[0]!, { gpu: "off" });
          const [run, written] = [
            await model.logits(TOKENS, { repeatLayers }),
            await exported.logits(TOKENS),
          ];
          assertEquals(written.plan.nLayer, run.plan.nLayerEff);
          assertEquals(new Uint32Array(written.data.buffer), new Uint32Array(run.data.buffer));
        }
        const none = await model.logits(TOKENS);
        const deep = await model.logits(TOKENS, { repeatLayers: "26,34" });
        assert(none.data.some((x, i) => x !== deep.data[i]));
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  });
}

Deno.test({
  name: "native llama.cpp reads an exported model and goes on as the plan does",
  sanitizeOps: false,
  sanitizeResources: false,
  fn: async (t) => {
    const why = await whyNoPeer();
    if (why) {
      console.error(`skipped: ${why}`);
      await t.step({ name: `skipped: ${why}`, ignore: true, fn: () => {} });
      return;
    }
    const folder = await Deno.makeTempDir({ prefix: "rys-export-" });
    try {
      const path = `${folder}/deep.gguf`;
      const { files } = await exportModel(inRepo("models/demo.gguf"), path, {
        repeatLayers: "26,34",
        splitMaxTensors: 200,
      });
      await using model = await loadModel(files[0]!, { gpu: "off" });
      await using peer = await startPeer();
      await peer.call("load", { path: files[0]! });
      await peer.call("context", { name: "c", nCtx: 512, threads: 1 });
      const tokens = await model.tokenize("Once upon a time");
      const { n, others, worst, mean } = await compareWithPeer(model, peer, tokens, { tie: 0.2 });
      assert(n > 3);
      assertEquals(others, []);
      assert(worst < 0.1, `log probabilities differ by ${worst}`);
      assert(mean < 0.01, `they differ by ${mean} in the mean`);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
