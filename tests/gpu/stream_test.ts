import { assert, assertEquals } from "@std/assert";
import { loadModel, type Model } from "@rys/edge";
import { writeRandomModel } from "../../bench/_random_model.ts";
import type { RecordedBuffer, RecordingReport } from "./recording_device.ts";
import { greedy } from "../engine/_engine.ts";
import { gpuTest } from "./_gpu.ts";
import {
  type EmptyTensor,
  inFolder,
  type Recording,
  recording,
  test,
  writeEmptyModel,
} from "./_recording.ts";

const GIB = 2 ** 30;

/** What was written to the buffers of a model that was just loaded. */
async function reportOfWeights(gpu: Recording, model: Model): Promise<RecordingReport> {
  const labels = (await gpu.report()).buffers.map(({ label }) => label)
    .filter((label) => label.startsWith("tensor_buf"));
  // What is small may wait for the first work on the device.
  await using _context = await model.createContext({ nCtx: 256, nParallel: 1 });
  const report = await gpu.report();
  return { ...report, buffers: report.buffers.filter(({ label }) => labels.includes(label)) };
}

/** Checks that the bytes of every tensor were written, once, in their order, at one place. */
function checkWritten(tensors: EmptyTensor[], buffers: RecordedBuffer[]): void {
  const places = new Map<bigint, { buffer: RecordedBuffer; at: number }[]>();
  for (const buffer of buffers) {
    for (const [at, value] of buffer.marks) {
      places.set(value, [...places.get(value) ?? [], { buffer, at }]);
    }
  }
  for (const { name, bytes, first, last } of tensors) {
    const [begin, ...more] = places.get(first) ?? [];
    assert(begin && more.length === 0, `${name} begins at ${more.length + Number(!!begin)} places`);
    const end = places.get(last);
    assertEquals(end?.length, 1, `the end of ${name}`);
    assert(end![0]!.buffer === begin.buffer, `${name} is in two buffers`);
    assertEquals(end![0]!.at - begin.at, bytes - 8, `where ${name} ends`);
    const inside = begin.buffer.ranges.some(([from, to]) =>
      from <= begin.at && to >= begin.at + bytes
    );
    assert(inside, `${name} was not written as a whole`);
    assertEquals(begin.buffer.rewritten, 0);
  }
  assertEquals(places.size, 2 * tensors.length);
}

test("a file over 4 GiB goes to the GPU in pieces, each byte once and to its place", () =>
  inFolder(async (folder) => {
    const path = `${folder}/large.gguf`;
    const tensors = writeEmptyModel(path, {
      nLayer: 6,
      nEmbd: 2048,
      nFf: 57344,
      nHeadKv: 4,
      nCtx: 512,
    });
    const bytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    assert(bytes > 4 * GIB, `${bytes}`);
    // One buffer, so that offsets on both sides need more than 32 bits.
    const gpu = recording({ ranges: 1, maxStorageBufferBindingSize: 32 * GIB });
    await using model = await loadModel(path, gpu.load);
    const { layers, cpuTensors, bytes: gpuBytes } = model.info.gpu!;
    assertEquals([layers, cpuTensors], [7, []]);
    assert(gpuBytes >= bytes);
    const { buffers, errors, largestWrite } = await reportOfWeights(gpu, model);
    assertEquals(errors, []);
    assertEquals(buffers.filter(({ size }) => size >= bytes).length, 1);
    checkWritten(tensors, buffers);
    assert(largestWrite <= 64 * 2 ** 20, `${largestWrite} bytes at once`);
    const heap = await model.heapBytes();
    assert(heap < 400 * 2 ** 20, `${heap} bytes of memory`);
  }));

test("weights that fill several buffers are written once and whole", () =>
  inFolder(async (folder) => {
    const path = `${folder}/several.gguf`;
    const tensors = writeEmptyModel(path, {
      nLayer: 4,
      nEmbd: 1024,
      nFf: 16384,
      nHeadKv: 4,
      nCtx: 512,
    });
    const limit = 2 ** 27;
    const gpu = recording({ ranges: 1, maxStorageBufferBindingSize: limit });
    await using model = await loadModel(path, gpu.load);
    assertEquals(model.info.gpu!.cpuTensors, []);
    const { buffers, errors } = await reportOfWeights(gpu, model);
    assertEquals(errors, []);
    assert(buffers.filter(({ size }) => size > limit / 2).length >= 4);
    for (const { size } of buffers) assert(size <= limit);
    checkWritten(tensors, buffers);
  }));

test("a tensor too large to bind stays in memory, and the model names it", () =>
  inFolder(async (folder) => {
    const path = `${folder}/wide.gguf`;
    const limit = 2 ** 27;
    const tensors = writeEmptyModel(path, {
      nLayer: 1,
      nEmbd: 1024,
      nFf: 65536 + 128,
      nHeadKv: 4,
      nCtx: 512,
    });
    const gpu = recording({ maxStorageBufferBindingSize: limit });
    const lines: string[] = [];
    await using model = await loadModel(path, {
      ...gpu.load,
      onLog: (_, line) => lines.push(line),
    });
    const { cpuTensors, cpuBytes } = model.info.gpu!;
    const want = tensors.filter(({ bytes }) => bytes > limit);
    assertEquals(want.length, 3);
    assertEquals(
      cpuTensors.toSorted((a, b) => a.name < b.name ? -1 : 1),
      want.map(({ name, bytes }) => ({ name, bytes })).sort((a, b) => a.name < b.name ? -1 : 1),
    );
    assertEquals(cpuBytes, want.reduce((sum, { bytes }) => sum + bytes, 0));
    for (const { name } of want) {
      assert(lines.some((line) => line.includes(name)), `the log does not name ${name}`);
    }
    await using context = await model.createContext({ nCtx: 512, nParallel: 1 });
    const { timings } = await context.generate([5, 6, 7], { maxTokens: 3, ignoreEos: true })
      .completion();
    assertEquals(timings.predictedTokens, 3);
    assertEquals((await gpu.report()).errors, []);
  }));

test("a KV cache too large to bind stays in memory, and generation works", () =>
  inFolder(async (folder) => {
    const path = `${folder}/long.gguf`;
    writeEmptyModel(path, { nLayer: 1, nEmbd: 1024, nFf: 256, nHeadKv: 8, nCtx: 2 ** 17 });
    const gpu = recording({ maxStorageBufferBindingSize: 2 ** 27 });
    await using model = await loadModel(path, gpu.load);
    const before = await model.gpuCounts();
    // K and V of a layer: 8 heads of 128 halves for each token.
    await using context = await model.createContext({ nCtx: 2 ** 16 + 1024, nParallel: 1 });
    assert(context.info.kvBytes / 2 > 2 ** 27, `${context.info.kvBytes}`);
    const after = await model.gpuCounts();
    assert(after!.bufferBytes - before!.bufferBytes < context.info.kvBytes / 2);
    const { timings } = await context.generate([5, 6, 7], { maxTokens: 3, ignoreEos: true })
      .completion();
    assertEquals(timings.predictedTokens, 3);
    assertEquals((await gpu.report()).errors, []);
  }));

gpuTest(
  "with its KV cache in memory, a model on an adapter writes what the CPU writes",
  () =>
    inFolder(async (folder) => {
      const path = `${folder}/long.gguf`;
      writeRandomModel(path, "Q8_0", {
        nLayer: 1,
        nEmbd: 256,
        nFf: 512,
        nHead: 8,
        nHeadKv: 8,
        head: 128,
        nVocab: 512,
      });
      const texts: string[] = [];
      for (const gpu of ["required", "off"] as const) {
        await using model = await loadModel(path, { gpu });
        const before = await model.gpuCounts();
        await using context = await model.createContext({ nCtx: 2 ** 16 + 1024, nParallel: 1 });
        // Only where the adapter's limit is that of a software adapter does the cache not fit.
        assert(context.info.kvBytes / 2 > 2 ** 27, `${context.info.kvBytes}`);
        if (before && model.info.gpu!.software) {
          const { bufferBytes } = (await model.gpuCounts())!;
          assert(bufferBytes - before.bufferBytes < context.info.kvBytes / 2);
        }
        texts.push(await greedy(context, [300, 301, 302, 303], 6));
      }
      assertEquals(texts[0], texts[1]);
    }),
);
