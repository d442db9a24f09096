import { assert, assertEquals, assertRejects } from "@std/assert";
import { loadModel } from "@rys/edge";
import { readModel } from "@rys/edge/gguf";
import { DEMO, greedy, SMALL } from "../engine/_engine.ts";
import { runOracle } from "../oracle/run_oracle.ts";
import { type Quant, quantised, QUANTS } from "./quantised.ts";

/** A folder of its own with a copy of the demo model. */
async function folder() {
  const dir = await Deno.makeTempDir();
  const model = `${dir}/demo.gguf`;
  await Deno.copyFile(DEMO, model);
  return {
    dir,
    model,
    left: () => [...Deno.readDirSync(dir)].map(({ name }) => name).sort(),
    [Symbol.asyncDispose]: () => Deno.remove(dir, { recursive: true }),
  };
}

const types = async (path: string) =>
  Object.fromEntries(
    (await readModel(path)).header.tensors.map(({ name, type }) => [name, type.name]),
  );

for (const quant of QUANTS) {
  Deno.test(`quantised() makes a model whose weights are ${quant}, and which runs`, async () => {
    await using f = await folder();
    const before = await types(f.model);
    const made = await quantised(f.model, quant);
    const after = await types(made);
    assertEquals(Object.keys(after).sort(), Object.keys(before).sort());
    for (const [name, type] of Object.entries(before)) {
      assertEquals(after[name], type === "f32" ? "f32" : quant.toLowerCase(), name);
    }
    await using model = await loadModel(made, { gpu: "off" });
    await using context = await model.createContext({ ...SMALL, repeatLayers: "26,34" });
    assertEquals((await greedy(context, "Once upon a time", 4)).trim().length > 0, true);
  });
}

Deno.test("quantised() makes a file once, and again after its model has changed", async () => {
  await using f = await folder();
  const past = new Date(Date.now() - 60_000);
  await Deno.utime(f.model, past, past);
  const [made, same] = await Promise.all([quantised(f.model, "Q4_0"), quantised(f.model, "Q4_0")]);
  assertEquals(made, same);
  const first = (await Deno.stat(made)).ino;
  await quantised(f.model, "Q4_0");
  assertEquals((await Deno.stat(made)).ino, first);
  const future = new Date(Date.now() + 60_000);
  await Deno.utime(f.model, future, future);
  await quantised(f.model, "Q4_0");
  assert((await Deno.stat(made)).ino !== first, "not made again");
});

Deno.test("quantised() says why a file cannot be quantised, and leaves none", async () => {
  await using f = await folder();
  await Deno.writeTextFile(f.model, "GGUF it is not");
  await assertRejects(() => quantised(f.model, "Q8_0"), Error, "cannot quantise /in/model.gguf");
  assertEquals(f.left().filter((name) => !name.endsWith(".lock")), ["demo.gguf"]);
});

Deno.test("the oracle program refuses a type that it does not make", async () => {
  const { code, lines } = await runOracle(["--quantize", "Q9_0", "/in/a", "/out/b"]);
  assertEquals(code, 2);
  assertEquals(lines, ['cannot quantise to "Q9_0": expected F16, Q8_0 or Q4_0']);
});

Deno.test("quantised() survives SIGKILL at any moment", async () => {
  await using f = await folder();
  const type: Quant = "Q8_0";
  const script = `${f.dir}/go.ts`;
  const url = new URL("./quantised.ts", import.meta.url).href;
  await Deno.writeTextFile(
    script,
    `import { quantised } from "${url}"; await quantised(${JSON.stringify(f.model)}, "${type}");`,
  );
  let kills = 0;
  const locks = () => f.left().filter((name) => name.endsWith(".lock"));
  // From when it has begun on: the first kill is sure to be in time.
  for (const ms of [0, 100, 400, 1000]) {
    for (const lock of locks()) await Deno.remove(`${f.dir}/${lock}`);
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", script],
      stdout: "null",
      stderr: "null",
    }).spawn();
    for (let i = 0; locks().length === 0; i++) {
      assert(i < 50_000, "it does not begin");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), ms);
    if ((await child.status).signal === "SIGKILL") kills++;
    clearTimeout(timer);
  }
  assert(kills > 0, "every run was over before its kill");
  const made = await quantised(f.model, type);
  assertEquals((await types(made))["token_embd.weight"], "q8_0");
  assertEquals(
    f.left().filter((name) => name.includes(".as-")).map((name) => name.replace(/.*\.as-/, "")),
    ["Q8_0.gguf", "Q8_0.gguf.lock"],
  );
});
