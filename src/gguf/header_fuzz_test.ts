// Damaged headers. Whatever a file says, the answer is a header or a GgufError with file, byte and field, and nothing is
// allocated that the file does not have. RYS_FUZZ_SECONDS says how long, RYS_FUZZ_SEED repeats what failed.

import { assert } from "@std/assert";
import { estimateCost } from "../plan/cost.ts";
import { expandPlan } from "../plan/expand_plan.ts";
import { between, pick, seeded } from "../plan/_testing.ts";
import { describeModel } from "./describe_model.ts";
import { GgufError } from "./gguf_error.ts";
import { modelFacts } from "./model_facts.ts";
import { planRefusal } from "./plan_support.ts";
import { readHeader } from "./read_header.ts";
import { readModelFiles } from "./read_model.ts";
import { type Scan, scanHeader } from "./_scan.ts";
import { openSource } from "./byte_source.ts";
import { Bytes, plainKey, type TestFile, writeGguf } from "./_testing.ts";

type Random = () => number;

/** A sound header, and the size of its whole file. */
interface Sound {
  what: string;
  scan: Scan;
  size: number;
}

/** Bytes that stand for a file of `size` bytes; what they do not hold reads as zeros. */
interface Damaged {
  name: string;
  bytes: Uint8Array;
  size: number;
}

const COUNTS = [
  0n,
  1n,
  2n,
  3n,
  0x7fn,
  0xffffn,
  0x7fffffffn,
  0x80000000n,
  0xffffffffn,
  0x100000000n,
  (1n << 53n) - 1n,
  1n << 53n,
  1n << 60n,
  (1n << 63n) - 1n,
  1n << 63n,
  (1n << 64n) - 1n,
];
/** Text that is no UTF-8, or is and should not be. */
const TEXTS = [
  [0xff],
  [0xc3],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xc0, 0x80],
  [0xef, 0xbb, 0xbf],
  [0],
  [10, 13, 9],
  [...new TextEncoder().encode("__proto__")],
  [...new TextEncoder().encode("constructor")],
];

/** One thing done to a header; returns what it was. */
type Damage = (random: Random, sound: Sound, file: { bytes: Uint8Array; size: number }) => void;

function put64(bytes: Uint8Array, at: number, value: bigint): void {
  if (at + 8 <= bytes.length) {
    new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(at, BigInt.asUintN(64, value), true);
  }
}

function put32(bytes: Uint8Array, at: number, value: number): void {
  if (at + 4 <= bytes.length) {
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(at, value >>> 0, true);
  }
}

const count = (random: Random): bigint =>
  random() < 0.7 ? pick(random, COUNTS) : BigInt(between(random, 0, 300));

function splice(bytes: Uint8Array, from: number, to: number, middle: Uint8Array): Uint8Array {
  return new Bytes().add(bytes.slice(0, from)).add(middle).add(bytes.slice(to)).done();
}

const DAMAGES: Damage[] = [
  // the counts of tensors and keys
  (random, _, { bytes }) => put64(bytes, pick(random, [8, 16]), count(random)),
  // the version
  (random, _, { bytes }) => put32(bytes, 4, pick(random, [0, 1, 2, 4, 0x03000000, 0xffffffff])),
  // a key's length
  (random, { scan }, { bytes }) => put64(bytes, pick(random, scan.keys).start, count(random)),
  // a value's type
  (random, { scan }, { bytes }) =>
    put32(bytes, pick(random, scan.keys).valueAt, pick(random, [between(random, 0, 14), 2 ** 31])),
  // a text's length, an array's, or whatever a value begins with
  (random, { scan }, { bytes }) => {
    const { valueAt, array } = pick(random, scan.keys);
    put64(bytes, valueAt + (array ? 8 : 4), count(random));
  },
  // the type of an array's elements, arrays among them
  (random, { scan }, { bytes }) => {
    const arrays = scan.keys.filter(({ array }) => array);
    if (arrays.length > 0) {
      put32(bytes, pick(random, arrays).valueAt + 4, pick(random, [9, 8, between(random, 0, 14)]));
    }
  },
  // arrays in arrays in arrays
  (random, { scan }, file) => {
    const { valueAt, end } = pick(random, scan.keys);
    const nested = new Bytes().u32(9);
    for (let depth = between(random, 1, 2000); depth > 0; depth--) nested.u32(9).u64(1);
    file.bytes = splice(file.bytes, valueAt, end, nested.u32(4).u64(1).u32(7).done());
  },
  // a number, by any width
  (random, { scan }, { bytes }) => {
    const { valueAt, array } = pick(random, scan.keys);
    const at = valueAt + (array ? 16 : 4) + (array ? 4 * between(random, 0, 12) : 0);
    if (random() < 0.5) put32(bytes, at, pick(random, [0, 1, 512, 513, 0x7fc00000, 0xffffffff]));
    else put64(bytes, at, count(random));
  },
  // a tensor's name, dimensions, sizes, type, offset
  (random, { scan }, { bytes }) => {
    const { describedAt, name, shape } = pick(random, scan.tensors);
    const dimensions = describedAt + 8 + new TextEncoder().encode(name).length;
    const type = dimensions + 4 + 8 * shape.length;
    pick(random, [
      () => put64(bytes, describedAt, count(random)),
      () => put32(bytes, dimensions, pick(random, [0, 5, 6, 0xffffffff, between(random, 0, 4)])),
      () => put64(bytes, dimensions + 4 + 8 * between(random, 0, 3), count(random)),
      () => put32(bytes, type, pick(random, [between(random, 0, 45), 0xffffffff])),
      () =>
        put64(
          bytes,
          type + 4,
          random() < 0.5 ? count(random) : BigInt(between(random, 0, 99) * 32),
        ),
    ])();
  },
  // the alignment
  (random, { scan }, file) => {
    const key = scan.keys.find(({ key }) => key === "general.alignment");
    const value = pick(random, [0, 1, 3, 8, 4096, 2 ** 20, 2 ** 21, 2 ** 31, 0xffffffff]);
    if (key) return put32(file.bytes, key.valueAt + 4, value);
    const added = new Bytes().text("general.alignment").u32(pick(random, [4, 4, 4, 5, 8])).u32(
      value,
    );
    file.bytes = splice(file.bytes, scan.tensorsAt, scan.tensorsAt, added.done());
    put64(file.bytes, 16, BigInt(scan.keys.length + 1));
  },
  // no UTF-8, control characters, and names that JavaScript gives a meaning
  (random, { scan }, { bytes }) => {
    const places = [
      pick(random, scan.keys).start + 8,
      pick(random, scan.keys).valueAt + 12,
      pick(random, scan.tensors).describedAt + 8,
    ];
    bytes.set(pick(random, TEXTS).slice(0, 9), Math.min(pick(random, places), bytes.length - 9));
  },
  // a name whose length is right as well
  (random, { scan }, file) => {
    const { start, valueAt } = pick(random, scan.keys);
    const name = Uint8Array.from(pick(random, TEXTS));
    file.bytes = splice(file.bytes, start, valueAt, new Bytes().u64(name.length).add(name).done());
  },
  // a key or tensor twice, moved, or left out
  (random, { scan }, file) => {
    const from = pick(random, [...scan.keys.map(({ start }) => start), scan.tensorsAt]);
    const to = pick(random, [...scan.keys.map(({ end }) => end), scan.bytes.length]);
    const at = pick(random, scan.keys).start;
    const part = file.bytes.slice(Math.min(from, to), Math.max(from, to));
    file.bytes = random() < 0.5
      ? splice(file.bytes, at, at, part)
      : splice(file.bytes, Math.min(from, to), Math.max(from, to), new Uint8Array());
    if (random() < 0.7) put64(file.bytes, 16, BigInt(scan.keys.length + between(random, -2, 2)));
  },
  // the file cut, or longer than its data
  (random, _, file) => {
    file.size = pick(random, [
      between(random, 1, file.bytes.length),
      file.bytes.length,
      file.size - between(random, 1, 1000),
      file.size + between(random, 1, 1000),
      2 ** 50,
    ]);
  },
  // any bytes
  (random, _, { bytes }) => {
    for (let k = between(random, 1, 8); k > 0; k--) {
      bytes[between(random, 0, bytes.length - 1)] = between(random, 0, 255);
    }
  },
  (random, _, { bytes }) =>
    void bytes.copyWithin(
      between(random, 0, bytes.length),
      between(random, 0, bytes.length),
      between(random, 0, bytes.length),
    ),
];

function damage(random: Random, sound: Sound, name: string): Damaged {
  const file = { bytes: sound.scan.bytes.slice() as Uint8Array, size: sound.size };
  for (let k = random() < 0.6 ? 1 : between(random, 2, 4); k > 0; k--) {
    pick(random, DAMAGES)(random, sound, file);
  }
  const grown = file.bytes.length - sound.scan.bytes.length;
  return { name, bytes: file.bytes, size: Math.max(1, file.size + grown) };
}

/** A source of such a file, and how much was read of it. */
function sourceOf({ name, bytes, size }: Damaged) {
  const source = {
    name,
    size,
    most: 0,
    read(offset: number, length: number) {
      source.most = Math.max(source.most, offset + length);
      const part = new Uint8Array(length);
      part.set(bytes.subarray(offset, offset + length));
      return part;
    },
  };
  return source;
}

/** Counts what is allocated by number while `use` runs. */
async function counting(use: () => Promise<void>): Promise<number> {
  const { Uint8Array: Plain, Array: PlainArray } = globalThis;
  let total = 0;
  const counted = <C extends { new (...args: never[]): object }>(plain: C, size: number): C =>
    new Proxy(plain, {
      construct(target, args, self) {
        if (args.length === 1 && typeof args[0] === "number") total += size * args[0];
        return Reflect.construct(target, args, self);
      },
      apply(target, self, args) {
        if (args.length === 1 && typeof args[0] === "number") total += size * args[0];
        return Reflect.apply(target as never, self, args);
      },
    });
  globalThis.Uint8Array = counted(Plain, 1);
  globalThis.Array = counted(PlainArray as never, 8) as never;
  try {
    await use();
  } finally {
    globalThis.Uint8Array = Plain;
    globalThis.Array = PlainArray;
  }
  return total;
}

/** Checks an error, and says what came of the file. */
function refused(error: unknown): string {
  if (!(error instanceof GgufError)) throw error;
  const { file, offset, field, message } = error;
  assert(file !== "" && message.startsWith(`${file}: `), message);
  assert(field !== undefined, `no field: ${message}`);
  // A name has no byte in the file.
  assert(field === "name" || offset !== undefined, `no byte: ${message}`);
  assert(offset === undefined || message.includes(`at byte ${offset}`), message);
  assert(!/[\r\n\t]/.test(message), `not one line: ${JSON.stringify(message)}`);
  assert(message.length < 1500, `${message.length} characters`);
  return "refused";
}

async function readOne(file: Damaged): Promise<string> {
  const source = sourceOf(file);
  let header;
  try {
    header = await readHeader(source);
  } catch (error) {
    return refused(error);
  } finally {
    assert(source.most <= Math.min(file.size, 48_000_000), `read up to byte ${source.most}`);
  }
  assert(header.tensors.every(({ offset, bytes }) => offset + bytes <= file.size));
  // What a sound header says may still be impossible: for a cost that is an error too, for a description a note.
  describeModel(header);
  try {
    const facts = modelFacts(header);
    const plan = expandPlan("none", header.nLayer, { nextn: header.nextn });
    estimateCost(facts, plan, { nCtx: 512 });
    planRefusal(header, [...plan.layers, header.nLayer - 1]);
  } catch (error) {
    if (error instanceof GgufError) {
      assert(error.field !== undefined, error.message);
      return "no facts";
    }
    if (!(error instanceof RangeError)) throw error;
    return "no cost";
  }
  return "sound";
}

/** Shards, of which some are damaged, missing, twice, or named wrongly. */
async function readShards(random: Random, sound: Sound[]): Promise<string> {
  const n = between(random, 2, 3);
  const name = (i: number) => `m-0000${i + 1}-of-0000${n}.gguf`;
  const files = Array.from({ length: n }, (_, i) => {
    const bytes = shard(i, pick(random, [n, n, n, n + 1]), random() < 0.1 ? "same" : `t${i}`);
    return {
      name: name(random() < 0.9 ? i : between(random, 0, n - 1)),
      source: bytes as Uint8Array,
    };
  });
  if (random() < 0.3) files.splice(between(random, 0, n - 1), 1);
  files.sort(() => random() - 0.5);
  if (random() < 0.3) files[0]!.source = damage(random, pick(random, sound), "").bytes;
  try {
    await readModelFiles(files);
    return "sound";
  } catch (error) {
    return refused(error);
  }
}

function shard(no: number, count: number, tensor: string): Uint8Array {
  const keys = [plainKey("general.architecture", "llama"), plainKey("llama.block_count", 1)];
  return writeGguf({
    keys: [...no === 0 ? keys : [], plainKey("split.no", no), plainKey("split.count", count)],
    tensors: [{ name: tensor, shape: [32] }],
  });
}

/** Headers to damage: the demo model's, and small ones with every kind of key that decides. */
async function soundHeaders(): Promise<Sound[]> {
  const heads = { embedding_length: 64, "attention.head_count": 2, context_length: 512 };
  const models: [string, Record<string, unknown>][] = [
    ["llama", { ...heads, block_count: 2, "rope.dimension_count": 32 }],
    ["qwen35", {
      ...heads,
      block_count: 5,
      nextn_predict_layers: 1,
      "ssm.conv_kernel": 4,
      "ssm.inner_size": 64,
      "ssm.state_size": 16,
      "ssm.group_count": 2,
      "attention.recurrent_layers": [1, 0, 1, 0, 0],
    }],
    ["gemma4", {
      ...heads,
      block_count: 4,
      "attention.sliding_window": 16,
      "attention.sliding_window_pattern": [1, 0, 1, 0],
      "attention.shared_kv_layers": 2,
      "attention.head_count_kv": [2, 1, 2, 1],
    }],
    ["deepseek2", {
      ...heads,
      block_count: 3,
      leading_dense_block_count: 1,
      expert_count: 4,
      expert_used_count: 2,
    }],
    ["glm-dsa", {
      ...heads,
      block_count: 3,
      "attention.indexer.top_k": 8,
      "attention.indexer.types": [1, 0, 1],
    }],
    ["rwkv6", { ...heads, block_count: 4, rescale_every_n_layers: 2, "wkv.head_size": 32 }],
    ["granite", { ...heads, block_count: 2, deepstack_mapping: [0, 1] }],
  ];
  const files = models.map(([architecture, keys]): [string, Uint8Array] => {
    const file: TestFile = {
      keys: [
        plainKey("general.architecture", architecture),
        plainKey("tokenizer.ggml.tokens", ["a", "ü", "", "<end>"]),
        plainKey("tokenizer.chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}"),
        ...Object.entries(keys).map(([key, value]) => plainKey(`${architecture}.${key}`, value)),
        { key: "x.floats", type: "array", elementType: "float32", value: [1, 2, 3] },
        { key: "x.epsilon", type: "float64", value: 1e-5 },
      ],
      tensors: [
        { name: "token_embd.weight", shape: [64, 4] },
        { name: "blk.0.attn_q.weight", shape: [64, 8], type: 8, bytes: 16 * 34 },
        { name: "blk.1.ffn_up_exps.weight", shape: [32, 2, 4] },
      ],
      ...architecture === "llama" ? { alignment: 64 } : {},
    };
    return [architecture, writeGguf(file)];
  });
  for (const name of ["demo.gguf", "demo-q8_0.gguf"]) {
    files.push([name, await Deno.readFile(new URL(`../../models/${name}`, import.meta.url))]);
  }
  return await Promise.all(files.map(async ([what, bytes]) => ({
    what,
    scan: await scanHeader(await openSource(bytes)),
    size: bytes.length,
  })));
}

/** Damages headers with one seed; returns how often each thing came of it. */
async function fuzz(
  seed: number,
  rounds: number,
  until = Infinity,
): Promise<Record<string, number>> {
  const random = seeded(seed);
  const sound = await soundHeaders();
  const came: Record<string, number> = {};
  for (let round = 0; round < rounds && performance.now() < until; round++) {
    const what = `RYS_FUZZ_SEED=${seed}, round ${round}`;
    let result = "";
    let limit = Infinity;
    try {
      const allocated = await counting(async () => {
        if (random() < 0.1) {
          result = `shards ${await readShards(random, sound)}`;
        } else {
          const file = damage(random, pick(random, sound), `fuzz ${round}`);
          // What is read is held twice while it grows, served to the parser, and read in two copies here.
          limit = 6 * Math.min(file.size, 48_000_000) + (1 << 23);
          result = await readOne(file);
        }
      });
      assert(allocated <= limit, `${allocated} bytes were allocated, limit ${limit}`);
    } catch (error) {
      throw new Error(`${what}: ${error instanceof Error ? error.message : error}`, {
        cause: error,
      });
    }
    came[result] = (came[result] ?? 0) + 1;
  }
  return came;
}

Deno.test("readHeader() answers damaged headers with a header or the file, byte and field", async () => {
  const came = await fuzz(Number(Deno.env.get("RYS_FUZZ_SEED") ?? 1), 3000);
  for (const result of ["refused", "sound", "no facts", "shards refused", "shards sound"]) {
    assert((came[result] ?? 0) > 0, `${result}: ${JSON.stringify(came)}`);
  }
});

Deno.test("readHeader() answers damaged headers that nobody has seen before", async () => {
  const seconds = Number(Deno.env.get("RYS_FUZZ_SECONDS") ?? 2);
  const [seed] = crypto.getRandomValues(new Uint32Array(1));
  console.log(`RYS_FUZZ_SEED=${seed}`);
  console.log(await fuzz(seed!, 10_000_000, performance.now() + 1000 * seconds));
});
