import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { GgufError } from "./gguf_error.ts";
import { readHeader } from "./read_header.ts";
import { readModel } from "./read_model.ts";
import { openUrl } from "./url_source.ts";
import { llamaFile, plainKey, type TestFile, type TestTensor, writeGguf } from "./_testing.ts";

/** What a server was asked for. */
interface Asked {
  path: string;
  range: string | null;
  headers: Headers;
}

type Serve = (request: Request, asked: Asked[]) => Response | Promise<Response>;

/** A server on this machine for the time of a test. */
async function serving(serve: Serve, use: (url: string, asked: Asked[]) => Promise<void>) {
  const asked: Asked[] = [];
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { headers, url } = request;
    asked.push({ path: new URL(url).pathname, range: headers.get("range"), headers });
    return serve(request, asked);
  });
  await use(`http://127.0.0.1:${server.addr.port}`, asked);
}

/** Answers with the part that was asked for. */
function part(bytes: Uint8Array<ArrayBuffer>, request: Request, more: HeadersInit = {}): Response {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "")!;
  const end = Math.min(Number(last) + 1, bytes.length);
  const headers = new Headers(more);
  headers.set("content-range", `bytes ${first}-${end - 1}/${bytes.length}`);
  return new Response(bytes.slice(Number(first), end), { status: 206, headers });
}

const FAST = { pauseMs: 1 };
const MODEL = writeGguf(llamaFile());

/** A model of some megabytes in its header alone, and more in its data. */
function largeModel(): Uint8Array<ArrayBuffer> {
  const tokens = Array.from({ length: 150_000 }, (_, i) => `token number ${i}`);
  const file = llamaFile();
  file.keys = file.keys!.filter(({ key }) => !key.startsWith("tokenizer."));
  file.keys.push({
    key: "tokenizer.ggml.tokens",
    type: "array",
    elementType: "string",
    value: tokens,
  });
  const whole: TestFile = { ...file, tensors: [{ name: "output.weight", shape: [1024, 8192] }] };
  return writeGguf(whole);
}

Deno.test("openUrl() fetches a header, and no tensor", async () => {
  const bytes = largeModel();
  await serving((request) => part(bytes, request), async (url, asked) => {
    const source = await openUrl(`${url}/m.gguf`);
    const header = await readHeader(source);
    const local = await readHeader(bytes, { name: header.file });
    assertEquals(header, local);
    assertEquals(source.size, bytes.length);
    assert(header.dataOffset > 3_000_000);
    assert(source.received < 2 * header.dataOffset, `${source.received}`);
    assert(source.received < bytes.length / 4);
    assert(asked.length <= 6, `${asked.length} requests`);
    assert(asked.every(({ headers }) => headers.get("accept-encoding") === "identity"));
  });
});

Deno.test("openUrl() reads any part, and does not fetch twice what it has", async () => {
  const bytes = new Uint8Array(5_000_000).map((_, i) => (i * 7 + (i >> 12)) & 255);
  await serving((request) => part(bytes, request), async (url, asked) => {
    const source = await openUrl(`${url}/m.gguf`);
    for (
      const [offset, length] of [
        [0, 10],
        [1_048_570, 20],
        [3_000_000, 2_000_000],
        [999_999, 3_000_000],
        [4_999_999, 1],
        [5, 0],
      ] as const
    ) {
      assertEquals(await source.read(offset, length), bytes.slice(offset, offset + length));
    }
    const fetched = asked.map(({ range }) => range);
    assertEquals(new Set(fetched).size, fetched.length);
    assertEquals(source.received, 5_000_000);
    await assertRejects(() => source.read(4_999_999, 2), GgufError, "are not in the file");
    await assertRejects(() => source.read(-1, 2), GgufError, "are not in the file");
  });
});

Deno.test("openUrl() sends headers, and keeps secrets out of messages", async () => {
  await serving(
    (request) =>
      request.headers.get("authorization") === "Bearer t"
        ? part(MODEL, request)
        : new Response("no", { status: 401 }),
    async (url) => {
      await openUrl(`${url}/m.gguf`, { headers: { authorization: "Bearer t" } });
      const error = await assertRejects(() => openUrl(`${url}/a/m.gguf?sig=secret`), GgufError);
      assertEquals(
        error.message,
        `${url}/a/m.gguf: the server answers 401 Unauthorized: it wants a token, or the address has expired (at byte 0)`,
      );
    },
  );
});

Deno.test("openUrl() tries again what may pass", async (t) => {
  const faults: [string, Serve][] = [
    ["503", () => new Response("", { status: 503 })],
    ["429", () => new Response("", { status: 429, headers: { "retry-after": "0" } })],
    ["a connection that ends early", (request) => {
      const full = part(MODEL, request);
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(MODEL.slice(0, 100));
          controller.close();
        },
      });
      return new Response(body, full);
    }],
  ];
  for (const [what, fault] of faults) {
    await t.step(what, async () => {
      await serving(
        (request, asked) => asked.length < 4 ? fault(request, asked) : part(MODEL, request),
        async (url, asked) => {
          const { header } = await readModel(`${url}/m.gguf`, FAST);
          assertEquals([header.architecture, asked.length], ["llama", 4]);
        },
      );
      await serving(fault, async (url, asked) => {
        await assertRejects(() => openUrl(`${url}/m.gguf`, FAST), GgufError, "4 times in a row");
        assertEquals(asked.length, 4);
      });
    });
  }
  await t.step("a server that is not there", async () => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    listener.close();
    await assertRejects(
      () => openUrl(`http://127.0.0.1:${port}/m.gguf`, FAST),
      GgufError,
      "the connection failed",
    );
  });
});

const WRONG: [what: string, serve: Serve, message: string][] = [
  ["404", () => new Response("", { status: 404 }), "404 Not Found: there is no such file"],
  ["403", () => new Response("", { status: 403 }), "403 Forbidden: it wants a token"],
  ["500 MB where a part was asked for", () => {
    const body = new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(65536)) });
    return new Response(body, { headers: { "content-length": "500000000" } });
  }, "the whole file of 500000000 bytes where a part was asked for; download it"],
  [
    "a page",
    () => new Response("<html>", { headers: { "content-type": "text/html" } }),
    "HTML page",
  ],
  ["a part without a size", () =>
    new Response(MODEL.slice(0, 9), {
      status: 206,
      headers: { "content-range": "bytes 0-8/*" },
    }), "does not say how large the file is"],
  ["another part", () =>
    new Response(MODEL.slice(5, 9), {
      status: 206,
      headers: { "content-range": "bytes 5-8/100" },
    }), 'answers with "bytes 5-8/100", not with bytes from 0'],
  [
    "a part without a name",
    () => new Response("x", { status: 206 }),
    "a part that it does not name",
  ],
  ["a size beyond all limits", () =>
    new Response("x", {
      status: 206,
      headers: { "content-range": "bytes 0-0/99999999999999999999" },
    }), "its size is 99999999999999999999 bytes"],
  ["more than it announced", (request) => {
    const { headers } = part(MODEL, request);
    return new Response(new Uint8Array(MODEL.length + 1), { status: 206, headers });
  }, "the server sent more than"],
];

for (const [what, serve, message] of WRONG) {
  Deno.test(`openUrl() refuses ${what}`, async () => {
    await serving(serve, async (url, asked) => {
      const error = await assertRejects(() => openUrl(`${url}/m.gguf`, FAST), GgufError);
      assertStringIncludes(error.message, message);
      assertEquals([error.file, asked.length], [`${url}/m.gguf`, 1]);
    });
  });
}

Deno.test("openUrl() takes a small file from a server that ignores ranges", async () => {
  await serving(() => new Response(MODEL), async (url, asked) => {
    assertEquals((await readModel(`${url}/m.gguf`)).header.size, MODEL.length);
    assertEquals(asked.length, 1);
  });
});

Deno.test("openUrl() takes an empty file for what it is", async () => {
  const empty = () => new Response("", { status: 416, headers: { "content-range": "bytes */0" } });
  await serving(empty, async (url) => {
    await assertRejects(() => readModel(`${url}/m.gguf`), GgufError, "the file is empty");
  });
});

Deno.test("openUrl() refuses a file that changes while it is read", async (t) => {
  const bytes = new Uint8Array(4_000_000);
  const changes: [string, Serve, string][] = [
    [
      "ETag",
      (request, asked) => part(bytes, request, { etag: asked.length > 1 ? '"new"' : '"old"' }),
      'ETag "new", "old" before',
    ],
    [
      "size",
      (request, asked) => part(asked.length > 1 ? bytes.slice(0, 3_000_000) : bytes, request),
      "3000000 bytes, 4000000 before",
    ],
  ];
  for (const [what, serve, message] of changes) {
    await t.step(what, async () => {
      await serving(serve, async (url) => {
        const source = await openUrl(`${url}/m.gguf`);
        await assertRejects(() => source.read(2_000_000, 5), GgufError, message);
      });
    });
  }
});

Deno.test("openUrl() stops by a signal, also while it waits", async () => {
  const stop = new AbortController();
  const serve = () => {
    setTimeout(() => stop.abort(new Error("enough")), 10);
    return new Response("", { status: 503, headers: { "retry-after": "3600" } });
  };
  await serving(serve, async (url, asked) => {
    await assertRejects(
      () => openUrl(`${url}/m.gguf`, { signal: stop.signal }),
      Error,
      "enough",
    );
    assertEquals(asked.length, 1);
  });
});

Deno.test("openUrl() refuses what no server has", async () => {
  await assertRejects(() => openUrl("ftp://a/b"), TypeError, "http: or https:");
  await assertRejects(() => openUrl("no"), TypeError);
});

Deno.test("readModel() reads all shards from a server, and names one that is missing", async () => {
  const shard = (no: number, tensors: TestTensor[]) => {
    const keys = no === 0 ? llamaFile().keys! : [];
    return writeGguf({
      keys: [
        ...keys,
        { key: "split.no", type: "uint16", value: no },
        { key: "split.count", type: "uint16", value: 2 },
        plainKey("split.tensors.count", 2),
      ],
      tensors,
    });
  };
  const files: Record<string, Uint8Array<ArrayBuffer>> = {
    "/m-00001-of-00002.gguf": shard(0, [{ name: "a", shape: [32] }]),
    "/m-00002-of-00002.gguf": shard(1, [{ name: "b", shape: [32] }]),
  };
  const serve: Serve = (request) => {
    const bytes = files[new URL(request.url).pathname];
    return bytes ? part(bytes, request) : new Response("", { status: 404 });
  };
  await serving(serve, async (url) => {
    const { files: named, header } = await readModel(`${url}/m-00002-of-00002.gguf?download=true`);
    assertEquals(named.map((name) => name.slice(url.length)), [
      "/m-00001-of-00002.gguf?download=true",
      "/m-00002-of-00002.gguf?download=true",
    ]);
    assertEquals(header.tensors.map(({ name, shard }) => [name, shard]), [["a", 0], ["b", 1]]);
    delete files["/m-00002-of-00002.gguf"];
    const error = await assertRejects(() => readModel(`${url}/m-00001-of-00002.gguf`), GgufError);
    assertStringIncludes(error.message, "/m-00002-of-00002.gguf: the server answers 404 Not Found");
  });
});
