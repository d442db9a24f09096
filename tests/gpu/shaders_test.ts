// Every shader of llama.cpp's WebGPU backend through the WGSL dialect: naga (Deno) takes all modules and a part of the
// pipelines, Tint all sources. RYS_OPS_SEED chooses another part. All pipelines: deno task test:gpu.

import { assert, assertEquals } from "@std/assert";
import { adaptWgsl } from "../../gpu/dialect.ts";
import { gpuTest } from "./_gpu.ts";
import {
  chooseShaders,
  compileShaders,
  hasTint,
  listShaders,
  MATRIX_SETS,
  nameOf,
  SETS,
  type ShaderVariant,
  validateWithTint,
} from "./shaders.ts";

const seed = Number(Deno.env.get("RYS_OPS_SEED") ?? 1);

let list: ReturnType<typeof listShaders> | undefined;
const all = () => list ??= listShaders([...SETS, ...MATRIX_SETS]);
const isMatrix = ({ set }: ShaderVariant) => (MATRIX_SETS as readonly string[]).includes(set);

const tint = hasTint();
if (!tint) console.log("without tint: shaders are checked with naga only (Debian: dawn-tools)");

function shadersTest(name: string, fn: () => Promise<void>, ignore = false): void {
  Deno.test({ name, ignore, sanitizeOps: false, sanitizeResources: false, fn });
}

shadersTest("every function of llama.cpp's shader library is asked for its shaders", async () => {
  const { variants, missed } = await all();
  assertEquals(missed, []);
  for (const set of ["sg8", "nosg", ...MATRIX_SETS]) { // the others may have nothing of their own
    assert(variants.some((v) => v.set === set), `no shader is of ${set} alone`);
  }
  const sources = new Set(variants.map((v) => `${JSON.stringify(v.constants)}${v.source}`));
  assertEquals(sources.size, variants.length);
});

shadersTest(
  "a part of the shaders has every function under every set and moves with the seed",
  async () => {
    const { variants } = await all();
    const groups = (vs: ShaderVariant[]) => new Set(vs.map((v) => `${v.fn} ${v.set}`));
    const part = chooseShaders(variants, 1, 300);
    assertEquals(groups(part), groups(variants));
    assertEquals(new Set(part).size, 300);
    assert(part.filter((v) => /iq[123]_/.test(v.label)).length === 3);
    assertEquals(chooseShaders(variants, 1, 300).map(nameOf), part.map(nameOf));
    assert(chooseShaders(variants, 2, 300).some((v) => !part.includes(v)));
  },
);

gpuTest("a shader that does not compile is named, those beside it are compiled", async () => {
  const main = (body: string) => `@compute @workgroup_size(1) fn main() { ${body} }`;
  const deep = `_ = ${"(".repeat(200_000)}1${")".repeat(200_000)};`; // ends the process
  const sources = [
    main(""),
    main("let x: f32 = 1u;"),
    main(deep),
    main("_ = bitcast<f16>(1u);"),
    main(""),
  ];
  const variants = sources.map((source, i): ShaderVariant => ({
    set: "nosg",
    fn: "test",
    threads: 256,
    memory: 16384,
    subgroups: false,
    label: `shader ${i}`,
    entry: "main",
    constants: {},
    source,
  }));
  const greedy: ShaderVariant = { ...variants[0]!, label: "greedy", threads: 1 << 20 };
  const result = await compileShaders([...variants, greedy], { pipelines: true });
  assertEquals([result.compiled, result.skipped, result.failures.length], [2, 1, 3]);
  const [wrong, crash, refused] = result.failures.toSorted();
  assert(wrong!.startsWith("shader 1 (nosg): ") && wrong!.includes("f32"), wrong);
  assert(crash!.startsWith("shader 2 (nosg)"), crash);
  assert(refused!.startsWith("shader 3 (nosg): DialectError: Cannot compile"), refused);
});

gpuTest("naga takes every shader that is not for subgroup matrices", async () => {
  const variants = (await all()).variants.filter((v) => !isMatrix(v));
  const { compiled, skipped, failures } = await compileShaders(variants);
  assertEquals(failures, []);
  assertEquals(compiled + skipped, variants.length);
  assert(compiled > 0);
});

gpuTest("pipelines of every function under every set", async () => {
  const variants = (await all()).variants.filter((v) => !isMatrix(v));
  const part = chooseShaders(variants, seed, 150);
  const { compiled, skipped, failures } = await compileShaders(part, { pipelines: true });
  assertEquals(failures, [], `seed ${seed}`);
  assertEquals(compiled + skipped, part.length);
  assert(compiled > 0);
});

shadersTest("Tint takes every shader", async () => {
  const { variants } = await all();
  const { compiled, failures } = await validateWithTint(variants, (s) => adaptWgsl(s, "tint"));
  assertEquals(failures, []);
  assertEquals(compiled, variants.length);
}, !tint);

shadersTest("Tint takes what was adapted for naga and back", async () => {
  const variants = (await all()).variants.filter((v) => !isMatrix(v));
  const part = chooseShaders(variants, seed, 300);
  const there = (source: string) => adaptWgsl(adaptWgsl(source, "naga"), "tint");
  const { compiled, failures } = await validateWithTint(part, there);
  assertEquals(failures, [], `seed ${seed}`);
  assertEquals(compiled, part.length);
}, !tint);
