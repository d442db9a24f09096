import { assertEquals } from "@std/assert";
import { MODEL, readUntil, start } from "./_program.ts";

const endless = ["-m", MODEL, "-p", "Once upon a time", "--ignore-eos", "-n", "-1"];

/**
 * Sends a signal once `ready` has been written to standard error or output, or after a while, and waits for the end.
 * What is stopped here would go on for hours, so its end is the signal's work; the limit is for a program that hangs.
 */
async function stopped(
  args: string[],
  signal: Deno.Signal,
  ready: { out: RegExp } | { err: RegExp } | { ms: number },
): Promise<{ code: number; err: string }> {
  const child = start(args);
  let isOver = false;
  const hung = setTimeout(() => isOver || child.kill("SIGKILL"), 120_000);
  const output = child.stdout.getReader();
  const errors = child.stderr.getReader();
  if ("out" in ready) await readUntil(output, ready.out);
  else if ("err" in ready) await readUntil(errors, ready.err);
  else await new Promise((resolve) => setTimeout(resolve, ready.ms));
  child.kill(signal);
  let err = "";
  for (let part = await errors.read(); !part.done; part = await errors.read()) {
    err += new TextDecoder().decode(part.value);
  }
  const { code } = await child.status;
  isOver = true;
  clearTimeout(hung);
  await output.cancel();
  await child.stdin.close();
  return { code, err };
}

Deno.test("Ctrl-C ends a generation with 130", async () => {
  const { code, err } = await stopped([...endless, "--quiet"], "SIGINT", { out: /./ });
  assertEquals([code, err], [130, ""]);
});

Deno.test("Ctrl-C ends --json, logits and bench too", async () => {
  const tokens = Array.from({ length: 15_000 }, (_, i) => 10 + i % 50).join(",");
  const loaded = { err: /load time/ };
  for (
    const [args, ready] of [
      [[...endless, "--json"], loaded],
      [["logits", "-m", MODEL, "--tokens", tokens], loaded],
      [["bench", "-m", MODEL, "-r", "1000"], { ms: 2500 }],
    ] as const
  ) {
    const { code } = await stopped([...args], "SIGINT", ready);
    assertEquals(code, 130, args.join(" ").slice(0, 80));
  }
});

Deno.test("Ctrl-C ends the processing of a prompt with 130", async () => {
  const prompt = "one two three ".repeat(400);
  const args = ["-m", MODEL, "-p", prompt, "-c", "2048", "-n", "-1", "--ignore-eos"];
  const { code } = await stopped([...args, "--context-shift"], "SIGINT", { err: /load time.*\n/ });
  assertEquals(code, 130);
});

Deno.test("Ctrl-C ends loading with 130", async () => {
  const { code } = await stopped([...endless, "-v"], "SIGINT", { err: /./ });
  assertEquals(code, 130);
  // And whatever else it is at by then.
  for (const ms of [250, 400, 600]) {
    const { code, err } = await stopped([...endless, "--quiet"], "SIGINT", { ms });
    assertEquals([code, err], [130, ""]);
  }
});

Deno.test("SIGTERM ends the program with 143", async () => {
  const run = await stopped([...endless, "--quiet"], "SIGTERM", { out: /./ });
  assertEquals([run.code, run.err], [143, ""]);
  const chat = await stopped(["chat", "-m", MODEL], "SIGTERM", { err: /load time.*\n/ });
  assertEquals(chat.code, 143);
  const idle = await stopped(["chat", "-m", MODEL], "SIGINT", { err: /load time.*\n/ });
  assertEquals(idle.code, 130);
});

Deno.test("a reader that has had enough is not an error", async () => {
  const child = start([...endless, "--quiet"]);
  const output = child.stdout.getReader();
  await readUntil(output, /./);
  await output.cancel();
  const errors = child.stderr.getReader();
  assertEquals((await child.status).code, 0);
  assertEquals((await errors.read()).done, true);
  await child.stdin.close();
});
