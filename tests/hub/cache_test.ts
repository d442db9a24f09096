// The cache as it is listed, checked and cleaned: also what is only partly there, and what is no symbolic link.

import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { fetchModel, HubError } from "../../src/hub/mod.ts";
import { findModels, listModels, verifyFile } from "../../src/hub/cached_models.ts";
import { removeModels } from "../../src/hub/remove_models.ts";
import { noise, sha256, type TestHub, withHub } from "./_hub.ts";

const BYTES = noise(5_000_001);
const shard = (n: number) => `m-0000${n}-of-00002.gguf`;
const REPO = () => ({ "o/r": { files: { "m-Q8_0.gguf": BYTES } } });
const SPLIT = () => ({ "o/r": { files: { [shard(1)]: BYTES.slice(9), [shard(2)]: BYTES } } });
const options = (hub: TestHub, cacheDir: string) => ({
  endpoint: hub.endpoint,
  cacheDir,
  token: "",
  offline: false,
});

/** Fetches until so many bytes of so many files are there. */
async function fetchPart(
  hub: TestHub,
  cacheDir: string,
  name: string,
  number: number,
): Promise<void> {
  const stop = new AbortController();
  const onProgress = (now: { bytes: number; number: number }) => {
    if (now.number === number && now.bytes > 1_000_000) stop.abort("enough");
  };
  const failed = await fetchModel(name, {
    ...options(hub, cacheDir),
    signal: stop.signal,
    onProgress,
  }).catch((error) => error);
  assertEquals(failed, "enough");
}

/** All files below a folder. */
async function filesOf(folder: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) {
      found.push(...(await filesOf(`${folder}/${name}`)).map((it) => `${name}/${it}`));
    } else found.push(name);
  }
  return found.sort();
}

const gone = (path: string) => Deno.lstat(path).then(() => false, () => true);

Deno.test("a download that was not finished is listed, and removed without a trace", async () => {
  await withHub(REPO(), async (hub, cacheDir) => {
    for (const name of ["hf:o/r/m-Q8_0.gguf", `${hub.bytes}/plain/o/r/m-Q8_0.gguf`]) {
      await fetchPart(hub, cacheDir, name, 1);
      const [entry, ...others] = await listModels({ cacheDir });
      assertEquals(others, []);
      const { partial: [part], ...rest } = entry!;
      assertEquals([rest.name, rest.quant, rest.files, rest.complete], [name, "Q8_0", [], false]);
      assertEquals([part!.size, part!.bytes], [BYTES.length, rest.bytes]);
      const range = JSON.parse(await Deno.readTextFile(`${part!.target}.rys-part.json`)).done;
      assertEquals(
        part!.bytes,
        range.reduce((sum: number, [from, to]: [number, number]) => sum + to - from, 0),
      );
      assertEquals((await removeModels(name, { cacheDir })).length, 1);
      assertEquals(await filesOf(cacheDir), []);
    }
  });
});

Deno.test("of a split model, the shards that are there and the one that is not yet are one model", async () => {
  await withHub(SPLIT(), async (hub, cacheDir) => {
    await fetchPart(hub, cacheDir, "hf:o/r", 2);
    const [entry, ...others] = await listModels({ cacheDir });
    assertEquals(others, []);
    assertEquals([entry!.files.length, entry!.partial.length, entry!.complete], [1, 1, false]);
    assertEquals(entry!.bytes, BYTES.length - 9 + entry!.partial[0]!.bytes);
    await fetchModel("hf:o/r", options(hub, cacheDir));
    const [whole] = await findModels("hf:o/r", { cacheDir });
    assertEquals([whole!.files.length, whole!.partial, whole!.complete], [2, [], true]);
    await removeModels("hf:o/r", { cacheDir });
    assertEquals(await filesOf(cacheDir), []);
  });
});

Deno.test("removeModels() removes locks and notes, and leaves other files of the repository", async () => {
  const files = { "m-Q8_0.gguf": BYTES, "m-Q4_0.gguf": BYTES.slice(1), "copy-Q6_K.gguf": BYTES };
  await withHub({ "o/r": { files } }, async (hub, cacheDir) => {
    for (const quant of ["Q8_0", "Q4_0", "Q6_K"]) {
      await fetchModel(`hf:o/r:${quant}`, options(hub, cacheDir));
    }
    const config = `${cacheDir}/models--o--r/snapshots/${hub.commit("o/r")}/config.json`;
    await Deno.writeTextFile(config, "{}");
    await removeModels("hf:o/r:Q4_0", { cacheDir });
    await removeModels("hf:o/r:Q8_0", { cacheDir }); // its bytes are those of Q6_K as well
    const hex = sha256(BYTES);
    const left = await filesOf(cacheDir);
    assertEquals(left.filter((path) => path.startsWith(".locks")), [
      `.locks/models--o--r/${hex}.lock`,
      `.locks/models--o--r/${hex}.rys-checked`,
    ]);
    assertEquals(
      (await listModels({ cacheDir })).map(({ name }) => name),
      ["hf:o/r/copy-Q6_K.gguf"],
    );
    await removeModels("hf:o/r", { cacheDir });
    assertEquals((await filesOf(cacheDir)).map((path) => path.replace(/^.*\//, "")), [
      "main",
      "config.json",
    ]);
  });
});

Deno.test("removeModels() removes nothing that is being fetched", async () => {
  await withHub(REPO(), async (hub, cacheDir) => {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    await fetchPart(hub, cacheDir, "hf:o/r", 1);
    hub.faults.hold = { after: 1000, until: held.promise };
    const fetching = fetchModel("hf:o/r", {
      ...options(hub, cacheDir),
      onProgress: ({ doing }) => doing === "fetching" && begun.resolve(),
    });
    try {
      await begun.promise;
      const error = await assertRejects(() => removeModels("hf:o/r", { cacheDir }), HubError);
      assertEquals(error.kind, "busy");
      assertStringIncludes(error.message, "hf:o/r/m-Q8_0.gguf: another process is fetching it");
    } finally {
      hub.faults.hold = undefined;
      held.resolve();
    }
    assertEquals(sha256(await Deno.readFile((await fetching)[0]!)), sha256(BYTES));
  });
});

for (const kind of ["a hard link", "a copy", "a copy without a blob"]) {
  Deno.test(`a model of which the snapshot has ${kind} is checked, verified and removed`, async () => {
    await withHub(REPO(), async (hub, cacheDir) => {
      const fetchAgain = () => fetchModel("hf:o/r", options(hub, cacheDir));
      const [path] = await fetchAgain();
      const blob = `${cacheDir}/models--o--r/blobs/${sha256(BYTES)}`;
      const state = async () => {
        const [{ files: [file] }] = await findModels("hf:o/r", { cacheDir }) as [
          Awaited<ReturnType<typeof listModels>>[number],
        ];
        return await verifyFile(file!);
      };
      await Deno.remove(path!);
      if (kind === "a hard link") await Deno.link(blob, path!);
      else await Deno.copyFile(blob, path!);
      if (kind === "a copy without a blob") await Deno.remove(blob);
      // Another program made the copy: its hash is known once the hub was asked.
      assertEquals(await state(), kind === "a hard link" ? true : undefined);
      const { length } = hub.downloads;
      assertEquals(await fetchAgain(), [path]);
      assertEquals([await state(), hub.downloads.length], [true, length]);
      const damaged = BYTES.slice();
      damaged[77]! ^= 1;
      await Deno.writeFile(path!, damaged);
      await Deno.utime(path!, 1, 1);
      assertEquals(await state(), false);
      for (const offline of [false, true]) {
        await assertRejects(
          () => fetchModel("hf:o/r", { ...options(hub, cacheDir), offline }),
          HubError,
          "the copy in the cache is damaged",
        );
      }
      await removeModels("hf:o/r", { cacheDir });
      assertEquals([await gone(path!), await gone(blob)], [true, true]);
      assertEquals(await filesOf(cacheDir), []);
    });
  });
}

Deno.test("a copy that was not finished is made again from its blob", async () => {
  await withHub(REPO(), async (hub, cacheDir) => {
    const [path] = await fetchModel("hf:o/r", options(hub, cacheDir));
    await Deno.remove(path!);
    await Deno.writeFile(path!, BYTES.subarray(0, 1000));
    const { length } = hub.downloads;
    await fetchModel("hf:o/r", options(hub, cacheDir));
    assertEquals(sha256(await Deno.readFile(path!)), sha256(BYTES));
    assertEquals(hub.downloads.length, length);
  });
});
