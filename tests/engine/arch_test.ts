import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  type Context,
  EngineError,
  estimateCost,
  loadModel,
  modelFacts,
  readModel,
} from "@rys/edge";
import { fixture } from "../oracle/fixture.ts";
import { inRepo, SMALL } from "./_engine.ts";

const oracle = inRepo("wasm/oracle/build.json");
const noOracle = await Deno.stat(oracle).then(() => false, () => true);

/** A test on a tiny random model of another architecture. */
const test = (name: string, fn: () => Promise<void>) =>
  Deno.test({
    name: name + (noOracle ? ' (skipped: run "deno task build --oracle")' : ""),
    ignore: noOracle,
    sanitizeOps: false,
    sanitizeResources: false,
    fn,
  });

const PROMPT = [1, 2, 3, 4, 5, 6, 7, 8];

const tokensOf = async (context: Context) =>
  (await context.generate(PROMPT, { maxTokens: 12, temperature: 0, ignoreEos: true }).completion())
    .tokens;

for (const name of ["gemma3", "qwen35+nextn", "jamba", "falcon-h1"]) {
  test(`${name}: caches and states are of the size that estimateCost() tells`, async () => {
    const path = await fixture(name);
    const { header } = await readModel(path);
    await using model = await loadModel(path, { mtp: path.includes("nextn") });
    for (const repeatLayers of ["none", "4,7"]) {
      for (const [nCtx, nParallel, swaFull] of [[512, 1, false], [512, 3, true]] as const) {
        await using context = await model.createContext({
          repeatLayers,
          nCtx,
          nParallel,
          swaFull,
          threads: 1,
        });
        const cost = estimateCost(modelFacts(header), context.info.plan, {
          nCtx,
          nParallel,
          nBatch: 512,
          kvUnified: nParallel > 1,
          swaFull,
        });
        const what = `${repeatLayers} ${nParallel}`;
        assertEquals(context.info.kvBytes, cost.plan.kvBytes, what);
        assertEquals(context.info.recurrentBytes, cost.plan.recurrentBytes, what);
        assertEquals((await tokensOf(context)).length, 12);
      }
    }
  });

  test(`${name}: a state goes on under its plan, and a prompt in parts is the prompt`, async () => {
    await using model = await loadModel(await fixture(name), { mtp: name.includes("nextn") });
    await using a = await model.createContext({ ...SMALL, repeatLayers: "4,7" });
    const want = await tokensOf(a);
    const state = await a.saveState();
    await using b = await model.createContext({ ...SMALL, repeatLayers: "4,7" });
    await b.loadState(state);
    assertEquals(await tokensOf(b), want);
    await using c = await model.createContext({ ...SMALL, repeatLayers: "5,8" });
    await assertRejects(() => c.loadState(state), EngineError, "plan");
    await using d = await model.createContext({ ...SMALL, repeatLayers: "4,7", nBatch: 3 });
    assertEquals(await tokensOf(d), want);
  });
}

test("an architecture that can run no plan says so, and why", async () => {
  await using model = await loadModel(await fixture("kimi-k3-moe"));
  const error = await assertRejects(
    () => model.createContext({ ...SMALL, repeatLayers: "4,7" }),
    EngineError,
  );
  assert(/kimi-k3/.test(error.message), error.message);
  assertEquals(error.fatal, false);
  await assertRejects(() => model.logits(PROMPT, { repeatLayers: "4,7" }), EngineError, "kimi-k3");
  await using context = await model.createContext({ ...SMALL, repeatLayers: "none" });
  assertEquals((await tokensOf(context)).length, 12);
});

test("a plan that an architecture cannot run names the layer", async () => {
  await using model = await loadModel(await fixture("gemma4+shared"));
  const error = await assertRejects(
    () => model.createContext({ ...SMALL, repeatLayers: "1,6" }),
    EngineError,
  );
  assert(/gemma4/.test(error.message) && /layer \d/.test(error.message), error.message);
  await using context = await model.createContext({ ...SMALL, repeatLayers: "6,8" });
  assertEquals((await tokensOf(context)).length, 12);
});
