import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { between, pick, seeded } from "../plan/_testing.ts";
import { GGML_TYPES } from "./ggml_types.ts";
import { GgufError } from "./gguf_error.ts";
import { readHeader } from "./read_header.ts";
import { Bytes, llamaFile, plainKey, type TestFile, writeGguf, writeHeader } from "./_testing.ts";

async function inFolder(test: (path: (name: string) => string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test((name) => `${folder}/${name}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function refusal(bytes: Uint8Array<ArrayBuffer>): Promise<GgufError> {
  const error = await assertRejects(() => readHeader(bytes, { name: "model.gguf" }), GgufError);
  assertEquals(error.message.includes("\n"), false);
  assert(error.message.startsWith("model.gguf: "), error.message);
  return error;
}

Deno.test("readHeader() reads a model from every kind of source", async () => {
  const bytes = writeGguf(llamaFile());
  await inFolder(async (path) => {
    await Deno.writeFile(path("m.gguf"), bytes);
    const reads: number[] = [];
    for (
      const source of [
        bytes,
        new Blob([bytes]),
        new File([bytes], "m.gguf"),
        path("m.gguf"),
        new URL(`file://${path("m.gguf")}`),
        {
          size: bytes.length,
          read: (offset: number, length: number) => {
            reads.push(length);
            return bytes.subarray(offset, offset + length);
          },
        },
      ]
    ) {
      const header = await readHeader(source, { name: "m.gguf" });
      // The length of its name stands before it.
      const describedAt = (name: string) =>
        new TextDecoder("latin1").decode(bytes).indexOf(name) - 8;
      assertEquals({ ...header, metadata: undefined, tensors: header.tensors.slice(0, 3) }, {
        file: "m.gguf",
        size: bytes.length,
        version: 3,
        alignment: 32,
        dataOffset: header.dataOffset,
        metadata: undefined,
        tensors: [
          {
            name: "token_embd.weight",
            type: GGML_TYPES.get(0)!,
            shape: [32, 8],
            offset: header.dataOffset,
            bytes: 1024,
            describedAt: describedAt("token_embd.weight"),
            shard: 0,
          },
          {
            name: "blk.0.attn_q.weight",
            type: GGML_TYPES.get(0)!,
            shape: [32, 32],
            offset: header.dataOffset + 1024,
            bytes: 4096,
            describedAt: describedAt("blk.0.attn_q.weight"),
            shard: 0,
          },
          {
            name: "blk.0.ffn_up.weight",
            type: GGML_TYPES.get(8)!,
            shape: [32, 64],
            offset: header.dataOffset + 5120,
            bytes: 2176,
            describedAt: describedAt("blk.0.ffn_up.weight"),
            shard: 0,
          },
        ],
        weightBytes: 1024 + 4 * (4096 + 2176),
        architecture: "llama",
        name: "tiny",
        nLayer: 4,
        nextn: 0,
        contextLength: 512,
        embeddingLength: 32,
        nHead: [4, 4, 4, 4],
        nHeadKv: [2, 2, 2, 2],
        fileType: 7,
        tokenizerModel: "gpt2",
        hasChatTemplate: true,
        layerPlan: "1,3",
        splitNo: 0,
        splitCount: 1,
      });
      const tokens = header.metadata.get("tokenizer.ggml.tokens")!;
      assertEquals([tokens.type, tokens.elementType, tokens.length], ["array", "string", 4]);
      assertEquals(tokens.value, ["a", "b", "ü", ""]);
      assertEquals(tokens.valueAt - tokens.start, 8 + "tokenizer.ggml.tokens".length);
      assertEquals(tokens.end - tokens.valueAt, 4 + 4 + 8 + 4 * 8 + 4);
      assertEquals([...header.metadata.keys()], llamaFile().keys!.map((k) => k.key));
    }
    assertEquals(reads, [bytes.length]);
  });
});

Deno.test("readHeader() reads every type of value", async () => {
  const header = await readHeader(writeGguf({
    version: 2,
    keys: [
      { key: "a", type: "uint8", value: 255 },
      { key: "b", type: "int8", value: -1 },
      { key: "c", type: "uint16", value: 65535 },
      { key: "d", type: "int16", value: -2 },
      { key: "e", type: "uint32", value: 4294967295 },
      { key: "f", type: "int32", value: -3 },
      { key: "g", type: "float32", value: 0.5 },
      { key: "h", type: "bool", value: true },
      { key: "i", type: "string", value: "ü🦙" },
      { key: "j", type: "uint64", value: 2 ** 40 },
      { key: "k", type: "int64", value: -4 },
      { key: "l", type: "float64", value: 0.1 },
      { key: "m", type: "array", elementType: "bool", value: [true, false] },
      { key: "version", type: "string", value: "clash" },
      { key: "7", type: "uint8", value: 1 },
    ],
  }));
  const values = Object.fromEntries([...header.metadata].map(([key, { value }]) => [key, value]));
  assertEquals(values, {
    a: 255,
    b: -1,
    c: 65535,
    d: -2,
    e: 4294967295,
    f: -3,
    g: 0.5,
    h: true,
    i: "ü🦙",
    j: 2n ** 40n,
    k: -4n,
    l: 0.1,
    m: [true, false],
    version: "clash",
    "7": 1,
  });
  assertEquals([...header.metadata.keys()].at(-1), "7");
  assertEquals([header.version, header.nLayer, header.architecture], [2, 0, ""]);
});

Deno.test("readHeader() takes per-layer lists and next-token layers", async () => {
  const header = await readHeader(writeGguf({
    keys: [
      plainKey("general.architecture", "x"),
      plainKey("x.block_count", 3),
      plainKey("x.nextn_predict_layers", 1),
      plainKey("x.attention.head_count", [8, 8, 4]),
      plainKey("x.attention.head_count_kv", [0, 2, 4]),
    ],
  }));
  assertEquals([header.nLayer, header.nextn, header.nHead, header.nHeadKv], [2, 1, [8, 8, 4], [
    0,
    2,
    4,
  ]]);
});

Deno.test("readHeader() reads a header longer than its first read", async () => {
  const tokens = Array.from({ length: 300_000 }, (_, i) => `token ${i}`);
  const file = llamaFile();
  file.keys!.splice(3, 0, plainKey("tokenizer.ggml.more", tokens));
  const bytes = writeGguf(file);
  const header = await readHeader(bytes);
  // Too long to be kept, but its place is known.
  const { value, length, elementType, end } = header.metadata.get("tokenizer.ggml.more")!;
  assertEquals([value, length, elementType], [undefined, 300_000, "string"]);
  assertEquals(new TextDecoder().decode(bytes.subarray(end - 12, end)), "token 299999");
  assertEquals([header.nLayer, header.layerPlan, header.metadata.size], [4, "1,3", 13]);
});

Deno.test("readHeader() honours the file's alignment", async () => {
  const header = await readHeader(writeGguf({ ...llamaFile(), alignment: 4096 }));
  assertEquals([header.alignment, header.dataOffset % 4096, header.tensors[1]!.offset % 4096], [
    4096,
    0,
    0,
  ]);
});

Deno.test("readHeader() reads files over 4 GiB", async () => {
  const file: TestFile = {
    tensors: [{ name: "big", shape: [2 ** 20, 3 * 2 ** 9] }, { name: "last", shape: [32] }],
  };
  const header = writeHeader(file);
  const data = Math.ceil(header.length / 32) * 32;
  const size = data + 6 * 2 ** 30 + 128;
  await inFolder(async (path) => {
    using sparse = await Deno.create(path("big.gguf"));
    await sparse.write(header);
    await sparse.truncate(size);
    const read = await readHeader(path("big.gguf"));
    assertEquals(read.tensors.map((t) => [t.name, t.offset, t.bytes]), [
      ["big", data, 6 * 2 ** 30],
      ["last", data + 6 * 2 ** 30, 128],
    ]);
    assertEquals([read.size, read.weightBytes], [size, 6 * 2 ** 30 + 128]);
    await sparse.truncate(size - 1);
    const error = await assertRejects(
      () => readHeader(path("big.gguf")),
      GgufError,
      'tensor "last"',
    );
    assertEquals([error.limit, error.file], [size - 1, path("big.gguf")]);
    assertStringIncludes(error.message, `end at byte ${size}, the file at byte ${size - 1}`);
  });
});

const text = (content: string) => new TextEncoder().encode(content);
const withKey = (raw: (bytes: Bytes) => Bytes, key = "k"): Uint8Array<ArrayBuffer> =>
  writeGguf({ keys: [{ key, type: "array", value: 0, raw: raw(new Bytes()).done() }] });
const tensor = (change: Partial<NonNullable<TestFile["tensors"]>[number]>) =>
  writeGguf({ tensors: [{ name: "t", shape: [32], ...change }] });

const FAULTS: [
  what: string,
  bytes: Uint8Array<ArrayBuffer>,
  field: string,
  message: string,
][] = [
  ["an empty file", new Uint8Array(), "magic", "the file is empty"],
  ["an HTML page", text("\n<!DOCTYPE html><html>"), "magic", "it is an HTML page, not a model"],
  ["another HTML page", text("<html><head>"), "magic", "it is an HTML page"],
  ["a text file", text("Entry not found"), "magic", 'it begins with "Entr"'],
  ["a text file of two bytes", text("no"), "magic", 'it begins with "no"'],
  ["JSON", text('{"error":"Unauthorized"}'), "magic", 'it begins with "{\\"er"'],
  [
    "a Git LFS pointer",
    text("version https://git-lfs.github.com/spec/v1\n"),
    "magic",
    "it is a Git LFS pointer",
  ],
  ["an older format", text("tjgg\x03\0\0\0"), "magic", "a format older than GGUF"],
  ["zeros", new Uint8Array(4096), "magic", "it begins with zeros"],
  ["the magic alone", text("GGUF"), "version", "the file ends inside its header, at byte 4"],
  ["version 1", writeGguf({ version: 1 }), "version", "version is 1"],
  ["version 4", writeGguf({ version: 4 }), "version", "expected 2 or 3"],
  ["version 0", writeGguf({ version: 0 }), "version", "version is 0"],
  ["big-endian", writeGguf({ version: 0x03000000 }), "version", "big-endian"],
  [
    "2^60 keys",
    writeGguf({ keyCount: 2n ** 60n }),
    "key count",
    "key count is 1152921504606846976",
  ],
  ["2^63 tensors", writeGguf({ tensorCount: 2n ** 63n }), "tensor count", "limit 100000"],
  [
    "more keys than there are",
    writeGguf({ keyCount: 3n }),
    "length of key 0",
    "the file ends inside its header",
  ],
  ["an empty key", writeGguf({ keys: [plainKey("", 1)] }), "key 0", "a key is empty"],
  [
    "a key too long",
    writeGguf({ keys: [plainKey("k".repeat(65_536), 1)] }),
    "length of key 0",
    "limit 65535",
  ],
  [
    "a key of 2^60 bytes",
    new Bytes().add(text("GGUF")).u32(3).u64(0).u64(1).u64(2n ** 60n).done(),
    "length of key 0",
    "1152921504606846976",
  ],
  [
    "a key twice",
    writeGguf({ keys: [plainKey("k", 1), plainKey("k", 2)] }),
    'key "k"',
    "a key occurs twice",
  ],
  [
    "a key __proto__",
    writeGguf({ keys: [plainKey("__proto__", 1)] }),
    'key "__proto__"',
    "no such key exists",
  ],
  [
    "an unknown type of value",
    new Bytes().add(text("GGUF")).u32(3).u64(0).u64(1).text("k").u32(13).done(),
    'key "k"',
    "the value's type is 13",
  ],
  [
    "an array of 2^60",
    withKey((b) => b.u32(4).u64(2n ** 60n)),
    'array count of key "k"',
    'array count of key "k" is 1152921504606846976',
  ],
  [
    "an array of 1,000,001",
    withKey((b) => b.u32(0).u64(1_000_001)),
    'array count of key "k"',
    "limit 1000000",
  ],
  [
    "an array beyond the end",
    withKey((b) => b.u32(4).u64(1_000_000)),
    'key "k"',
    "an array of 1000000 goes beyond the end of the file, 0 bytes on",
  ],
  ["an array of arrays", withKey((b) => b.u32(9).u64(1)), 'key "k"', "elements are of type 9"],
  ["an array of no type", withKey((b) => b.u32(77).u64(1)), 'key "k"', "elements are of type 77"],
  [
    "text of 2^60 bytes in an array",
    withKey((b) => b.u32(8).u64(1).u64(2n ** 60n)),
    'length of key "k"',
    "limit 10000000",
  ],
  [
    "text beyond the end",
    withKey((b) => b.u32(8).u64(1).u64(9_999_999)),
    'key "k"',
    "its length of 9999999 goes beyond the end",
  ],
  [
    "alignment 0",
    writeGguf({ keys: [plainKey("general.alignment", 0)] }),
    'key "general.alignment"',
    "not a power of two",
  ],
  [
    "alignment 48",
    writeGguf({ keys: [plainKey("general.alignment", 48)] }),
    'key "general.alignment"',
    "not a power of two",
  ],
  [
    "alignment 2^31",
    writeGguf({ keys: [plainKey("general.alignment", 2 ** 31)] }),
    'key "general.alignment"',
    "limit 1048576",
  ],
  [
    "an alignment of another type",
    writeGguf({ keys: [plainKey("general.alignment", "32")] }),
    'key "general.alignment"',
    "type is 8",
  ],
  ["a dimension 0", tensor({ shape: [32, 0] }), 'tensor "t"', "dimension 1 is 0"],
  [
    "a dimension of 2^60",
    tensor({ shape: [2n ** 60n] }),
    'dimension 0 of tensor "t"',
    "limit 4294967296",
  ],
  [
    "four large dimensions",
    tensor({ shape: [2n ** 32n, 2n ** 32n, 2n ** 32n, 2n ** 32n] }),
    'tensor "t"',
    "is too large",
  ],
  ["five dimensions", tensor({ shape: [1, 1, 1, 1, 1] }), 'tensor "t"', "it has 5 dimensions"],
  [
    "2^32-1 dimensions",
    tensor({ dimensions: 0xffff_ffff }),
    'tensor "t"',
    "it has 4294967295 dimensions",
  ],
  ["an unknown tensor type", tensor({ type: 43 }), 'tensor "t"', "its type 43 is unknown"],
  ["a tensor type that is gone", tensor({ type: 4 }), 'tensor "t"', "its type 4 is unknown"],
  [
    "half a block",
    tensor({ shape: [48], type: 8, bytes: 51 }),
    'tensor "t"',
    "rows of 48 values do not fill blocks of type q8_0",
  ],
  [
    "a long tensor name",
    tensor({ name: "t".repeat(64) }),
    "length of name of tensor 0",
    "limit 63",
  ],
  [
    "an offset beyond the file",
    tensor({ offset: 2n ** 40n }),
    'tensor "t"',
    "its data offset is 1099511627776, where 0 follows",
  ],
  [
    "an offset of 2^63",
    tensor({ offset: 2n ** 63n }),
    'data offset of tensor "t"',
    "limit 9007199254740991",
  ],
  [
    "a tensor twice",
    writeGguf({ tensors: [{ name: "t", shape: [8] }, { name: "t", shape: [8] }] }),
    'tensor "t"',
    "occurs twice",
  ],
  [
    "overlapping tensors",
    writeGguf({ tensors: [{ name: "t", shape: [8] }, { name: "u", shape: [8], offset: 0n }] }),
    'tensor "u"',
    "where 32 follows",
  ],
  [
    "data that are cut",
    writeGguf(llamaFile()).slice(0, -1024),
    'tensor "blk.3.ffn_up.weight"',
    "the file is cut",
  ],
  ["no data at all", writeHeader(llamaFile()), 'tensor "token_embd.weight"', "the file is cut"],
  [
    "513 layers",
    writeGguf({ keys: [plainKey("general.architecture", "x"), plainKey("x.block_count", 513)] }),
    'key "x.block_count"',
    "limit 512",
  ],
  [
    "more next-token layers than layers",
    writeGguf({
      keys: [
        plainKey("general.architecture", "x"),
        plainKey("x.block_count", 2),
        plainKey("x.nextn_predict_layers", 3),
      ],
    }),
    'key "x.nextn_predict_layers"',
    "limit 2",
  ],
  [
    "text for a number",
    writeGguf({ keys: [plainKey("general.architecture", "x"), plainKey("x.block_count", "9")] }),
    'key "x.block_count"',
    "the value 9 is not a count",
  ],
  [
    "a number for text",
    writeGguf({ keys: [plainKey("general.architecture", 7)] }),
    'key "general.architecture"',
    "the value is not text",
  ],
  [
    "heads for other layers",
    writeGguf({
      keys: [
        plainKey("general.architecture", "x"),
        plainKey("x.block_count", 2),
        plainKey("x.attention.head_count", [1, 2, 3]),
      ],
    }),
    'key "x.attention.head_count"',
    "there are 3 values for 2 layers",
  ],
  [
    "heads for very many layers",
    writeGguf({
      keys: [
        plainKey("general.architecture", "x"),
        plainKey("x.block_count", 2),
        plainKey("x.attention.head_count", Array(8193).fill(1)),
      ],
    }),
    'key "x.attention.head_count"',
    "the value is an array of 8193",
  ],
  [
    "a plan that is not text",
    writeGguf({ keys: [plainKey("rys.layer_plan", 3)] }),
    'key "rys.layer_plan"',
    "the value is not text",
  ],
];

for (const [what, bytes, field, message] of FAULTS) {
  Deno.test(`readHeader() refuses ${what}`, async () => {
    const error = await refusal(bytes);
    assertStringIncludes(error.message, message);
    assertEquals(error.field, field);
    assertEquals(error.file, "model.gguf");
    assertStringIncludes(error.message, field);
    assertStringIncludes(error.message, `at byte ${error.offset}`);
    if (error.limit !== undefined) assertStringIncludes(error.message, `limit ${error.limit}`);
    if (error.expected !== undefined) assertStringIncludes(error.message, error.expected);
  });
}

Deno.test("readHeader() refuses a file cut anywhere", async () => {
  const bytes = writeGguf({ ...llamaFile(1), tensors: [{ name: "t", shape: [8] }] });
  for (let length = 0; length < bytes.length; length++) await refusal(bytes.slice(0, length));
  await readHeader(bytes);
});

Deno.test("readHeader() refuses what is not a file", async () => {
  await inFolder(async (path) => {
    await assertRejects(
      () => readHeader(path("none.gguf")),
      GgufError,
      `${path("none.gguf")}: there is no such file`,
    );
    await Deno.mkdir(path("folder.gguf"));
    await assertRejects(
      () => readHeader(path("folder.gguf")),
      GgufError,
      "it is a directory, not a file",
    );
    await assertRejects(() => readHeader(path("none.gguf/x")), GgufError, "there is no such file");
  });
  await assertRejects(() => readHeader("/dev/null"), GgufError, "it is not a regular file");
  await assertRejects(() => readHeader("a\0b"), GgufError, "it cannot be read");
  await assertRejects(() => readHeader(7 as never), TypeError);
  await assertRejects(() => readHeader({} as never), TypeError);
});

Deno.test("readHeader() refuses a source that breaks its word", async () => {
  const bytes = writeGguf(llamaFile());
  const read = (offset: number, length: number) => bytes.subarray(offset, offset + length);
  const short = { size: bytes.length + 5, name: "short", read };
  const error = await assertRejects(() => readHeader(short), GgufError);
  assertStringIncludes(
    error.message,
    `short: reading ${bytes.length + 5} bytes at byte 0 gave ${bytes.length}`,
  );
  await assertRejects(() => readHeader({ size: -1, read }), GgufError, "its size is -1");
  await assertRejects(() => readHeader({ size: NaN, read }), GgufError, "its size is NaN");
  const failing = { size: 100, read: () => Promise.reject(new Error("offline")) };
  await assertRejects(() => readHeader(failing), Error, "offline");
});

Deno.test("readHeader() reads no more of a hostile file than its header's limit", async () => {
  // A file that claims 2^50 bytes and is full of keys: each read gives what is asked, so only the limit ends it.
  let most = 0;
  const pattern = new Bytes().add(text("GGUF")).u32(3).u64(0).u64(100_000).done();
  const key = (i: number) =>
    new Bytes().text(`k${String(i).padStart(6, "0")}`).u32(9).u32(0).u64(1_000_000).done();
  const source = {
    size: 2 ** 50,
    name: "endless",
    read: (offset: number, length: number) => {
      most = Math.max(most, offset + length);
      const bytes = new Uint8Array(length);
      const place = (at: number, what: Uint8Array) => {
        for (const [i, byte] of what.entries()) {
          if (at + i >= offset && at + i < offset + length) bytes[at + i - offset] = byte;
        }
      };
      place(0, pattern);
      for (let i = 0, at = pattern.length; at < offset + length; i++, at += 31 + 1_000_000) {
        place(at, key(i));
      }
      return bytes;
    },
  };
  const error = await assertRejects(() => readHeader(source), GgufError, "the header is too long");
  assertEquals(error.limit, 48_000_000);
  assert(most <= 48_000_000);
});

Deno.test("readHeader() answers damaged files with a header or a GgufError", async () => {
  const random = seeded(2024);
  const file = llamaFile(2);
  file.keys!.push({ key: "x.floats", type: "array", elementType: "float32", value: [1, 2, 3] });
  file.keys!.push({ key: "x.big", type: "uint64", value: 5 });
  const good = writeGguf({
    ...file,
    tensors: [{ name: "t", shape: [32, 2] }, { name: "u", shape: [32], type: 8, bytes: 34 }],
  });
  const headerLength = good.length - 320;
  let headers = 0;
  for (let n = 0; n < 3000; n++) {
    let bytes = good.slice();
    for (let k = between(random, 1, 4); k > 0; k--) {
      const at = between(random, 0, headerLength);
      switch (between(random, 0, 4)) {
        case 0:
          bytes[at] = between(random, 0, 255);
          break;
        case 1:
          bytes[at]! ^= 1 << between(random, 0, 7);
          break;
        case 2:
          bytes.fill(pick(random, [0, 255, 128]), at, at + between(random, 1, 9));
          break;
        case 3:
          bytes = bytes.slice(0, at);
          break;
        case 4:
          bytes.copyWithin(at, between(random, 0, headerLength), between(random, 0, headerLength));
      }
      if (bytes.length === 0) break;
    }
    let read = 0;
    const source = {
      size: bytes.length,
      name: `fuzz ${n}`,
      read: (offset: number, length: number) => {
        read += length;
        return bytes.slice(offset, offset + length);
      },
    };
    try {
      const header = await readHeader(source);
      assert(header.tensors.every((t) => t.offset + t.bytes <= bytes.length));
      headers++;
    } catch (error) {
      if (!(error instanceof GgufError)) throw new Error(`fuzz ${n}: ${error}`, { cause: error });
      assert(!error.message.includes("\n"));
      assert(error.message.length < 1000, error.message);
    }
    assert(read <= bytes.length);
  }
  assert(headers > 100, `${headers} headers`);
});
