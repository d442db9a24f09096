import { assert, assertEquals, assertRejects } from "@std/assert";
import { EngineError, loadModel } from "@rys/edge";
import { EngineClient } from "../../src/engine/client.ts";
import { child, DEMO, greedy, SMALL, STORY } from "./_engine.ts";

const DIST = new URL("../../wasm/dist/", import.meta.url);

// Not a test's own threads: those of an instance that died end half a second later.
const test = (name: string, fn: () => Promise<void>) =>
  Deno.test({ name, fn, sanitizeOps: false, sanitizeResources: false });

test("a failed assertion in C++ ends the instance, not the process", async () => {
  const client = await EngineClient.start({ dist: DIST, verbosity: 1, threads: 2 });
  const waiting = client.call({ fn: "model_call", model: 1, call: { do: "tokenize" } })
    .then(() => "done", (error) => error.message);
  assertEquals(await waiting, "model 1 is not open");
  const error = await assertRejects(() => client.call({ fn: "debug_abort" }), EngineError);
  assert(error.fatal);
  assert(error.message.includes("asked for"), error.message);
  // Every later call says so at once.
  const later = await assertRejects(() => client.call({ fn: "model_free", model: 1 }), EngineError);
  assertEquals([later.fatal, later.message], [true, error.message]);
  await assertRejects(() => client.heapBytes(), EngineError, "gone");
  await client.close();
  await client.close();
});

test("an abort ends what runs beside it with an error, and a new model can be loaded", async () => {
  const client = await EngineClient.start({ dist: DIST, verbosity: 1, threads: 4 });
  const path = client.addFiles([{ size: Deno.statSync(DEMO).size, path: DEMO }]);
  const { handle: model } = await client.call({
    fn: "model_load",
    options: { path, args: [] },
    cancel: 0,
  });
  const running = client.call({
    fn: "logits_eval",
    model,
    options: { args: ["-t", "1", "-b", "8", "-ub", "8", "-c", "2048"] },
    kind: 0,
    words: new Uint32Array(),
    tokens: new Int32Array(1500).fill(40),
    cancel: 0,
  }).then(() => undefined, (error) => error);
  client.call({ fn: "debug_abort" }).catch(() => {});
  const error = await running;
  assert(error instanceof EngineError && error.fatal, String(error));
  await client.close();
  await using next = await loadModel(DEMO);
  await using context = await next.createContext(SMALL);
  assert((await greedy(context, STORY, 2)).length > 0);
});

test("a C++ exception is an error of its call alone", async () => {
  const client = await EngineClient.start({ dist: DIST, verbosity: 1, threads: 2 });
  const cases: [Parameters<typeof client.call>[0], string][] = [
    [{ fn: "model_call", model: 99, call: { do: "tokenize", text: "x" } }, "model 99"],
    [{ fn: "model_load", options: { path: "/rys/file/77", args: [] }, cancel: 0 }, "77"],
    [
      { fn: "model_load", options: { path: "/rys/file/77", args: ["--nope"] }, cancel: 0 },
      "--nope",
    ],
    [{
      fn: "context_create",
      model: 99,
      options: { args: [] },
      kind: 0,
      words: new Uint32Array(),
    }, "model 99"],
    [{
      fn: "context_request",
      context: 5,
      method: "GET",
      path: "/health",
      query: "",
      body: new Uint8Array(),
      cancel: 0,
    }, "context 5"],
  ];
  for (const [call, part] of cases) {
    const error = await assertRejects(() => client.call(call), EngineError);
    assertEquals(error.fatal, false, error.message);
    assert(error.message.includes(part), error.message);
  }
  // What is freed twice, or never was, is free.
  await client.call({ fn: "model_free", model: 99 });
  await client.call({ fn: "context_free", context: 99 });
  assert(await client.heapBytes() > 0);
  await client.close();
});

test("a process whose instance died ends by itself", async () => {
  const { code, stdout } = await child(
    `import { EngineClient } from "${new URL("../../src/engine/client.ts", import.meta.url)}";
     const client = await EngineClient.start({ dist: new URL("${DIST}"), verbosity: 1, threads: 3 });
     await client.call({ fn: "debug_abort" }).catch((error) => console.log(error.fatal));`,
  );
  assertEquals([code, stdout], [0, "true\n"]);
});

Deno.test({
  name: "an instance that died leaves no threads, whatever they did, and with them no memory",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const { code, stdout } = await child(
      `import { EngineClient } from "${new URL("../../src/engine/client.ts", import.meta.url)}";
       const name = (id) => {
         try {
           return Deno.readTextFileSync("/proc/self/task/" + id + "/comm");
         } catch {
           return ""; // it has just ended
         }
       };
       const workers = () => [...Deno.readDirSync("/proc/self/task")]
         .filter(({ name: id }) => name(id).startsWith("worker-")).length;
       const file = { size: ${Deno.statSync(DEMO).size}, path: "${DEMO}" };
       for (let i = 0; i < 4; i++) {
         const client = await EngineClient.start({
           dist: new URL("${DIST}"),
           verbosity: 1,
           threads: 4,
         });
         const path = client.addFiles([file]);
         const { handle: model } = await client.call({
           fn: "model_load",
           options: { path, args: [] },
           cancel: 0,
         });
         const running = client.call({
           fn: "logits_eval",
           model,
           options: { args: ["-t", "2", "-b", "8", "-ub", "8", "-c", "20000"] },
           kind: 0,
           words: new Uint32Array(),
           tokens: new Int32Array(20000).fill(40),
           cancel: 0,
         }).catch(() => {});
         while (workers() === 0) await new Promise((resolve) => setTimeout(resolve, 10));
         console.log(true);
         client.call({ fn: "debug_abort" }).catch(() => {});
         await running;
       }
       for (const end = Date.now() + 200_000; workers() > 0 && Date.now() < end;) {
         await new Promise((resolve) => setTimeout(resolve, 100));
       }
       console.log(workers());
       Deno.exit();`,
    );
    assertEquals([code, stdout], [0, "true\ntrue\ntrue\ntrue\n0\n"]);
  },
});
