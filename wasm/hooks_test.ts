import { fileURLToPath } from "node:url";
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { applyHooks, HookError, hookFiles, parseHooks } from "./hooks.ts";

const hook = (mode: string, anchor: string, text: string, name = "demo") =>
  `why it is there\n\n@@ ${name} ${mode}\n${anchor}\n@@ with\n${text}\n@@ end\n`;
const apply = (source: string, hookText: string) =>
  applyHooks(source, parseHooks(hookText, "x.hook"), "x.hook");

const SOURCE = "int a;\nint b; // two\nint c;\n";

Deno.test("applyHooks() puts text after, before, and in place of an anchor", () => {
  assertEquals(
    apply(SOURCE, hook("after", "int b;", "int d; // rys-hook: demo")),
    "int a;\nint b; // two\nint d; // rys-hook: demo\nint c;\n",
  );
  assertEquals(
    apply(SOURCE, hook("before", "b; // two", "int d; // rys-hook: demo")),
    "int a;\nint d; // rys-hook: demo\nint b; // two\nint c;\n",
  );
  assertEquals(
    apply(SOURCE, hook("replace", "b; // two\nint c", "e /* rys-hook: demo */")),
    "int a;\nint e /* rys-hook: demo */;\n",
  );
});

Deno.test("applyHooks() ends a last line that has no newline", () => {
  assertEquals(
    apply("int a;", hook("after", "int a;", "// rys-hook: demo")),
    "int a;\n// rys-hook: demo\n",
  );
});

Deno.test("applyHooks() stops at an anchor that is gone, and names the hook", () => {
  const error = assertThrows(
    () => apply(SOURCE, hook("after", "int z;", "// rys-hook: demo")),
    HookError,
  );
  assertStringIncludes(error.message, 'hook "demo"');
  assertStringIncludes(error.message, "gone");
  assertStringIncludes(error.message, "int z;");
});

Deno.test("applyHooks() stops at an anchor that is doubled, and names the hook", () => {
  const error = assertThrows(
    () => apply(SOURCE, hook("after", "int ", "// rys-hook: demo")),
    HookError,
  );
  assertStringIncludes(error.message, 'hook "demo"');
  assertStringIncludes(error.message, "more than once");
});

Deno.test("applyHooks() never lets our own text satisfy an anchor", () => {
  const first = hook("after", "int a;", "int z; // rys-hook: one", "one");
  const second = hook("after", "int z;", "// rys-hook: two", "two");
  assertThrows(() => apply(SOURCE, first + second), HookError, 'hook "two"');
});

Deno.test("applyHooks() refuses two edits of the same text", () => {
  const first = hook("replace", "b; // two", "/* rys-hook: one */", "one");
  const second = hook("replace", "two\nint c", "/* rys-hook: two */", "two");
  assertThrows(() => apply(SOURCE, first + second), HookError, "another hook replaces");
});

Deno.test("parseHooks() refuses a malformed file with its line", () => {
  assertThrows(() => parseHooks("nothing\n", "x.hook"), HookError, "no hook found");
  assertThrows(() => parseHooks("@@ demo beside\na\n", "x.hook"), HookError, "x.hook:1");
  assertThrows(() => parseHooks("\n@@ demo after\na\n", "x.hook"), HookError, 'no "@@ with" line');
  assertThrows(
    () => parseHooks(hook("after", "a", "untagged"), "x.hook"),
    HookError,
    'lacks its tag "rys-hook: demo"',
  );
  assertThrows(
    () => parseHooks(hook("after", "", "// rys-hook: demo"), "x.hook"),
    HookError,
    "empty anchor",
  );
});

Deno.test("cpp/UPSTREAM_SYNC.md lists every hook with its file, and no other", () => {
  const dir = fileURLToPath(new URL("../cpp/hooks", import.meta.url));
  const hooks = hookFiles(dir).flatMap((rel) =>
    parseHooks(Deno.readTextFileSync(`${dir}/${rel}`), rel).map(({ name }) =>
      `${name} ${rel.slice(0, -".hook".length)}`
    )
  );
  const page = Deno.readTextFileSync(new URL("../cpp/UPSTREAM_SYNC.md", import.meta.url));
  const rows = [...page.matchAll(/^\| `([^`]+)` +\| `([^`]+)` +\| [^|]+\|$/gm)].map(([, n, f]) =>
    `${n} ${f}`
  );
  assertEquals(rows.toSorted(), hooks.toSorted());
});

Deno.test("hooks hold no blocks of upstream's text", () => {
  const dir = fileURLToPath(new URL("../cpp/hooks", import.meta.url));
  for (const rel of hookFiles(dir)) {
    for (const { name, anchor } of parseHooks(Deno.readTextFileSync(`${dir}/${rel}`), rel)) {
      assertEquals(anchor.split("\n").length <= 8, true, `${rel}: the anchor of ${name} is long`);
    }
  }
});
