import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { EngineError, loadModel } from "../../mod.ts";
import { DEMO } from "./_engine.ts";

// Values at the edge of what is allowed, each of which once ended the whole instance or lost an answer.

Deno.test("createContext() works with the smallest sizes", async () => {
  await using model = await loadModel(DEMO);
  for (
    const options of [
      { nBatch: 1 },
      { nCtx: 1 },
      { nBatch: 1, nParallel: 1 },
      { nBatch: 2, nParallel: 4 },
      { nBatch: 16, nParallel: 32 },
      { threads: 512 },
    ]
  ) {
    await using context = await model.createContext(options);
    const { nGenerated } = await context.generate("Once", { maxTokens: 2, temperature: 0 })
      .completion();
    assertEquals(nGenerated, 2, JSON.stringify(options));
  }
});

Deno.test("generate() refuses what would change the form of its answer", async () => {
  await using model = await loadModel(DEMO);
  await using context = await model.createContext({ nCtx: 256 });
  for (
    const extra of [
      { stream: false },
      { n: 2 },
      { prompt: ["a", "b"] },
      { response_fields: ["content"] },
      { return_progress: true },
      { grammar_triggers: [{ type: 99, value: "x" }] },
    ]
  ) {
    assertThrows(() => context.generate("Once", { extra }), TypeError, "extra.");
  }
  assertThrows(() => context.generate("Once", { stop: "" }), TypeError, "stop");
  assertThrows(() => context.generate("Once", { repeatLastN: 2 ** 31 - 1 }), RangeError);
  const grammar = `root ::= ${"(".repeat(30_000)}"a"${")".repeat(30_000)}`;
  await assertRejects(
    () => context.generate("Once", { grammar }).text(),
    EngineError,
    "nested deeper",
  );
  let jsonSchema: Record<string, unknown> = { type: "string" };
  for (let i = 0; i < 120; i++) jsonSchema = { type: "array", items: jsonSchema };
  const shallow = context.generate("Once", { jsonSchema, maxTokens: 2 });
  assert((await shallow.completion()).nGenerated > 0);
  for (let i = 0; i < 3000; i++) jsonSchema = { type: "array", items: jsonSchema };
  await assertRejects(
    () => context.generate("Once", { jsonSchema }).text(),
    EngineError,
    "nested deeper",
  );
  assert((await context.generate("Once", { maxTokens: 2 }).text()).length > 0);
});

Deno.test("a missing adapter, draft model or prompt is named", async () => {
  await using model = await loadModel(DEMO);
  await assertRejects(
    () => model.createContext({ lora: [{ path: "/no/such.gguf" }] }),
    EngineError,
    "/no/such.gguf: there is no such file",
  );
  await assertRejects(
    () => model.createContext({ lora: [null as unknown as { path: string }] }),
    TypeError,
    "lora[0]",
  );
  await assertRejects(() => model.logits(5 as unknown as string), TypeError, "The prompt must be");
});

Deno.test("dispose() ends what does not end by itself", async () => {
  const model = await loadModel(DEMO);
  const loop =
    "{% for i in range(100000000) %}{% for j in range(100000000) %}{% endfor %}{% endfor %}";
  const creating = model.createContext({ chatTemplate: loop });
  creating.catch(() => {});
  await model.dispose();
  await assertRejects(() => creating, EngineError);
});
