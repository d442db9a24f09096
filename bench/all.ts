/**
 * Runs all benchmarks, one after the other; options are handed on.
 *
 * @module
 */

let failed = false;
import { fileURLToPath } from "node:url";
for (
  const name of [
    "cpu",
    "threads",
    "profile",
    "attention",
    "plan_cost",
    "boot",
    "memory",
    "gpu",
    "server",
  ]
) {
  console.error(`\n${name}`);
  const script = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", script, ...Deno.args],
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).output();
  if (!success) {
    failed = true;
    console.error(`${name} failed`);
  }
}
Deno.exit(failed ? 1 : 0);
