// What a model on this machine does not need is not loaded with the library.

import { assert, assertEquals } from "@std/assert";
import { MOD } from "../cli/_program.ts";

interface Graph {
  roots: string[];
  redirects: Record<string, string>;
  modules: {
    specifier: string;
    dependencies?: { isDynamic?: boolean; code?: { specifier?: string } }[];
  }[];
}

Deno.test("mod.ts imports the hub's library only where the hub is asked", async () => {
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", MOD],
  }).output();
  const { roots, redirects, modules }: Graph = JSON.parse(new TextDecoder().decode(stdout));
  const isHub = (specifier: string) => specifier.includes("@huggingface/hub");
  assert(modules.some(({ specifier }) => isHub(specifier)));
  const reached = new Set<string>();
  const queue = [...roots];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const specifier = redirects[next] ?? next;
    if (reached.has(specifier)) continue;
    reached.add(specifier);
    const module = modules.find((one) => one.specifier === specifier);
    for (const { isDynamic, code } of module?.dependencies ?? []) {
      if (!isDynamic && code?.specifier !== undefined) queue.push(code.specifier);
    }
  }
  assert(reached.size > 50, `${reached.size} modules`);
  assertEquals([...reached].filter(isHub), []);
});
