import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  adaptShader,
  adaptWgsl,
  DIALECT_REFUSALS,
  DIALECT_RULES,
  DialectError,
} from "./dialect.ts";

Deno.test("adaptWgsl() takes the subgroups directive away for naga, alone or in a list", () => {
  assertEquals(adaptWgsl("enable subgroups;\nenable f16;\n", "naga"), "\nenable f16;\n");
  assertEquals(adaptWgsl("enable subgroups, f16;", "naga"), "enable f16;");
  assertEquals(adaptWgsl("enable f16 , subgroups ;", "naga"), "enable f16;");
});

Deno.test("adaptWgsl() takes requires directives away for naga", () => {
  assertEquals(
    adaptWgsl("requires packed_4x8_integer_dot_product, subgroup_id;\nfn f() {}", "naga"),
    "\nfn f() {}",
  );
});

Deno.test("adaptWgsl() takes diagnostics away for naga, as directive and as attribute", () => {
  assertEquals(
    adaptWgsl(
      "diagnostic(off, chromium.subgroup_matrix_uniformity);\n@diagnostic(off, subgroup_uniformity) fn f() {}",
      "naga",
    ),
    "\nfn f() {}",
  );
});

Deno.test("adaptWgsl() rewrites every spelling of a bitcast to f16 vectors for naga", () => {
  for (const type of ["vec2<f16>", "vec2h", " vec2 < f16 > "]) {
    const code = adaptWgsl(`let d = f32(bitcast<${type}>(scale).x);`, "naga");
    assertStringIncludes(code, "let d = f32(rys_vec2h(scale).x);\nfn rys_vec2h(bits: u32)");
  }
  for (const type of ["vec4<f16>", "vec4h"]) {
    const code = adaptWgsl(`let v = bitcast<${type}>(pair);`, "naga");
    assertStringIncludes(code, "let v = rys_vec4h(pair);\nfn rys_vec4h(bits: vec2<u32>)");
  }
});

Deno.test("adaptWgsl() rewrites a bitcast from a vec2<f16> for naga, also one it just made", () => {
  assertStringIncludes(
    adaptWgsl("let u = bitcast<u32>(vec2<f16>(a, b));", "naga"),
    "let u = rys_bits2h(vec2<f16>(a, b));\nfn rys_bits2h(",
  );
  assertStringIncludes(
    adaptWgsl("let u = bitcast<u32>( vec2h(a, b));", "naga"),
    "let u = rys_bits2h( vec2h(a, b));",
  );
  const twice = adaptWgsl("let u = bitcast<u32>(bitcast<vec2<f16>>(w));", "naga");
  assertStringIncludes(twice, "let u = rys_bits2h(rys_vec2h(w));");
  assertStringIncludes(twice, "fn rys_vec2h(");
  assertStringIncludes(twice, "fn rys_bits2h(");
});

Deno.test("adaptWgsl() leaves bitcasts between 32-bit types alone", () => {
  const code =
    "let a = bitcast<i32>(b) + bitcast<i32>(bitcast<u32>(f)); let c = bitcast<vec2<f32>>(d);";
  assertEquals(adaptWgsl(code, "naga"), code);
});

Deno.test("adaptWgsl() adds a helper once", () => {
  const code = adaptWgsl(
    "let a = bitcast<vec2<f16>>(x);\nlet b = bitcast<vec2<f16>>(y);",
    "naga",
  );
  assertEquals(code.split("fn rys_vec2h").length, 2);
});

Deno.test("adaptWgsl() spells subgroupElect with a scan for naga", () => {
  assertEquals(
    adaptWgsl("if (subgroupElect( )) {}", "naga"),
    "if ((subgroupExclusiveAdd(1u) == 0u)) {}",
  );
});

Deno.test("adaptWgsl() makes lookup tables private variables for naga on Vulkan only", () => {
  const table =
    "const t = array<u32, 2>(1u, 2u);\nconst k : array<u32, 2> = array<u32, 2>(3u, 4u);";
  assertEquals(
    adaptWgsl(table, "naga"),
    "var<private> t: array<u32, 2> = array<u32, 2>(1u, 2u);\n" +
      "var<private> k: array<u32, 2> = array<u32, 2>(3u, 4u);",
  );
  assertEquals(adaptWgsl(table, "naga", { spirv: false }), table);
  assertEquals(adaptWgsl(table, "tint"), table);
});

Deno.test("adaptShader() moves large tables into storage buffers for naga on Vulkan only", () => {
  const numbers = Array.from(
    { length: 64 },
    (_, i) => `0x${(i * 0x01010101).toString(16)}${i % 2 ? "u" : ""}`,
  );
  const table = `const t = array<u32, 64>(\n${numbers.join(", ")}\n);`;
  const use = "fn f(i: u32) -> u32 { return t[i]; }";
  const { code, tables } = adaptShader(`${table}\n${use}`, "naga");
  assertEquals(
    code,
    `@group(1) @binding(0) var<storage, read> t: array<u32, 64>;\n\n\n${use}`,
  );
  assertEquals(tables.map(({ binding, name }) => [binding, name]), [[0, "t"]]);
  assertEquals([...tables[0]!.data], numbers.map((text) => Number(text.replace("u", ""))));
  // a table that nothing reads is not part of the layout, and an incomplete one is not recognised
  assertEquals(adaptShader(table, "naga").tables, []);
  assertEquals(adaptShader(`${table.replace("0x0,", "")}\n${use}`, "naga").tables, []);
  for (
    const other of [
      adaptShader(`${table}\n${use}`, "tint"),
      adaptShader(`${table}\n${use}`, "naga", { spirv: false }),
    ]
  ) {
    assertEquals(other, { code: `${table}\n${use}`, tables: [] });
  }
});

Deno.test("adaptWgsl() leaves alone constants in functions and constants that are not tables", () => {
  const code =
    "const N = 256u;\nfn f() { if (true) { } const t = array<u32, 2>(1u, 2u); }\nconst M = N;";
  assertEquals(adaptWgsl(code, "naga"), code);
});

Deno.test("adaptWgsl() enables subgroups for Tint where a built-in needs it and only there", () => {
  for (
    const use of [
      "let a = subgroupAdd(b);",
      "fn main(@builtin(subgroup_size) n: u32) {}",
      "fn main(@builtin( num_subgroups ) n: u32) {}",
    ]
  ) {
    assertEquals(
      adaptWgsl(`enable f16;\n${use}`, "tint"),
      `diagnostic(off, subgroup_uniformity); enable subgroups; enable f16;\n${use}`,
    );
  }
  for (
    const plain of [
      "enable f16;\nlet subgroup_count = 1u;",
      "enable f16, subgroups;\nlet a = subgroupAdd(b);",
      "enable subgroups;\nlet a = subgroupAdd(b);",
    ]
  ) {
    assertEquals(adaptWgsl(plain, "tint"), plain);
  }
});

Deno.test("adaptWgsl() keeps what Tint already takes", () => {
  const code =
    "diagnostic(off, subgroup_uniformity);\nenable f16;\nenable subgroups;\nrequires packed_4x8_integer_dot_product;\n" +
    "let d = bitcast<vec2<f16>>(x).x;";
  assertEquals(adaptWgsl(code, "tint"), code);
});

Deno.test("adaptWgsl() is not fooled by comments and keeps line numbers", () => {
  const code =
    "// subgroupAdd(x) here\n/* two\n/* nested */ subgroupAdd(x)\n*/ let a = 1; // end\nlet b = 2;";
  assertEquals(adaptWgsl(code, "tint"), " \n \n\n let a = 1;  \nlet b = 2;");
  const naga = adaptWgsl(
    "enable subgroups;\n/* a\nb */\nconst t = array<u32, 2>(\n1u, // one\n2u);\nX",
    "naga",
  );
  assertEquals(naga.split("\n").indexOf("X"), 6);
});

Deno.test("adaptWgsl() refuses a bitcast that naga would silently get wrong", () => {
  for (
    const code of ["bitcast<f16>(x)", "bitcast<vec3<f16>>(x)", "bitcast<array<f16, 2>>(x)"]
  ) {
    assertThrows(
      () => adaptWgsl(`enable f16;\nlet a = ${code};`, "naga"),
      DialectError,
      'Cannot compile a shader with naga: bitcast to f16 at line 2 ("let a = ',
    );
    assertEquals(adaptWgsl(code, "tint"), code);
  }
});

// Each of these ends Deno's process in createShaderModule().
const PANICS = {
  "an element": "fn main() { var a: array<u32, 4>; f(&a[1]); }",
  "an element, spaced": "fn main() { var a: array<u32, 4>; f( & a [i] ); }",
  "an element in brackets": "fn main() { var a: array<u32, 4>; f((&a[i])); }",
  "a member": "fn main() { var a: S; f(&a.y); }",
  "a second argument": "fn main() { var a: S; g(max(1u, 2u), &a.y); }",
  "a named element": "fn main() { var a: array<u32, 4>; let p = &a[i]; f(p); }",
};

for (const [name, main] of Object.entries(PANICS)) {
  Deno.test(`adaptWgsl() refuses a pointer to ${name} as an argument for naga`, () => {
    const code =
      `struct S { x: u32, y: u32 }\nfn f(p: ptr<function, u32>) { *p = 3u; }\nfn g(n: u32, p: ptr<function, u32>) { *p = n; }\n${main}`;
    assertThrows(() => adaptWgsl(code, "naga"), DialectError, "as an argument at line 4");
    assertEquals(adaptWgsl(code, "tint"), code);
  });
}

Deno.test("adaptWgsl() lets whole variables, atomics and named elements that stay local pass", () => {
  const code = "fn f(p: ptr<function, array<u32, 4>>, n: u32) { (*p)[n] = 3u; }\n" +
    "fn main() { var a: array<u32, 4>; f(&a, a[1]); atomicAdd(&b[l.x], 1u); let q = &a[1]; *q = 2u; f(&a, *q & a[2]); }";
  assertEquals(adaptWgsl(code, "naga"), code);
});

Deno.test("the dialect's tables name each rule once and say why", () => {
  const names = [...DIALECT_RULES, ...DIALECT_REFUSALS].map(({ name }) => name);
  assertEquals(new Set(names).size, names.length);
  for (const { pattern } of DIALECT_RULES) assertEquals(pattern.flags, "g");
});

/** The device of this machine, if it has one with f16. */
async function openDevice(): Promise<GPUDevice | undefined> {
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter?.features.has("shader-f16")) return undefined;
  try {
    return await adapter.requestDevice({
      requiredFeatures: ["shader-f16", "subgroups" as GPUFeatureName],
    });
  } catch {
    return await adapter.requestDevice({ requiredFeatures: ["shader-f16"] });
  }
}

/** Runs an adapted shader whose binding 0 is the input and binding 1 the output, 64 invocations a workgroup. */
async function compute(
  device: GPUDevice,
  code: string,
  input: Uint32Array<ArrayBuffer>,
  words: number,
): Promise<Uint32Array> {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code: adaptWgsl(code, "naga") });
  const pipeline = device.createComputePipeline({
    layout: "auto",
    compute: { module, entryPoint: "main" },
  });
  const fault = await device.popErrorScope();
  if (fault) throw new Error(fault.message);
  const usage = GPUBufferUsage;
  const src = device.createBuffer({
    size: input.byteLength,
    usage: usage.STORAGE | usage.COPY_DST,
  });
  const dst = device.createBuffer({ size: words * 4, usage: usage.STORAGE | usage.COPY_SRC });
  const back = device.createBuffer({ size: words * 4, usage: usage.MAP_READ | usage.COPY_DST });
  device.queue.writeBuffer(src, 0, input);
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [src, dst].map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(input.length / 64);
  pass.end();
  encoder.copyBufferToBuffer(dst, 0, back, 0, words * 4);
  device.queue.submit([encoder.finish()]);
  await back.mapAsync(GPUMapMode.READ);
  const out = new Uint32Array(back.getMappedRange().slice(0));
  for (const buffer of [src, dst, back]) buffer.destroy();
  return out;
}

const device = await openDevice();
device?.destroy();
const ignore = device === undefined;
const skipped = ignore ? " (skipped: no WebGPU adapter)" : "";

/** A test on a device of its own. */
function gpuTest(name: string, run: (device: GPUDevice) => Promise<void>): void {
  Deno.test({
    name: name + skipped,
    ignore,
    fn: async () => {
      const device = (await openDevice())!;
      try {
        await run(device);
      } finally {
        device.destroy();
      }
    },
  });
}

const HEAD = `enable f16;
@group(0) @binding(0) var<storage, read_write> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;`;

/** The value of an f16 bit pattern, from its definition. */
function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = bits >> 10 & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 1 + fraction / 1024 : fraction / 512) * 2 ** ((exponent || 0) - 15);
}

gpuTest(
  "a rewritten bitcast to vec2<f16> gives the value of all 65536 bit patterns",
  async (device) => {
    const input = Uint32Array.from({ length: 65536 }, (_, i) => i | (i ^ 0x5a5a) << 16);
    const code = `${HEAD} let v = bitcast<vec2<f16>>(src[i]);
    dst[2u * i] = bitcast<u32>(f32(v.x)); dst[2u * i + 1u] = bitcast<u32>(f32(bitcast<vec2h>(src[i])[1])); }`;
    const values = new Float32Array((await compute(device, code, input, 2 * 65536)).buffer);
    for (let i = 0; i < 65536; i++) {
      assertEquals(values[2 * i], halfToNumber(i), `low half 0x${i.toString(16)}`);
      assertEquals(values[2 * i + 1], halfToNumber(i ^ 0x5a5a), `high half 0x${i.toString(16)}`);
    }
  },
);

gpuTest("a rewritten bitcast to vec4<f16> keeps the order of the halves", async (device) => {
  const input = new Uint32Array(64).fill(0x40003c00);
  const code =
    `${HEAD} let v = vec4<f32>(bitcast<vec4<f16>>(vec2<u32>(src[i], src[i] + 0x04000600u)));
    if (i == 0u) { dst[0] = u32(v.x); dst[1] = u32(v.y); dst[2] = u32(v.z); dst[3] = u32(v.w); } }`;
  assertEquals([...await compute(device, code, input, 4)], [1, 2, 3, 4]);
});

gpuTest("a rewritten bitcast from vec2<f16> gives the bits back", async (device) => {
  // No NaN: their bits may change. Subnormals are the next test's.
  const input = Uint32Array.from({ length: 64 }, (_, i) => i * 1000 % 0x7c00 | 0xbc00 << 16);
  const code =
    `${HEAD} dst[i] = bitcast<u32>(vec2<f16>(f16(bitcast<vec2<f16>>(src[i]).x), -1.0h)); }`;
  assertEquals(await compute(device, code, input, 64), input);
});

gpuTest(
  "a private lookup table holds the constant table's values in every invocation",
  async (device) => {
    const table = Array.from({ length: 48 }, (_, i) => i * 2654435761 >>> 0);
    const list = table.map((v) => `${v}u`).join(", ");
    const input = Uint32Array.from({ length: 1024 }, (_, i) => i * 7 % 48);
    const code = `enable f16;\nconst t = array<u32, 48>(${list});\n${
      HEAD.replace("enable f16;", "")
    } dst[i] = t[src[i]] ^ t[(src[i] + 1u) % 48u]; }`;
    assertStringIncludes(adaptWgsl(code, "naga"), "var<private> t:");
    const expected = input.map((i) => table[i]! ^ table[(i + 1) % 48]!);
    assertEquals(await compute(device, code, input, 1024), expected);
  },
);

gpuTest(
  "the spelling of subgroupElect elects one invocation of each subgroup, also in a branch",
  async (device) => {
    if (!device.features.has("subgroups" as GPUFeatureName)) return;
    const code = `${HEAD} let n = subgroupAdd(src[i]);
    dst[i] = 0u; dst[64u + i] = 0u; dst[128u] = n;
    if (subgroupElect()) { dst[i] = 1u; }
    if ((i & 1u) == 1u) { if (subgroupElect()) { dst[64u + i] = 1u; } } }`;
    const out = await compute(device, code, new Uint32Array(64).fill(1), 129);
    const groups = 64 / out[128]!;
    assertEquals(out.slice(0, 64).reduce((a, b) => a + b), groups);
    const odd = out.slice(64, 128);
    assertEquals(odd.reduce((a, b) => a + b), groups);
    assertEquals(odd.filter((_, i) => i % 2 === 0).some((v) => v === 1), false);
  },
);
