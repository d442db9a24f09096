import { fileURLToPath } from "node:url";
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { applyHooks, hookedTexts, HookError, hooksPatch, parseHooks, readHooks } from "./hooks.ts";

const hook = (mode: string, anchor: string, text: string, name = "demo") =>
  `why it is there\n\n@@ ${name} ${mode}\n${anchor}\n@@ with\n${text}\n@@ end\n`;
const apply = (source: string, hookText: string) =>
  applyHooks(source, parseHooks(hookText, "x.hook").map((one) => ({ ...one, file: "x.hook" })));

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

Deno.test("parseHooks() wants a reason, which edits may share", () => {
  const [first, second] = parseHooks(
    hook("after", "a", "// rys-hook: one", "one") +
      "@@ two after\nb\n@@ with\n// rys-hook: two\n@@ end\n",
    "x.hook",
  );
  assertEquals([first!.why, second!.why], ["why it is there", "why it is there"]);
  assertThrows(
    () => parseHooks("@@ one after\na\n@@ with\n// rys-hook: one\n@@ end\n", "x.hook"),
    HookError,
    'hook "one" has no line above it that says why',
  );
});

Deno.test("hookedTexts() names every anchor and file that it cannot find, and joins purposes", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const write = async (path: string, text: string) => {
      await Deno.mkdir(`${dir}/${path.slice(0, path.lastIndexOf("/"))}`, { recursive: true });
      await Deno.writeTextFile(`${dir}/${path}`, text);
    };
    await write("up/src/a.cpp", SOURCE);
    await write("hooks/plan/src/a.cpp.hook", hook("after", "int a;", "// rys-hook: one", "one"));
    await write("hooks/fixes/src/a.cpp.hook", hook("after", "int c;", "// rys-hook: two", "two"));
    const { texts, names } = hookedTexts(`${dir}/hooks`, `${dir}/up`);
    assertEquals(
      texts.get("src/a.cpp"),
      "int a;\n// rys-hook: one\nint b; // two\nint c;\n// rys-hook: two\n",
    );
    assertEquals(names.toSorted(), ["one", "two"]);
    const patch = await hooksPatch(texts, `${dir}/up`);
    assertStringIncludes(patch, "--- a/src/a.cpp\n+++ b/src/a.cpp\n");
    assertStringIncludes(patch, "\n+// rys-hook: two\n");

    await write("hooks/gpu/src/a.cpp.hook", hook("after", "int z;", "// rys-hook: z", "z"));
    await write("hooks/gpu/src/b.cpp.hook", hook("after", "int a;", "// rys-hook: b", "b"));
    await write("hooks/plan/src/c.cpp.hook", hook("after", "int a;", "// rys-hook: c", "c"));
    const { message } = assertThrows(
      () => hookedTexts(`${dir}/hooks`, `${dir}/up`),
      HookError,
    );
    assertEquals(message.split("\n").length, 3, message);
    assertStringIncludes(message, 'cpp/hooks/gpu/src/a.cpp.hook:3: hook "z": its anchor is gone');
    assertStringIncludes(message, "upstream has no file src/b.cpp");
    assertStringIncludes(message, "upstream has no file src/c.cpp");
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("hooks are read by purpose, and hold no blocks of upstream's text", () => {
  const hooks = readHooks(fileURLToPath(new URL("../cpp/hooks", import.meta.url)));
  assertEquals([...new Set(hooks.map(({ purpose }) => purpose))].sort(), [
    "engine",
    "fixes",
    "gpu",
    "plan",
  ]);
  for (const { file, name, anchor } of hooks) {
    assertEquals(anchor.split("\n").length <= 8, true, `${file}: the anchor of ${name} is long`);
  }
});
