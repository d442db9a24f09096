import { assert, assertEquals } from "@std/assert";
import { type CommandName, COMMANDS, flagsOf } from "../flags/flags.ts";
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

Deno.test("help explains what is easily misunderstood", () => {
  const text = (command: CommandName) => commandHelp(command).replace(/\s+/g, " ");
  for (const command of ["run", "plan"] as const) {
    assert(text(command).includes("x3 means three further passes, shown as x4 in all"));
  }
  assert(text("chat").includes("in piped input it ends the program with exit code 2"));
  assert(text("run").includes("rounded up to a multiple of 256"));
  assert(text("run").includes("-1 or -2: until the model ends or the context is full"));
  assert(generalHelp().includes("--allow-read"));
});
