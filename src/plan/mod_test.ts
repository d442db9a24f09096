import { assertEquals } from "@std/assert";

Deno.test("the module works by its path and without any permission", async () => {
  const code = `import { readPlan, resolvePlan } from ${
    JSON.stringify(new URL("mod.ts", import.meta.url).href)
  };
    const recipe = "slices: &s\\n- sources: [{model: a, layer_range: [0, 2]}]\\n";
    console.log(readPlan(recipe).spec, resolvePlan({ layers: [0, 1, 1] }, { nLayer: 2 }).nLayerEff);
    try { readPlan("a: !x [1]\\nlayers: [0]\\n"); } catch (error) { console.log(error.message); }`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-config", "--no-lock", "--no-prompt", "--no-check", "-"],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const input = child.stdin.getWriter();
  await input.write(new TextEncoder().encode(code));
  await input.close();
  const { stdout, stderr } = await child.output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assertEquals(
    [out, err],
    ["layers:0..1 3\nCannot parse YAML: unknown sequence tag !<!x> at line 1, column 4\n", ""],
  );
});
