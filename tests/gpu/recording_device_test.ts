import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { chooseGpu, type ChosenGpu } from "../../gpu/device.ts";
import { makeReadback } from "../../gpu/readback.ts";
import { readShader, recordingGpu, type RecordingOptions } from "./recording_device.ts";

const STORAGE = 0x80, UNIFORM = 0x40, COPY_SRC = 4, COPY_DST = 8, MAP_READ = 1;

const SHADER = `
  struct Params { n: u32 }; // @group(0) @binding(9) var<uniform> not_this: Params;
  @group(0) @binding(0) var<storage, read_write> a: array<f32>;
  @group(0) @binding((0 + 1)) var<storage, read_write> b: array<f32>;
  @group(0) @binding(1 + 1) var<uniform> params: Params;
  @group(0) @binding(3) var<storage, read_write> unused: array<f32>;
  override scale: f32 = 2.0;
  fn helper(i: u32) -> f32 { if (i < params.n) { return a[i]; } return 0.0; }
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = helper(id.x); }
`;

/** A device, its uncaptured errors and its own list of what was wrong. */
async function open(
  options: RecordingOptions = {},
  limits: Record<string, number> = {},
): Promise<{ device: GPUDevice; errors: () => Promise<string[]>; noted: () => string[] }> {
  const { gpu, report } = recordingGpu(options, limits);
  const chosen = await chooseGpu({ mode: "required" }, gpu) as ChosenGpu;
  const { device } = chosen;
  const uncaptured: string[] = [];
  device.addEventListener("uncapturederror", (event) => {
    uncaptured.push((event as GPUUncapturedErrorEvent).error.message);
  });
  return {
    device,
    errors: async () => {
      await Promise.resolve(); // they are reported a moment later
      return uncaptured;
    },
    noted: () => report().errors,
  };
}

function pipelineOf(device: GPUDevice, code = SHADER): GPUComputePipeline {
  const module = device.createShaderModule({ code });
  return device.createComputePipeline({
    label: "test",
    layout: "auto",
    compute: { module, entryPoint: "main" },
  });
}

Deno.test("readShader() finds bindings, overrides and what functions use", () => {
  const { bindings, overrides, functions } = readShader(SHADER);
  assertEquals([...bindings], [
    ["a", { binding: 0, type: "storage" }],
    ["b", { binding: 1, type: "storage" }],
    ["params", { binding: 2, type: "uniform" }],
    ["unused", { binding: 3, type: "storage" }],
  ]);
  assertEquals([...overrides], [["scale", true]]);
  assertEquals([...functions].map(([name, { compute }]) => [name, compute]), [
    ["helper", false],
    ["main", true],
  ]);
});

Deno.test("the recording device takes a sound program without a complaint", async () => {
  const { device, errors } = await open();
  const a = device.createBuffer({ label: "a", size: 1024, usage: STORAGE | COPY_DST });
  const b = device.createBuffer({ label: "b", size: 1024, usage: STORAGE | COPY_SRC });
  const params = device.createBuffer({ label: "p", size: 256, usage: UNIFORM | COPY_DST });
  const staging = device.createBuffer({ label: "s", size: 1024, usage: MAP_READ | COPY_DST });
  device.queue.writeBuffer(params, 64, new Uint8Array(4));
  const pipeline = pipelineOf(device);
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [
      { binding: 0, resource: { buffer: a } },
      { binding: 1, resource: { buffer: b, offset: 512, size: 512 } },
      { binding: 2, resource: { buffer: params, offset: 64, size: 4 } },
    ],
  });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(65535, 2);
  pass.end();
  encoder.copyBufferToBuffer(b, 512, staging, 0, 256);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(1, 8, 64);
  assertEquals(new Uint8Array(staging.getMappedRange(16, 8)), new Uint8Array(8));
  staging.unmap();
  assertEquals(await errors(), []);
});

/** What is wrong, and a word of the complaint. */
const WRONG: [string, string, (device: GPUDevice) => void][] = [
  ["a write past the end", "do not fit", (d) => {
    const buffer = d.createBuffer({ size: 16, usage: COPY_DST });
    d.queue.writeBuffer(buffer, 12, new Uint8Array(8));
  }],
  ["a write at an odd place", "do not fit", (d) => {
    d.queue.writeBuffer(d.createBuffer({ size: 16, usage: COPY_DST }), 2, new Uint8Array(4));
  }],
  ["a write of no bytes", "no bytes", (d) => {
    d.queue.writeBuffer(d.createBuffer({ size: 16, usage: COPY_DST }), 0, new Uint8Array(0));
  }],
  ["a write to a buffer without the usage", "no COPY_DST", (d) => {
    d.queue.writeBuffer(d.createBuffer({ size: 16, usage: STORAGE }), 0, new Uint8Array(4));
  }],
  ["a write to a destroyed buffer", "destroyed", (d) => {
    const buffer = d.createBuffer({ size: 16, usage: COPY_DST });
    buffer.destroy();
    d.queue.writeBuffer(buffer, 0, new Uint8Array(4));
  }],
  ["a buffer without a usage", "usage", (d) => void d.createBuffer({ size: 4, usage: 0 })],
  ["a map with another usage", "MAP_READ goes with", (d) => {
    d.createBuffer({ size: 4, usage: MAP_READ | COPY_SRC });
  }],
  ["too large a buffer", "at most", (d) => void d.createBuffer({ size: 2 ** 41, usage: STORAGE })],
  ["a copy past the end", "bytes from", (d) => {
    const from = d.createBuffer({ size: 16, usage: COPY_SRC });
    const to = d.createBuffer({ size: 16, usage: COPY_DST });
    const encoder = d.createCommandEncoder();
    encoder.copyBufferToBuffer(from, 8, to, 0, 16);
    encoder.finish();
  }],
  ["a copy within a buffer", "the same buffer", (d) => {
    const buffer = d.createBuffer({ size: 16, usage: COPY_SRC | COPY_DST });
    const encoder = d.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, buffer, 8, 8);
    encoder.finish();
  }],
  ["a submit that names a destroyed buffer", "is destroyed", (d) => {
    const from = d.createBuffer({ size: 16, usage: COPY_SRC });
    const to = d.createBuffer({ size: 16, usage: COPY_DST });
    const encoder = d.createCommandEncoder();
    encoder.copyBufferToBuffer(from, 0, to, 0, 16);
    const commands = encoder.finish();
    to.destroy();
    d.queue.submit([commands]);
  }],
  ["commands submitted twice", "before", (d) => {
    const commands = d.createCommandEncoder().finish();
    d.queue.submit([commands]);
    d.queue.submit([commands]);
  }],
  ["a dispatch without a bind group", "no bind group", (d) => {
    const encoder = d.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipelineOf(d));
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.finish();
  }],
  ["a bind group that lacks an entry", "for bindings", (d) => {
    const buffer = d.createBuffer({ size: 256, usage: STORAGE });
    d.createBindGroup({
      layout: pipelineOf(d).getBindGroupLayout(0),
      entries: [{ binding: 0, resource: { buffer } }],
    });
  }],
  ["an offset that is not aligned", "multiple of 32", (d) => bind(d, 16, 64)],
  ["a binding past the end", "at 512 of 1024", (d) => bind(d, 512, 1024)],
  ["a binding over the limit", "at most 134217728", (d) => bind(d, 0, 2 ** 28)],
  ["a byte written through two bindings", "through two bindings", (d) => {
    const encoder = d.createCommandEncoder();
    const pass = encoder.beginComputePass();
    const pipeline = pipelineOf(d);
    const buffer = d.createBuffer({ label: "both", size: 1024, usage: STORAGE });
    const params = d.createBuffer({ size: 64, usage: UNIFORM });
    pass.setPipeline(pipeline);
    pass.setBindGroup(
      0,
      d.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [
          { binding: 0, resource: { buffer, offset: 0, size: 512 } },
          { binding: 1, resource: { buffer, offset: 256, size: 512 } },
          { binding: 2, resource: { buffer: params } },
        ],
      }),
    );
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.finish();
  }],
  ["too many workgroups", "at most 65535", (d) => {
    const encoder = d.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipelineOf(d, "@compute @workgroup_size(1) fn main() {}"));
    pass.dispatchWorkgroups(65536);
    pass.end();
    encoder.finish();
  }],
  ["a constant that the shader lacks", 'no override "no"', (d) => {
    d.createComputePipeline({
      layout: "auto",
      compute: {
        module: d.createShaderModule({ code: SHADER }),
        entryPoint: "main",
        constants: { no: 1 },
      },
    });
  }],
  ["an entry point that the shader lacks", 'no entry point "helper"', (d) => {
    d.createComputePipeline({
      layout: "auto",
      compute: { module: d.createShaderModule({ code: SHADER }), entryPoint: "helper" },
    });
  }],
];

function bind(device: GPUDevice, offset: number, size: number): void {
  const buffer = device.createBuffer({ size: Math.max(1024, size), usage: STORAGE });
  const short = device.createBuffer({ size: 1024, usage: STORAGE });
  const params = device.createBuffer({ size: 64, usage: UNIFORM });
  device.createBindGroup({
    layout: pipelineOf(device).getBindGroupLayout(0),
    entries: [
      { binding: 0, resource: { buffer: size === 1024 ? short : buffer, offset, size } },
      { binding: 1, resource: { buffer: device.createBuffer({ size: 64, usage: STORAGE }) } },
      { binding: 2, resource: { buffer: params } },
    ],
  });
}

for (const [what, word, act] of WRONG) {
  Deno.test(`the recording device refuses ${what}`, async () => {
    const { device, errors, noted } = await open({}, { maxStorageBufferBindingSize: 2 ** 27 });
    act(device);
    const messages = await errors();
    assertEquals(messages, noted());
    assertEquals(messages.length, 1, messages.join("\n"));
    assert(messages[0]!.includes(word), messages[0]);
  });
}

Deno.test("an error scope takes the first error of its kind", async () => {
  const { gpu, report } = recordingGpu({ outOfMemoryAt: 100 });
  const { device } = await chooseGpu({ mode: "required" }, gpu) as ChosenGpu;
  device.pushErrorScope("out-of-memory");
  device.pushErrorScope("validation");
  device.createBuffer({ label: "x", size: 100, usage: STORAGE });
  device.createBuffer({ label: "y", size: 100, usage: STORAGE });
  assertEquals(await device.popErrorScope(), null);
  assert((await device.popErrorScope())!.message.includes('"x"'));
  assertEquals(report().buffers, []);
  await assertRejects(() => device.popErrorScope(), DOMException);
});

Deno.test("a lost device says so once and complains no more", async () => {
  const { device, errors } = await open({ loseAfterSubmits: 1 });
  const submit = () => device.queue.submit([device.createCommandEncoder().finish()]);
  submit();
  submit();
  assertEquals((await device.lost).reason, "unknown");
  const buffer = device.createBuffer({ size: 4, usage: MAP_READ | COPY_DST });
  device.queue.writeBuffer(buffer, 0, new Uint8Array(8));
  await assertRejects(() => buffer.mapAsync(1), DOMException);
  assertThrows(() => buffer.getMappedRange(), DOMException);
  assertEquals(await errors(), []);
});

Deno.test("the check of the read-back finds its bytes, and its fallback where maps take their time", async () => {
  for (const [map, form] of [["deno", "sync"], ["standard", "awaited"]] as const) {
    const { gpu } = recordingGpu({ map });
    const { device } = await chooseGpu({ mode: "required" }, gpu) as ChosenGpu;
    assertEquals((await makeReadback(device)).form, form);
  }
});

Deno.test("the recording device notes ranges, what was written again, and what is not zero", async () => {
  const { gpu, report } = recordingGpu({ ranges: 1 });
  const { device } = await chooseGpu({ mode: "required" }, gpu) as ChosenGpu;
  const buffer = device.createBuffer({ label: "w", size: 64, usage: COPY_DST });
  const marked = new Uint8Array(16);
  marked[9] = 1;
  device.queue.writeBuffer(buffer, 16, marked);
  device.queue.writeBuffer(buffer, 0, new Uint8Array(16));
  device.queue.writeBuffer(buffer, 28, new Uint8Array(8));
  device.queue.writeBuffer(buffer, 60, new Uint8Array(4));
  assertEquals(report().buffers[0], {
    label: "w",
    size: 64,
    usage: COPY_DST,
    ranges: [[0, 36], [60, 64]],
    rewritten: 4,
    marks: [[24, 256n]],
  });
  assertEquals(report().largestWrite, 16);
});
