// Whole files from a hub that misbehaves: every way ends with the right bytes or an error that says what helps.

import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { fetchModel, HubError } from "../../src/hub/mod.ts";
import { checkRoom } from "../../src/hub/disk_error.ts";
import { gitSha1, noise, sha256, type TestHub, withHub } from "./_hub.ts";

const BYTES = noise(9_000_001);
const ONE = () => ({ "o/r": { files: { "m-Q8_0.gguf": BYTES } } });
const fetching = (hub: TestHub, cacheDir: string, name = "hf:o/r", more = {}) =>
  fetchModel(name, { endpoint: hub.endpoint, cacheDir, token: "", offline: false, ...more });
const same = async (path: string, bytes = BYTES) =>
  assertEquals(sha256(await Deno.readFile(path)), sha256(bytes));

Deno.test("fetchModel() fetches in parts, into the hub's layout, and once", async () => {
  await withHub(ONE(), async (hub, cache) => {
    const [path] = await fetching(hub, cache);
    await same(path!);
    const folder = `${cache}/models--o--r`;
    assertEquals(path, `${folder}/snapshots/${hub.commit("o/r")}/m-Q8_0.gguf`);
    assertEquals(await Deno.readLink(path!), `../../blobs/${sha256(BYTES)}`);
    assertEquals(await Deno.readTextFile(`${folder}/refs/main`), hub.commit("o/r"));
    assertEquals([...Deno.readDirSync(`${folder}/blobs`)].map(({ name }) => name), [sha256(BYTES)]);
    const { length } = hub.downloads;
    assert(length > 4, `${length} requests`);
    assertEquals(await fetching(hub, cache), [path]);
    assertEquals(hub.downloads.length, length);
    assertEquals(await fetching(hub, cache, "hf:o/r", { offline: true }), [path]);
  });
});

Deno.test("fetchModel() goes on after broken connections, busy servers and expired addresses", async () => {
  await withHub(ONE(), async (hub, cache) => {
    hub.faults.cutAfter = [0, 100_000, 50_000, 1, 700_000];
    hub.faults.signatureUses = 2;
    hub.faults.statuses = [200, 503, 200, 200, 429];
    await same((await fetching(hub, cache))[0]!);
  });
});

Deno.test("fetchModel() takes whole files from a server that knows no parts, and refuses wrong ones", async () => {
  await withHub(ONE(), async (hub, cache) => {
    hub.faults.ignoreRanges = true;
    hub.faults.cutAfter = [8_000_000];
    await same((await fetching(hub, cache))[0]!);
  });
  await withHub(ONE(), async (hub, cache) => {
    hub.faults.shift = 1;
    const error = await assertRejects(
      () => fetching(hub, cache, "hf:o/r", { retryMs: 1 }),
      HubError,
      "asked for bytes from",
    );
    assertEquals(error.kind, "network");
  });
});

Deno.test("fetchModel() refuses bytes that are not the hub's, and keeps none of them", async () => {
  await withHub(ONE(), async (hub, cache) => {
    hub.faults.corrupt = true;
    const error = await assertRejects(() => fetching(hub, cache), HubError, "is damaged");
    assertEquals(error.kind, "checksum");
    assertEquals([...Deno.readDirSync(`${cache}/models--o--r/blobs`)], []);
    hub.faults.corrupt = false;
    const [path] = await fetching(hub, cache);
    // A copy that is damaged in the cache is found before it is used.
    const copy = BYTES.slice();
    copy[77]! ^= 1;
    const real = await Deno.realPath(path!);
    await Deno.writeFile(real, copy);
    await Deno.utime(real, 1, 1);
    await assertRejects(() => fetching(hub, cache), HubError, "the copy in the cache is damaged");
  });
});

Deno.test("fetchModel() is stopped by its signal, and goes on from there", async () => {
  await withHub(ONE(), async (hub, cache) => {
    const stop = new AbortController();
    hub.faults.hold = { after: 200_000, until: new Promise(() => {}) };
    const onProgress = ({ bytes }: { bytes: number }) => bytes > 1_000_000 && stop.abort("enough");
    const failed = await fetching(hub, cache, "hf:o/r", { signal: stop.signal, onProgress })
      .catch((error) => error);
    assertEquals(failed, "enough");
    hub.faults.hold = undefined;
    const before = hub.downloads.length;
    await same((await fetching(hub, cache))[0]!);
    const asked = hub.downloads.slice(before).reduce((sum, { range }) => {
      const [start, end] = range!.slice(6).split("-").map(Number);
      return sum + end! + 1 - start!;
    }, 0);
    assert(asked < BYTES.length - 1_000_000, `${asked} bytes`);
  });
});

Deno.test("fetchModel() shares one download among all who want the file", async () => {
  await withHub(ONE(), async (hub, cache) => {
    await Promise.all([1, 2, 3].map(() => fetching(hub, cache)));
    const ranges = hub.downloads.map(({ range }) => range);
    assertEquals(new Set(ranges).size, ranges.length);
  });
});

Deno.test("fetchModel() fetches URLs, all shards, and a file that changed anew", async () => {
  const shard = (n: number) => `m-0000${n}-of-00002.gguf`;
  const files = { [shard(1)]: BYTES.slice(0, 3_000_000), [shard(2)]: BYTES.slice(5) };
  await withHub({ "o/r": { files } }, async (hub, cache) => {
    const name = `${hub.bytes}/plain/o/r/${shard(1)}`;
    const paths = await fetching(hub, cache, name);
    for (const [i, path] of paths.entries()) await same(path, files[shard(i + 1)]!);
    assertEquals(paths.map((path) => path.replace(/^.*\//, "")), [shard(1), shard(2)]);
    const { length } = hub.downloads;
    assertEquals(await fetching(hub, cache, name), paths);
    assertEquals(hub.downloads.length, length + 2); // asked whether they changed
    const other = noise(2_000_000, 9);
    hub.repos["o/r"]!.files[shard(1)] = other;
    await same((await fetching(hub, cache, name))[0]!, other);
  });
});

Deno.test("fetchModel() begins again with a file whose etag changes in the middle", async () => {
  await withHub(ONE(), async (hub, cache) => {
    const other = noise(BYTES.length, 7);
    const notes: string[] = [];
    let changed = false;
    const onProgress = ({ bytes }: { bytes: number }) => {
      if (changed || bytes < 1_000_000) return;
      changed = true;
      hub.repos["o/r"]!.files["m-Q8_0.gguf"] = other;
    };
    const options = { onProgress, onNote: (line: string) => notes.push(line), connections: 2 };
    const name = `${hub.bytes}/plain/o/r/m-Q8_0.gguf`;
    const [path] = await fetching(hub, cache, name, options);
    await same(path!, other);
    assertEquals(notes.length, 1);
    assertStringIncludes(notes[0]!, "m-Q8_0.gguf has changed on the server: its etag was");
    assertEquals(await Deno.stat(`${path}.rys-part`).catch(() => "gone"), "gone");
  });
});

Deno.test("fetchModel() with a model that a disk has no room for writes nothing", async () => {
  await withHub(ONE(), async (hub, cache) => {
    const error = await assertRejects(() => checkRoom(cache, 2 ** 62), HubError);
    assertEquals(error.kind, "disk");
    assertMatch(
      error.message,
      /there is no room in .*: \d+ MiB are still to be fetched, and \d+ MiB/,
    );
    await checkRoom(cache, 1);
    // The hub says how large the file is, before the first byte.
    hub.faults.claim = 2 ** 52;
    const refused = await assertRejects(() => fetching(hub, cache), HubError, "there is no room");
    assertEquals([refused.kind, hub.downloads], ["disk", []]);
  });
});

Deno.test("fetchModel() checks small files by git's hash", async () => {
  const bytes = noise(5000);
  await withHub(
    { "o/r": { files: { "m.gguf": bytes }, small: ["m.gguf"] } },
    async (hub, cache) => {
      await same((await fetching(hub, cache))[0]!, bytes);
      assertEquals(
        (await Deno.stat(`${cache}/models--o--r/blobs/${gitSha1(bytes)}`)).size,
        bytes.length,
      );
    },
  );
});

Deno.test({
  name: "fetchModel() says that the disk is full, and goes on when there is room",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await withHub(ONE(), async (hub, cache) => {
      // /dev/full takes no byte, as a full disk does.
      const blobs = `${cache}/models--o--r/blobs`;
      const part = `${blobs}/${sha256(BYTES)}.rys-part`;
      await Deno.mkdir(blobs, { recursive: true });
      await Deno.symlink("/dev/full", part);
      const sidecar = { etag: sha256(BYTES), size: BYTES.length, done: [] };
      await Deno.writeTextFile(`${part}.json`, JSON.stringify(sidecar));
      const error = await assertRejects(() => fetching(hub, cache), HubError, "the disk is full");
      assertEquals(error.kind, "disk");
      assertStringIncludes(error.message, "what was fetched is kept");
      await Deno.remove(part);
      await same((await fetching(hub, cache))[0]!);
    });
  },
});
