// What the header tells, against what the engine does, on tiny models of upstream's generator: the bytes of caches and
// states are those that it allocates, and the plans it refuses are refused in its words. Here for each kind of memory and
// of refusal and some others; with RYS_EVERY_ARCH=1 (task test:oracle) for every architecture.

import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  type Context,
  type ContextOptions,
  EngineError,
  estimateCost,
  type GgufHeader,
  loadModel,
  type Model,
  modelFacts,
  planRefusal,
  planSupport,
  readHeader,
  resolvePlan,
} from "@rys/edge";
import { contextCost } from "../../src/engine/context_options.ts";
import { fixtureBytes } from "./fixture.ts";
import { variants } from "./variants.ts";

const oracle = new URL("../../wasm/oracle/build.json", import.meta.url);
const noOracle = await Deno.stat(oracle).then(() => false, () => true);

/** Contexts of several sizes, cache types, sequences and windows. */
const CONTEXTS: readonly ContextOptions[] = [
  { nCtx: 512, nParallel: 1 },
  { nCtx: 1000, nParallel: 3, cacheTypeK: "q8_0", cacheTypeV: "q8_0" },
  { nCtx: 700, nParallel: 2, cacheTypeK: "f32", cacheTypeV: "f32", flashAttention: "off" },
  { nCtx: 2048, nParallel: 1, swaFull: true, cacheTypeK: "q8_0", nUbatch: 64 },
  { nCtx: 1536, nParallel: 4, nBatch: 256, cacheTypeV: "f32" },
];
const PLANS = ["4,7", "1,3", "5,6x2", "0,2", "8,12", "layers:0,1,3,4,5,6,7,8,9,10,11"];

const EVERY = Deno.env.get("RYS_EVERY_ARCH") === "1";
/** One of each kind of memory, and of each rule that refuses plans. */
const KINDS = new Set([
  ..."qwen3 gemma2 gemma3n gemma4 gemma4+ple gemma4+shared cohere2moe-moe llama4-moe exaone4 gpt-oss-moe grok-moe"
    .split(" "),
  ..."laguna-moe mamba rwkv6+rescale rwkv7 jamba falcon-h1 nemotron_h lfm2moe-moe qwen3next-moe qwen35+nextn"
    .split(" "),
  ..."kimi-linear-moe minimax-01-moe bailingmoe3-moe plamo2 granitehybrid deepseek2+lead3 deepseek32-moe"
    .split(" "),
  ..."glm-dsa+shared hy_v4-moe minimax-m3-moe dots3note-moe deepseek4+hash qwen3vl+deepstack granite+deepstack"
    .split(" "),
  ..."nanbeige+loops kimi-k3-moe hrm_text graniteswitch bert dream smallthinker-moe plamo3 mimo2-moe"
    .split(" "),
]);

/** Programs of the oracle that are no models, and models that make no context of this kind. */
const NOT_HERE = new Set(["messages", "mtp", "t5", "t5+short"]);

async function refusalOf(model: Model, options: ContextOptions): Promise<string | Context> {
  try {
    return await model.createContext({ threads: 1, ...options });
  } catch (error) {
    if (error instanceof EngineError && !error.fatal) return error.message;
    throw error;
  }
}

async function checkBytes(model: Model, header: GgufHeader, options: ContextOptions) {
  const what = JSON.stringify(options);
  const plan = resolvePlan(options.repeatLayers, header);
  const made = await refusalOf(model, { ...options, repeatLayers: plan });
  if (typeof made === "string") {
    // What cannot be made is told as well.
    if (planRefusal(header, plan.layers) === undefined) {
      assertThrows(
        () => estimateCost(modelFacts(header), plan, contextCost(options)),
        RangeError,
        undefined,
        `${what}: ${made}`,
      );
    }
    return;
  }
  await using context = made;
  const { nCtx, plan: cost } = estimateCost(modelFacts(header), plan, contextCost(options));
  const { info } = context;
  assertEquals(
    { nCtx, kv: cost.kvBytes, recurrent: cost.recurrentBytes },
    { nCtx: info.nCtx, kv: info.kvBytes, recurrent: info.recurrentBytes },
    what,
  );
}

async function checkRefusal(model: Model, header: GgufHeader, spec: string) {
  const plan = resolvePlan(spec, header);
  const told = planRefusal(header, plan.layers);
  const made = await refusalOf(model, { nCtx: 256, nParallel: 1, repeatLayers: plan });
  if (typeof made === "string") {
    assert(told !== undefined && made.includes(told), `${spec}: ${told} is told, but: ${made}`);
  } else {
    await made[Symbol.asyncDispose]();
    assertEquals(told, undefined, spec);
  }
}

/** Checks one architecture; returns whether its bytes are told exactly, and whether it refuses plans. */
async function check(name: string, i: number): Promise<{ exact: boolean; refusing: boolean }> {
  const bytes = await fixtureBytes(name);
  const header = await readHeader(bytes, { name });
  await using model = await loadModel(new Blob([bytes]), { gpu: "off", mtp: header.nextn > 0 });
  const fits = PLANS.filter((spec) => header.nLayer >= 12 || spec.length < 5);
  // The model that loops its layers has as many as it runs, and takes no plan at all.
  const loops = model.info.nLayer !== header.nLayer;
  const exact = modelFacts(header).inexact.length === 0;
  for (const [k, repeatLayers] of ["none", fits[i % fits.length]!].entries()) {
    if (!exact || (loops && k > 0)) continue;
    const context = CONTEXTS[(i + k) % CONTEXTS.length]!;
    await checkBytes(model, header, { ...context, repeatLayers });
  }
  const refusing = planSupport(header).plans !== "any" && !loops;
  for (const spec of refusing ? fits : []) await checkRefusal(model, header, spec);
  return { exact, refusing };
}

Deno.test({
  name:
    "the header tells what the engine allocates and which plans it refuses, on every architecture" +
    (noOracle ? ' (skipped: run "deno task build --oracle")' : ""),
  ignore: noOracle,
  sanitizeOps: false,
  sanitizeResources: false,
  fn: async () => {
    const all = await variants();
    for (const name of KINDS) assert(all.includes(name), `there is no fixture ${name}`);
    const queue = [...all.entries()].filter(([, name]) =>
      !NOT_HERE.has(name) && (EVERY || KINDS.has(name))
    );
    const failures: string[] = [];
    let exact = 0;
    let refusing = 0;
    const work = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const [i, name] = next;
        try {
          const found = await check(name, i);
          exact += Number(found.exact);
          refusing += Number(found.refusing);
        } catch (error) {
          failures.push(`${name}: ${error instanceof Error ? error.message : error}`);
        }
      }
    };
    await Promise.all([work(), work()]);
    assertEquals(failures, []);
    assert(exact > (EVERY ? 120 : 35), `${exact} architectures`);
    assert(refusing > (EVERY ? 25 : 12), `${refusing} architectures`);
  },
});

for (const name of ["gemma3", "qwen35+nextn", "jamba", "lfm2", "gemma4+shared", "deepseek2-moe"]) {
  Deno.test({
    name: `${name}: bytes of every kind of context` +
      (noOracle ? ' (skipped: run "deno task build --oracle")' : ""),
    ignore: noOracle,
    sanitizeOps: false,
    sanitizeResources: false,
    fn: async () => {
      const bytes = await fixtureBytes(name);
      const header = await readHeader(bytes, { name });
      await using model = await loadModel(new Blob([bytes]), { gpu: "off", mtp: header.nextn > 0 });
      for (const context of CONTEXTS) {
        for (const repeatLayers of ["none", "6,9"]) {
          await checkBytes(model, header, { ...context, repeatLayers });
        }
      }
    },
  });
}
