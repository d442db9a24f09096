// Every architecture that upstream's generator can make, exported with a block that is a multiple of the usual periods
// and with one that is not: the file computes what the plan computes, bit for bit, or the export is refused by name.
// Here one for each rule of src/export/layer_keys.ts and a part of the others, another part with every build; with
// RYS_EVERY_ARCH=1 (task test:oracle) all of them.

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import {
  ExportError,
  exportModel,
  loadModel,
  type LoadModelOptions,
  type Model,
  readHeader,
} from "@rys/edge";
import { fixtureBytes } from "./fixture.ts";
import { variants } from "./variants.ts";

/** Layers that the plans repeat; of gemma3n the last ones, which alone may be repeated in a file. */
const PLANS = (name: string) => name === "gemma3n" ? ["20,24", "12,13"] : ["4,8", "5,6"];

/** What is refused, by variant and plan: part of the reason. */
const REFUSED: Record<string, Record<string, string>> = {
  "llama4-moe": { "5,6": "which layers have experts" },
  "afmoe-moe": { "5,6": "which layers rotate positions" },
  "smollm3": { "5,6": "which layers rotate positions" },
  "smallthinker-moe": { "5,6": "which layers rotate positions" },
  "ernie4_5-moe-moe": { "5,6": "which layers have experts" },
  "gemma4+shared": { "4,8": "that layers before it would share" },
  "granite+deepstack": { "4,8": "would enter twice", "5,6": "would enter twice" },
  "nanbeige+loops": { "4,8": "already loops", "5,6": "already loops" },
  "t5+short": { "4,8": "its decoder 6", "5,6": "its decoder 6" },
  "kimi-k3-moe": { "4,8": "all earlier blocks", "5,6": "all earlier blocks" },
  "hrm_text": { "4,8": "its cycles", "5,6": "its cycles" },
  "rwkv6+rescale": { "4,8": "of another scale", "5,6": "of another scale" },
  "nomic-bert-moe": { "5,6": "which layers have experts" },
  "minimax-01-moe": { "4,8": "each layer's decay", "5,6": "each layer's decay" },
  "minicpm3": { "4,8": "scale of its residual", "5,6": "scale of its residual" },
  "gemma3n": { "12,13": "which layers share keys and values" },
};

/** What the library cannot run, as it has no encoder: that it is read is all that is tested. */
const ONLY_READ = ["t5"];

const TOKENS = Array.from({ length: 24 }, (_, i) => (i * 37 + 5) % 128);

/** Logits of a prompt, or its embedding where a model has no head. */
async function outputs(model: Model, repeatLayers: string): Promise<number[]> {
  try {
    const { data } = await model.logits(TOKENS, { repeatLayers });
    if (data.some((x) => x !== data[0])) return [...new Uint32Array(data.buffer)];
  } catch (error) {
    if (!(error instanceof Error && /gives no logits/.test(error.message))) throw error;
  }
  const args = ["--embedding", "--pooling", "mean"];
  await using context = await model.createContext({ repeatLayers, nCtx: 256, args });
  const { status, body } = await context.request("/v1/embeddings", { input: TOKENS });
  const text = new TextDecoder().decode(body);
  assertEquals(status, 200, text);
  return JSON.parse(text).data[0].embedding;
}

const NO_MODELS = ["messages", "mtp"];

const EVERY = Deno.env.get("RYS_EVERY_ARCH") === "1";
/** One for each rule: lists, windows, recurrent layers, leading layers, slices, what is known by its number of layers. */
const RULES = [
  ..."llama deci gemma2 gemma3 gemma3n gemma4 gemma4+ple gemma4+shared cohere2moe-moe laguna-moe exaone4"
    .split(" "),
  ..."qwen3next-moe qwen35+nextn jamba lfm2 mimo2-moe deepseek2+lead3 deepseek4+hash glm-dsa+shared"
    .split(" "),
  ..."apertus minicpm baichuan step35-moe qwen3vl+deepstack".split(" "),
];
/** Of the others, one in this many. */
const SHARE = 16;

async function names(): Promise<string[]> {
  const all = (await variants()).filter((name) => !NO_MODELS.includes(name));
  const always = new Set([...RULES, ...Object.keys(REFUSED)]);
  for (const name of always) assert(all.includes(name), `there is no fixture ${name}`);
  if (EVERY) return all;
  // The same part as long as the program is the same, so that a failure can be repeated.
  const build = new URL("../../wasm/oracle/build.json", import.meta.url);
  const { id } = JSON.parse(await Deno.readTextFile(build));
  const part = parseInt(id.slice(0, 8), 16) % SHARE;
  const others = all.filter((name) => !always.has(name));
  return [...always, ...others.filter((_, i) => i % SHARE === part)];
}

for (const name of await names()) {
  Deno.test({
    name: `exported == run with the plan, or refused: ${name}`,
    sanitizeOps: false,
    sanitizeResources: false,
    async fn() {
      const folder = await Deno.makeTempDir({ prefix: "rys-export-" });
      try {
        const path = `${folder}/model.gguf`;
        await Deno.writeFile(path, await fixtureBytes(name));
        await using model = await loadModel(path, await optionsFor(path));
        for (const plan of PLANS(name)) {
          await compare(name, model, plan, path, `${folder}/out.gguf`);
        }
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  });
}

/** Next-token layers are loaded as well, as their tensors must be the right ones too. */
async function optionsFor(path: string): Promise<LoadModelOptions> {
  return { gpu: "off", repack: false, mtp: (await readHeader(path)).nextn > 0 };
}

async function compare(name: string, model: Model, plan: string, path: string, output: string) {
  const refused = await exportModel(path, output, { repeatLayers: plan, force: true })
    .then(() => undefined, (error) => {
      if (error instanceof ExportError) return error.message;
      throw error;
    });
  const expected = REFUSED[name]?.[plan];
  if (expected !== undefined || refused !== undefined) {
    const { architecture } = await readHeader(path);
    assertStringIncludes(refused ?? "it was written", expected ?? "nothing is to be refused");
    assertStringIncludes(refused!, `'${architecture}'`);
    return;
  }
  await using exported = await loadModel(output, await optionsFor(output));
  assertEquals(exported.info.nLayer, (await readHeader(output)).nLayer);
  if (ONLY_READ.includes(name)) return;
  const run = await outputs(model, plan);
  assert(new Set(run).size > 10, "the outputs are all alike");
  assertEquals(await outputs(exported, "none"), run, `${name} ${plan}`);
}
