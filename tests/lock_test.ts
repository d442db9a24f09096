// What a first run fetches is what stands in deno.lock, all of it; the packages that only tests use have a lock of their
// own.

import { assertEquals } from "@std/assert";
import { inRepo } from "./engine/_engine.ts";

interface Lock {
  specifiers: Record<string, string>;
  npm: Record<
    string,
    { integrity: string; dependencies?: string[]; optionalDependencies?: string[] }
  >;
  workspace: { dependencies: string[] };
}

const read = (path: string): string => Deno.readTextFileSync(inRepo(path));
const OWN: Lock = JSON.parse(read("deno.lock"));
const TESTS: Lock = JSON.parse(read("tests/deno.lock"));

/** `@a/b@1.2.3_c@4` without its version. */
const nameOf = (id: string): string => id.replace(/(?<=.)@.*$/, "");

/** Packages of a lock that its specifiers lead to. */
function reached({ specifiers, npm }: Lock): string[] {
  const found = new Set<string>();
  const visit = (id: string): void => {
    if (found.has(id)) return;
    found.add(id);
    const { dependencies = [], optionalDependencies = [] } = npm[id]!;
    for (const one of [...dependencies, ...optionalDependencies]) {
      visit(one in npm ? one : Object.keys(npm).find((other) => nameOf(other) === nameOf(one))!);
    }
  };
  for (const [specifier, version] of Object.entries(specifiers)) {
    visit(`${nameOf(specifier.replace("npm:", ""))}@${version}`);
  }
  return [...found].sort();
}

Deno.test("deno.lock holds what the package's imports need, and nothing else", () => {
  const imports: string[] = Object.values(JSON.parse(read("deno.json")).imports);
  assertEquals(
    Object.keys(OWN.specifiers).map(nameOf),
    imports.filter((one) => one.startsWith("npm:")).map(nameOf),
  );
  assertEquals(Object.keys(OWN.npm).sort(), reached(OWN));
});

Deno.test("tests/deno.lock has the same of these, and the packages of tests/server/_npm.ts", () => {
  const more = [...read("tests/server/_npm.ts").matchAll(/ from "(npm:[^"]+)"/g)].map((m) => m[1]!);
  assertEquals(
    Object.keys(TESTS.specifiers).sort(),
    [...Object.keys(OWN.specifiers), ...more].sort(),
  );
  for (const [name, version] of Object.entries(OWN.specifiers)) {
    assertEquals([name, TESTS.specifiers[name]], [name, version]);
  }
  for (const [id, entry] of Object.entries(OWN.npm)) assertEquals([id, TESTS.npm[id]], [id, entry]);
  assertEquals(Object.keys(TESTS.npm).sort(), reached(TESTS));
});

Deno.test("specifiers outside the import map are those in it", () => {
  const imports: string[] = Object.values(JSON.parse(read("deno.json")).imports);
  const inline = /from "(npm:[^"]+)"/.exec(read("src/gguf/read_header.ts"))?.[1];
  assertEquals(imports.filter((one) => one === inline).length, 1, inline);
});
