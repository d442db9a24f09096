import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { MOD, MODEL, program, readUntil, start } from "./_program.ts";

const quick = ["chat", "-m", MODEL, "-n", "6", "--temp", "0"];

Deno.test("chat answers each line of a pipe", async () => {
  const { code, out, err } = await program(quick, { stdin: "Hello\n\nWho are you?" });
  assertEquals(code, 0);
  assert(out.trim().split("\n").length >= 2, out);
  assertStringIncludes(err, "n_layer_eff = 40");
});

Deno.test("chat changes the plan and goes on with the conversation", async () => {
  const stdin =
    "Hello\n/plan 20,30\nHello again\n/stats\n/reset\n/system Be brief.\n/plan\n/stats\n/exit\nno";
  const { code, err } = await program([...quick, "--quiet"], { stdin });
  assertEquals(code, 0);
  assertStringIncludes(err, "n_layer_eff = 50\n");
  assert(/messages +=+ 4\n/.test(err), err);
  assertStringIncludes(err, "the conversation starts over");
  assert(/messages +=+ 1\n/.test(err), err);
});

Deno.test("chat -st asks one question and ends", async () => {
  const { code, out } = await program([...quick, "-st", "--quiet"], { stdin: "one\ntwo\n" });
  assertEquals(code, 0);
  const first = await program([...quick, "-st", "--quiet", "-p", "one"]);
  assertEquals(first.out, out);
});

Deno.test("chat ends at a mistake in what is piped in", async () => {
  const { code, err } = await program([...quick, "--quiet"], { stdin: "/plna 1,2\nHello\n" });
  assertEquals(code, 2);
  assertStringIncludes(err, "did you mean /plan?");
});

Deno.test("chat sends what starts with two slashes as a message with one", async () => {
  const { code, out } = await program([...quick, "-st", "--quiet"], { stdin: "//etc/hosts\n" });
  assertEquals(code, 0);
  const same = await program([...quick, "-st", "--quiet", "-p", "/etc/hosts"]);
  assertEquals(out, same.out);
  const help = await program([...quick, "--quiet"], { stdin: "/help\n" });
  assertStringIncludes(help.err, "//TEXT        send a message that starts with a slash");
  const unknown = await program([...quick, "--quiet"], { stdin: "/etc/hosts\n" });
  assertEquals(unknown.code, 2);
  assertStringIncludes(unknown.err, "(//etc/hosts sends it as a message)");
});

Deno.test("chat goes on after Ctrl-C in an answer", async () => {
  const args = ["chat", "-m", MODEL, "--quiet", "--ignore-eos", "-n", "-1", "-c", "2048"];
  const child = start(args);
  const input = child.stdin.getWriter();
  const say = (text: string) => input.write(new TextEncoder().encode(text));
  const output = child.stdout.getReader();
  const errors = child.stderr.getReader();
  await say("Hello\n");
  await readUntil(output, /./);
  child.kill("SIGINT");
  await readUntil(errors, "(stopped)");
  await say("/stats\n");
  assertStringIncludes(await readUntil(errors, /context .*\n[^]*layers/), "messages    = 2");
  await input.close();
  assertEquals((await child.status).code, 0);
  await output.cancel();
  await errors.cancel();
});

const hasScript = Deno.build.os === "linux" &&
  await new Deno.Command("script", { args: ["--version"], stdout: "null", stderr: "null" })
    .output().then(({ success }) => success, () => false);

Deno.test({
  name: "chat in a terminal keeps what is typed while it starts and loads",
  ignore: !hasScript,
  async fn() {
    // Deno is not up at once; after a second it is, but the model is not there yet.
    const cases: [typed: string, afterMs: number][] = [
      ["\x04", 0],
      ["\x04", 1000],
      ["/help\r\x04", 1000],
    ];
    for (const [typed, afterMs] of cases) {
      const command = `stty cols 80; echo ready; NO_COLOR=1 '${Deno.execPath()}' run -A --quiet ` +
        `'${MOD}' chat -m '${MODEL}' --temp 0 -n 4; echo "code $?"; stty -a; echo the end`;
      const child = new Deno.Command("script", {
        args: ["-qec", command, "/dev/null"],
        env: { LLAMA_ARG_REPEAT_LAYERS: "", TERM: "xterm" },
        stdin: "piped",
        stdout: "piped",
      }).spawn();
      const input = child.stdin.getWriter();
      const output = child.stdout.getReader();
      const type = (keys: string) => input.write(new TextEncoder().encode(keys));
      await readUntil(output, "ready");
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      await type(typed);
      const rest = await readUntil(output, "the end");
      assertStringIncludes(rest, "code 0");
      assertEquals(rest.includes("/system TEXT"), typed.startsWith("/help"), rest);
      assert(/ icanon .* echo /.test(rest), rest);
      await input.close();
      await child.status;
      await output.cancel();
    }
  },
});

Deno.test({
  name: "chat in a terminal edits lines, stops answers, and leaves the terminal as it was",
  ignore: !hasScript,
  async fn() {
    const command = `stty cols 80; NO_COLOR=1 '${Deno.execPath()}' run -A --quiet '${MOD}' chat ` +
      `-m '${MODEL}' --temp 0 -n 4; echo "code $?"; stty -a; echo the end`;
    const child = new Deno.Command("script", {
      args: ["-qec", command, "/dev/null"],
      env: { LLAMA_ARG_REPEAT_LAYERS: "", TERM: "xterm" },
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const input = child.stdin.getWriter();
    const output = child.stdout.getReader();
    const type = (keys: string) => input.write(new TextEncoder().encode(keys));
    // deno-lint-ignore no-control-regex
    const prompt = /> \r\x1b\[2C$/;
    await readUntil(output, prompt);
    await type("Helo\x1b[Dl\r"); // typed with a letter missing, which is put in
    assertStringIncludes(await readUntil(output, prompt), "> Hello\r");
    await type("\x1b[A"); // called back
    await readUntil(output, "> Hello\r");
    await type("\x03");
    await readUntil(output, prompt);
    await type("/plna\r");
    assertStringIncludes(await readUntil(output, prompt), "did you mean /plan?");
    await type("\x04");
    const rest = await readUntil(output, "the end");
    assertStringIncludes(rest, "code 0");
    assert(/ icanon .* echo /.test(rest), rest);
    await input.close();
    await child.status;
    await output.cancel();
  },
});
