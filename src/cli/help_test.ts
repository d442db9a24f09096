import { assert, assertEquals } from "@std/assert";
import { COMMANDS, flagsOf } from "./flags.ts";
import { commandHelp, generalHelp } from "./help.ts";

Deno.test("generalHelp() names every command", () => {
  const text = generalHelp();
  for (const command of COMMANDS) assert(text.includes(`\n  ${command} `), command);
});

Deno.test("commandHelp() names every flag that does something, in short lines", () => {
  for (const command of COMMANDS) {
    const text = commandHelp(command);
    for (const flag of flagsOf(command)) {
      for (const name of flag.names) assert(text.includes(name), `${command} ${name}`);
    }
    assertEquals(text.split("\n").filter((line) => line.length > 100), []);
    assertEquals(text.endsWith("\n"), true);
  }
});
