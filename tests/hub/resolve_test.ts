// Names become files: on a hub of our own, without fetching more than is read.

import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { readHeader } from "@rys/edge/gguf";
import { HubError, openRemote, resolveModel } from "../../src/hub/mod.ts";
import { plainKey, writeGguf } from "../../src/gguf/_testing.ts";
import { type TestHub, type TestRepo, TOKEN, withHub } from "./_hub.ts";

const MODEL = writeGguf({
  keys: [plainKey("general.architecture", "llama"), plainKey("llama.block_count", 3)],
  tensors: [{ name: "t", shape: [32, 2000] }],
});

const repo = (paths: string[], more: Partial<TestRepo> = {}): TestRepo => ({
  files: Object.fromEntries(paths.map((path) => [path, MODEL])),
  ...more,
});

const remote = async (name: string, hub: TestHub, cacheDir: string, token?: string) => {
  const model = await resolveModel(name, {
    endpoint: hub.endpoint,
    cacheDir,
    offline: false,
    token: token ?? "",
  });
  if (model.kind !== "remote") throw new Error("it is on this machine");
  return model;
};

const failure = async (name: string, hub: TestHub, cacheDir: string, token?: string) =>
  await assertRejects(() => remote(name, hub, cacheDir, token), HubError);

Deno.test("resolveModel() finds a repository's model by quantisation, file and default", async () => {
  const files = [
    "README.md",
    "mmproj-m-Q4_K_M.gguf",
    "m-Q8_0.gguf",
    "m-Q4_K_M.gguf",
    "b/m-F16.gguf",
  ];
  await withHub({ "o/r": repo(files) }, async (hub, cache) => {
    const chosen = async (name: string) => (await remote(name, hub, cache)).repository!.paths;
    assertEquals(await chosen("hf:o/r"), ["m-Q4_K_M.gguf"]);
    assertEquals(await chosen("hf:o/r:q8_0"), ["m-Q8_0.gguf"]);
    assertEquals(await chosen("hf:o/r/b/m-F16.gguf"), ["b/m-F16.gguf"]);
    assertEquals(await chosen(`${hub.endpoint}/o/r/blob/main/m-Q8_0.gguf`), ["m-Q8_0.gguf"]);
    const commit = hub.commit("o/r");
    assertEquals(await chosen(`hf:o/r@${commit}:Q8_0`), ["m-Q8_0.gguf"]);
    const error = await failure("hf:o/r:Q2_K", hub, cache);
    assertEquals(error.kind, "not_found");
    assertStringIncludes(error.message, "b/m-F16.gguf, m-Q4_K_M.gguf, m-Q8_0.gguf");
  });
});

Deno.test("resolveModel() reads listings of several pages", async () => {
  const files = Array.from({ length: 25 }, (_, i) => `m${String(i).padStart(2, "0")}-Q5_0.gguf`);
  await withHub({ "o/r": repo([...files, "z-Q8_0.gguf"]) }, async (hub, cache) => {
    hub.faults.pageSize = 4;
    assertEquals((await remote("hf:o/r", hub, cache)).files.map(({ name }) => name), [
      "z-Q8_0.gguf",
    ]);
  });
});

Deno.test("resolveModel() takes all shards, and says which are missing", async () => {
  const shard = (n: number) => `Q8_0/m-Q8_0-0000${n}-of-00003.gguf`;
  await withHub({
    "o/r": repo([shard(2), shard(1), shard(3)]),
    "o/part": repo([shard(1), shard(3)]),
  }, async (hub, cache) => {
    for (const name of ["hf:o/r:Q8_0", `hf:o/r/${shard(3)}`]) {
      const { files, size, repository } = await remote(name, hub, cache);
      assertEquals(repository!.paths, [1, 2, 3].map(shard));
      assertEquals([files.length, size], [3, 3 * MODEL.length]);
    }
    const error = await failure("hf:o/part", hub, cache);
    assertStringIncludes(error.message, `1 of 3 shards are not in o/part: ${shard(2)}`);
  });
});

Deno.test("openRemote() reads a header, and follows an address that has expired", async () => {
  await withHub({ "o/r": repo(["m-Q8_0.gguf"]) }, async (hub, cache) => {
    hub.faults.signatureUses = 1;
    const { files: [file] } = await remote("hf:o/r", hub, cache);
    const source = openRemote(file!, { endpoint: hub.endpoint, cacheDir: cache, token: "" });
    const header = await readHeader(source);
    assertEquals([header.architecture, header.size], ["llama", MODEL.length]);
    const before = hub.downloads.length;
    assertEquals(await source.read(100, 50), MODEL.subarray(100, 150));
    assertEquals(await source.read(MODEL.length - 7, 7), MODEL.subarray(-7));
    // Each read is one request for just these bytes, and one more where the address had expired.
    assertEquals(
      hub.downloads.slice(before).map(({ range }) => range),
      [
        "bytes=100-149",
        "bytes=100-149",
        ...Array(2).fill(`bytes=${MODEL.length - 7}-${MODEL.length - 1}`),
      ],
    );
  });
});

Deno.test("openRemote() refuses a file that has changed, and a server that sends no parts", async () => {
  await withHub({ "o/r": repo(["m-Q8_0.gguf"]) }, async (hub, cache) => {
    const options = { endpoint: hub.endpoint, cacheDir: cache, token: "" };
    const url = `${hub.bytes}/plain/o/r/m-Q8_0.gguf`;
    const { files: [file] } = await remote(url, hub, cache);
    assertEquals([file!.size, file!.hash], [MODEL.length, undefined]);
    const source = openRemote(file!, options);
    assertEquals(await source.read(0, 4), MODEL.subarray(0, 4));
    hub.faults.ignoreRanges = true;
    assertEquals(await source.read(0, 9), MODEL.subarray(0, 9));
    await assertRejects(async () => await source.read(9, 9), HubError, "cannot send parts");
    hub.faults.ignoreRanges = false;
    const other = MODEL.slice();
    other[200]! ^= 1;
    hub.repos["o/r"]!.files["m-Q8_0.gguf"] = other;
    const error = await assertRejects(
      async () => await source.read(0, 4),
      HubError,
      "its etag was",
    );
    assertEquals(error.kind, "changed");
  });
});

Deno.test("the token goes to the hub, and to no other host", async () => {
  await withHub({ "o/r": repo(["m-Q8_0.gguf"], { access: "gated" }) }, async (hub, cache) => {
    const { files: [file] } = await remote("hf:o/r", hub, cache, TOKEN);
    const options = { endpoint: hub.endpoint, cacheDir: cache, token: TOKEN };
    await openRemote(file!, options).read(0, 4);
    assertEquals(hub.downloads.length, 1);
    assertEquals(
      [...new Set(hub.seen.map(({ server, authorization }) => `${server} ${authorization}`))],
      [`hub Bearer ${TOKEN}`, "bytes null"],
    );
    // Where the hub's own API leads elsewhere, it is not sent there either.
    hub.faults.redirect["/api/models/o/r/revision/main"] = `${hub.other}/api/models/o/r`;
    await failure("hf:o/r", hub, cache, TOKEN);
    const other = hub.seen.filter(({ server }) => server === "other");
    assertEquals(other.map(({ authorization }) => authorization), [null]);
  });
});

Deno.test("resolveModel() says what helps where the hub refuses", async () => {
  await withHub({
    "o/gated": repo(["m-Q8_0.gguf"], { access: "gated" }),
    "o/private": repo(["m-Q8_0.gguf"], { access: "private" }),
    "o/empty": repo(["README.md"]),
    "o/r": repo(["m-Q8_0.gguf"]),
  }, async (hub, cache) => {
    const wrong = `hf_${"w".repeat(34)}`;
    const cases: [name: string, token: string | undefined, kind: string, words: string[]][] = [
      ["hf:o/private", undefined, "denied", ["no public repository o/private", "HF_TOKEN"]],
      ["hf:o/none", TOKEN, "not_found", ["there is no repository o/none, or the token"]],
      ["hf:o/r", wrong, "denied", ["does not accept the token", "/settings/tokens"]],
      ["hf:o/r@v2", undefined, "not_found", ['has no revision "v2"']],
      ["hf:o/r/x.gguf", undefined, "not_found", ['has no file "x.gguf"', "m-Q8_0.gguf"]],
      ["hf:o/empty", undefined, "not_found", ["no GGUF files at all"]],
    ];
    for (const [name, token, kind, words] of cases) {
      const error = await failure(name, hub, cache, token);
      assertEquals(error.kind, kind, error.message);
      for (const word of [`${name}: `, ...words]) assertStringIncludes(error.message, word);
    }
    // A gated repository lists its files, but sends none.
    const { files: [file] } = await remote("hf:o/gated", hub, cache);
    const options = { endpoint: hub.endpoint, cacheDir: cache, token: "" };
    const error = await assertRejects(
      async () => await openRemote(file!, options).read(0, 4),
      HubError,
      `accept their terms at ${hub.endpoint}/o/gated`,
    );
    assertStringIncludes(error.message, "HF_TOKEN");
  });
});

Deno.test("resolveModel() asks a busy hub again", async () => {
  await withHub({ "o/r": repo(["m-Q8_0.gguf"]) }, async (hub, cache) => {
    hub.faults.statuses = [503, 429, 200, 500];
    assertEquals((await remote("hf:o/r", hub, cache)).files.length, 1);
    hub.faults.statuses = Array(9).fill(503);
    const error = await failure("hf:o/r", hub, cache);
    assertEquals(error.kind, "network");
    assertStringIncludes(error.message, "answers 503");
  });
});

Deno.test("resolveModel() with offline reaches nothing", async () => {
  await withHub({ "o/r": repo(["m-Q8_0.gguf"]) }, async (hub, cache) => {
    const options = { endpoint: hub.endpoint, cacheDir: cache, offline: true };
    const error = await assertRejects(() => resolveModel("hf:o/r", options), HubError);
    assertEquals([error.kind, hub.seen], ["offline", []]);
    assertStringIncludes(error.message, "pull hf:o/r");
  });
});
