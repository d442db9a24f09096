import { assertEquals } from "@std/assert";
import { ANY_PLAN, PLAN_RULES, planRefusal, planSupport } from "./plan_support.ts";
import { readHeader } from "./read_header.ts";
import { plainKey, writeGguf } from "./_testing.ts";

const VIEW = new URL("../../cpp/rys-view.cpp", import.meta.url);

/** Names that are not the enumerator's in lower case. */
const NAMES: Record<string, string> = {
  OPENAI_MOE: "gptoss",
  PANGU_EMBED: "panguembedded",
};

/** What follows a group of cases in `arch_refusal`, by rule. */
const CALLS: [rule: string, call: RegExp][] = [
  ["any", /^return "";/],
  ["dense_lead", /^return r\.dense_lead\(\);/],
  ["shared_kv", /^return r\.shared_kv\(\);/],
  [
    "shared_indexer",
    /^\{\s*const std::string reason = r\.dense_lead\(\);[^}]*r\.shared_indexer\(\);/,
  ],
  ["hash_lead", /^return r\.prefix\(hparams\.dsv4_hash_layer_count/],
  [
    "deepstack_lead",
    /^\{\s*for [^;]*;[^;]*;[^{]*\{\s*if \(r\.plan\[e\] != e &&[^;]*n_deepstack_layers/,
  ],
  [
    "deepstack_once",
    /^return r\.once\(\[&\]\(uint32_t il\) \{ return hparams\.deepstack_mapping_arr/,
  ],
  ["loops", /^if \(rys_nanbeige_loops\(r\.model\) > 1\)/],
  ["decoder", /^if \(hparams\.dec_n_layer != hparams\.n_layer\(\)\)/],
  ["rescale_zone", /^return r\.rescale_zone\(\);/],
  ["first_once", /^return r\.once\(\[\]\(uint32_t il\) \{ return il == 0; \}/],
  ["never", /^return r\.all\("/],
];

const bare = (name: string) => name.toLowerCase().replace(/[-_]/g, "");

Deno.test("planSupport() knows every architecture of the engine, under the engine's rule", async () => {
  const source = await Deno.readTextFile(VIEW);
  const body = source.slice(source.indexOf("static std::string arch_refusal("))
    .replace(/\/\/.*$/gm, "");
  const theirs: Record<string, string[]> = {};
  for (
    const [, cases, code] of body.matchAll(
      /((?:\s*case LLM_ARCH_\w+:)+)\s*(\{?[^]*?)(?=case LLM_ARCH|\n {4}\})/g,
    )
  ) {
    const rules = CALLS.filter(([, call]) => call.test(code!)).map(([rule]) => rule);
    assertEquals(rules.length, 1, `the rule of ${cases} is not known here: ${code}`);
    for (const [, name] of cases!.matchAll(/LLM_ARCH_(\w+)/g)) {
      if (name !== "UNKNOWN") (theirs[rules[0]!] ??= []).push(NAMES[name!] ?? bare(name!));
    }
  }
  const ours = { any: ANY_PLAN, ...PLAN_RULES };
  const sorted = (groups: Record<string, readonly string[]>) =>
    Object.fromEntries(
      Object.entries(groups).map(([rule, names]) => [rule, names.map(bare).sort()]).sort(),
    );
  assertEquals(sorted(ours), sorted(theirs));
});

async function header(architecture: string, keys: Record<string, unknown>) {
  return await readHeader(
    writeGguf({
      keys: [
        plainKey("general.architecture", architecture),
        ...Object.entries({ block_count: 12, ...keys }).map(([key, value]) =>
          Array.isArray(value)
            ? {
              key: `${architecture}.${key}`,
              type: "array" as const,
              elementType: "int32" as const,
              value,
            }
            : plainKey(`${architecture}.${key}`, value)
        ),
      ],
    }),
    { name: "m.gguf" },
  );
}

const range = (n: number) => Array.from({ length: n }, (_, i) => i);
/** Layers of a model of 12 with layers `i` to `j - 1` run twice. */
const block = (i: number, j: number) => [...range(j), ...range(12).slice(i)];

Deno.test("planSupport() looks at the values that decide", async () => {
  const support = async (architecture: string, keys: Record<string, unknown> = {}) => {
    const { plans, why } = planSupport(await header(architecture, keys));
    return [plans, why];
  };
  assertEquals(await support("llama"), ["any", ""]);
  assertEquals(await support("no-such"), ["none", "unknown architecture"]);
  assertEquals(await support("deepseek2"), ["any", ""]);
  assertEquals(await support("deepseek2", { leading_dense_block_count: 1 }), [
    "some",
    "its first layer is dense and must run before those with experts",
  ]);
  assertEquals(await support("lfm2", { leading_dense_block_count: 1 }), ["any", ""]);
  assertEquals(await support("nanbeige", { num_loops: 2 }), [
    "none",
    "its file already loops its layers (2 times)",
  ]);
  assertEquals((await support("rwkv6", { rescale_every_n_layers: 6 }))[0], "some");
  assertEquals((await support("rwkv7"))[0], "some");
  assertEquals((await support("granite", { deepstack_mapping: [-1, 0, -1] }))[0], "some");
  assertEquals((await support("granite", { deepstack_mapping: [-1, -1] }))[0], "any");
});

Deno.test("planRefusal() names the layer, its place and the reason, and lets the others run", async () => {
  const deepseek = await header("deepseek2", { leading_dense_block_count: 3 });
  assertEquals(planRefusal(deepseek, range(12)), undefined);
  assertEquals(planRefusal(deepseek, block(4, 7)), undefined);
  assertEquals(planRefusal(deepseek, block(0, 2)), undefined);
  assertEquals(
    planRefusal(deepseek, block(2, 5)),
    "'deepseek2' cannot run this plan: layer 2 at place 5: one of the first 3 layers, which are dense, would run after a layer with experts",
  );
  const rwkv = await header("rwkv6", { rescale_every_n_layers: 6 });
  assertEquals(planRefusal(rwkv, block(1, 4)), undefined);
  assertEquals(
    planRefusal(rwkv, block(4, 8)),
    "'rwkv6' cannot run this plan: layer 7 at place 7: the layer after it is stored for activations of another scale (rescaled every 6 layers)",
  );
  const vision = await header("qwen3vl", { n_deepstack_layers: 3 });
  assertEquals(planRefusal(vision, block(3, 5)), undefined);
  assertEquals(
    planRefusal(vision, block(2, 5)),
    "'qwen3vl' cannot run this plan: layer 2 at place 5: image features enter after the first 3 layers, which must run once and in order",
  );
  assertEquals(
    planRefusal(await header("kimi-k3", {}), block(4, 7)),
    "'kimi-k3' cannot run this plan: its layers mix the outputs of all earlier blocks of layers",
  );
});
