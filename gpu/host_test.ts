import { assert, assertEquals } from "@std/assert";
import { Op } from "./executor.ts";
import { GpuHost, type GpuInstance } from "./host.ts";

const RECORDING = new URL("../tests/gpu/recording_device.ts", import.meta.url).href;

/** The words that make a pipeline of a source. */
function pipelineWords(label: string, source: string): Uint32Array {
  const texts = [label, "main", source].map((text) => new TextEncoder().encode(text));
  const words = [Op.PipelineCreate, 1, ...texts.map((text) => text.length), 0] as number[];
  for (const text of texts) {
    const padded = new Uint8Array((text.length + 3) & ~3);
    padded.set(text);
    words.push(...new Uint32Array(padded.buffer));
  }
  return new Uint32Array(words);
}

Deno.test("GpuHost.run() ends the instance with what the dialect refuses, and says which shader", async () => {
  const fatal: string[] = [];
  const done: (number | bigint)[] = [];
  const failed = Promise.withResolvers<string>();
  const host = await GpuHost.open(
    { mode: "required", provider: RECORDING, readback: "awaited" },
    (message) => fatal.push(message),
  );
  assert(host instanceof GpuHost);
  const wasmMemory = new WebAssembly.Memory({ initial: 1 });
  const bytes = new Uint8Array(wasmMemory.buffer);
  const instance: GpuInstance = {
    wasmMemory,
    _malloc: () => 4096,
    _rys_gpu_facts_at: () => 1024,
    _rys_gpu_fail(at) {
      const end = bytes.indexOf(0, Number(at));
      failed.resolve(new TextDecoder().decode(bytes.subarray(Number(at), end)));
      return undefined;
    },
    _rys_gpu_done(_job, ok) {
      done.push(ok!);
      return undefined;
    },
  };
  host.attach(instance);
  const words = pipelineWords("bad", "fn f() -> f16 {\n  return bitcast<f16>(1u);\n}\n");
  new Uint32Array(wasmMemory.buffer, 8192, words.length).set(words);
  host.run(0, 8192, words.length, true);
  const told = await failed.promise;
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert(
    told.startsWith('the GPU shader "bad" is refused: Cannot compile a shader with naga: '),
    told,
  );
  assert(told.includes('line 2 ("return bitcast<f16>(1u);")'), told);
  assertEquals(fatal, [told]);
  assertEquals(done, [0]);
  host.run(0, 8192, words.length, true); // nothing crosses any more
  assertEquals(done, [0, 0]);
  host.dispose();
});
