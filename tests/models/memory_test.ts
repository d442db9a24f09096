import { assert } from "@std/assert";
import { CAPITAL, load } from "./_models.ts";
import type { ModelName } from "./fetch.ts";

const SLACK = 300e6;

for (
  const [name, plan] of [["smollm2", "12,14"], ["gemma", "8,10"]] satisfies [ModelName, string][]
) {
  Deno.test(`${name} takes its weights, its cache and at most 300 MB`, async () => {
    await using model = await load(name);
    const loaded = await model.heapBytes();
    const { modelBytes } = model.info;
    assert(loaded >= modelBytes, `${loaded} bytes hold a model of ${modelBytes}?`);
    assert(loaded <= modelBytes + SLACK, `${loaded} bytes for a model of ${modelBytes}`);
    await using context = await model.createContext({ repeatLayers: plan, nCtx: 2048 });
    await context.generate(CAPITAL[0]!.content, { maxTokens: 4 }).text();
    const { kvBytes, recurrentBytes } = context.info;
    const all = await model.heapBytes();
    assert(all >= modelBytes + kvBytes, `${all} bytes`);
    assert(
      all <= modelBytes + kvBytes + recurrentBytes + SLACK,
      `${all} bytes for a model of ${modelBytes} and a cache of ${kvBytes}`,
    );
  });
}
