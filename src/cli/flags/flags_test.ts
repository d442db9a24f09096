import { assert, assertEquals } from "@std/assert";
import { COMMANDS, commandsOf, type Flag, FLAGS, flagsOf, namesOf } from "./flags.ts";

const flags: readonly Flag[] = FLAGS;

Deno.test("FLAGS gives a name one meaning in each command", () => {
  for (const command of COMMANDS) {
    const names = flagsOf(command).flatMap(namesOf);
    assertEquals(names.length, new Set(names).size, command);
  }
});

Deno.test("FLAGS lets a name take a value in all commands or in none", () => {
  const takes = new Map<string, boolean>();
  for (const flag of flags) {
    for (const name of namesOf(flag)) {
      const value = flag.kind !== "switch";
      assertEquals(takes.get(name) ?? value, value, name);
      takes.set(name, value);
    }
  }
});

Deno.test("FLAGS has ids of its own and a placeholder for each value", () => {
  assertEquals(flags.length, new Set(flags.map((flag) => flag.id)).size);
  for (const flag of flags) {
    assertEquals(flag.kind !== "switch", flag.value !== undefined, flag.id);
    assert(flag.bare === undefined || flag.choices?.includes(flag.bare), flag.id);
  }
});

Deno.test("commandsOf() says who knows a flag", () => {
  assertEquals(commandsOf("--n-layer"), ["plan"]);
  assertEquals(commandsOf("-p"), ["run", "chat", "logits", "bench"]);
  assertEquals(commandsOf("--nonsense"), []);
});
